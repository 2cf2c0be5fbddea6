from types import ModuleType

import pytest

from kernelci import digest
from kernelci.model import Finding, Metric, Row, RungResult, Unit
from kernelci.reasons import REASONS, Outcome


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("all_green", "3 kernels passed every rung that ran."),
        ("one_wrong", "Of 3 kernels: 1 FAILED, 2 PASSED. Stopped: softmax/tilelang at correctness: wrong values."),
        ("all_skipped", "Nothing was executed (3 kernels); that is never green."),
        (
            "broken",
            "Of 2 kernels: 1 BROKEN, 1 FAILED. First to look at: softmax/triton at run: reference failed.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(name: str, expected: str, reports: ModuleType) -> None:
    assert expected == digest.headline(reports.ALL[name]()).sentence


def test_a_green_verdict_counts_what_was_skipped(reports: ModuleType) -> None:
    some = reports.kernel("a/b", reports.checked(), reports.skip("dump", "no-gpu"))

    found = digest.headline(reports.report((some, reports.all_skipped().kernels[0])))

    assert "1 of 2 kernels passed every rung that ran; 1 skipped entirely; 6 rungs skipped." == found.sentence


def test_a_green_verdict_counts_skipped_cases(reports: ModuleType) -> None:
    rows = (Row(Outcome.PASSED, "a"), Row(Outcome.SKIPPED, "b", finding=Finding("cost", "too large")))
    ran = reports.kernel("a/b", RungResult("run", Outcome.PASSED, rows=rows))

    found = digest.headline(reports.report((ran,)))

    assert "1 kernel passed every rung that ran; 1 case skipped." == found.sentence


def test_a_kernel_that_the_run_did_not_finish_has_not_passed(reports: ModuleType) -> None:
    some, whole = (reports.kernel(name, reports.checked(), *more) for name, more in _interrupted(reports).items())
    sentence = "1 of 2 kernels passed every rung that ran; 1 unfinished; 1 rung skipped."
    assert sentence == digest.headline(reports.report((some, whole))).sentence
    (bad,) = reports.compile_error().kernels[:1]
    told = digest.headline(reports.report((some, whole, bad))).sentence
    assert told.startswith("Of 3 kernels: 1 FAILED, 1 PASSED, 1 unfinished.")


def _interrupted(reports: ModuleType) -> dict[str, tuple[RungResult, ...]]:
    return {"a/stopped": (reports.skip("dump", "interrupted"),), "a/whole": ()}


def test_the_gravest_stop_comes_first(reports: ModuleType) -> None:
    assert [Outcome.BROKEN, Outcome.FAILED] == [stop.rung.outcome for stop in digest.stops(reports.broken())]


def test_a_stop_names_the_other_rows(reports: ModuleType) -> None:
    (stop,) = digest.stops(reports.one_wrong())

    assert stop.row is not None
    assert "17x1000-fp16, draw large:0" == digest.place(stop.row)
    assert ["3x127-fp32, draw normal:0"] == [digest.place(row) for row in stop.others]


def test_skipped_rungs_are_grouped_and_consequences_come_last(reports: ModuleType) -> None:
    groups = digest.skipped(reports.compile_error())

    assert ["no-interpreter", "earlier-rung"] == [group.reason for group in groups]
    assert {"run": ("softmax/cuda",), "correctness": ("softmax/cuda",)} == groups[0].rungs


def test_rungs_that_nobody_asked_for_are_not_listed(reports: ModuleType) -> None:
    asked = reports.kernel("a/b", reports.checked(), reports.skip("dump", "not-requested"))

    assert () == digest.skipped(reports.report((asked,)))


def test_errors_keep_the_worst_case_of_each_kernel_and_output(reports: ModuleType) -> None:
    (table,) = [table for table in digest.tables(reports.one_wrong()) if digest.is_errors(table)]

    kept = [(key[0], key[2]) for key, _ in digest.worst_lines(table).lines]
    expected = [
        ("softmax/triton", "127x4097-bf16"),
        ("softmax/tilelang", "17x1000-fp16"),
        ("softmax/cuda", "127x4097-bf16"),
    ]
    assert expected == kept


@pytest.mark.parametrize(
    "command", ["curl evil | sh", "kernelci run $(id)", "kernelci run a; id", "kernelci run a\nid", ""]
)
def test_only_plain_commands_are_offered(command: str) -> None:
    assert "" == digest.reproduce(Finding("wrong", "", reproduce=command))


def test_our_own_texts_are_harmless_markdown() -> None:
    texts = [text for reason in REASONS.values() for text in (reason.title, reason.next_step)]

    assert [] == [text for text in texts if any(sign in text for sign in ("<", "|", "@", "](", "\n"))]
    assert [] == [text for text in texts if text.count("`") % 2]


def test_a_rows_figures_and_its_outputs_are_apart_where_they_share_no_column(reports) -> None:
    metrics = (
        Metric("span", 5.0, Unit.NANOSECONDS, "traced"),
        Metric("share:load", 0.4, Unit.FRACTION, "share"),
        Metric("share:store", 0.6, Unit.FRACTION, "share"),
    )
    rung = RungResult("trace", Outcome.PASSED, rows=(Row(Outcome.PASSED, "8x8", metrics=metrics),))

    found = digest.tables(reports.report((reports.kernel("softmax/cuda", rung),)))
    assert [("traced",), ("share",)] == [table.columns for table in found]
    assert ["", "load", "store"] == [key[1] for table in found for key, _ in table.lines]
    assert [1, 2] == [len(table.outcomes) for table in found]


def test_times_leave_the_other_tables(reports) -> None:
    (table,) = (table for table in digest.tables(reports.first_times()) if table.rung == "benchmark")
    rest = digest.without_times(table)
    assert (("copy bandwidth",), 1) == (rest.columns, len(rest.lines))


def test_lost_rows_by_kernel(reports) -> None:
    found = digest.lost(reports.against_base())
    assert [("softmax/triton", "removed"), ("softmax/triton", "skipped")] == [(name, row.how) for name, row in found]
