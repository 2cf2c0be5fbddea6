"""What the dashboard says of a series."""

import datetime
import json
import re
from pathlib import Path

import msgspec
import pytest

from kernelci import history
from kernelci.errors import ConfigError
from kernelci.history import Event, Measure
from kernelci.nightly import dashboard, pages
from kernelci.nightly.changes import changes
from kernelci.nightly.series import Series, load
from kernelci.reasons import Outcome


def _loaded(tmp_path: Path, measures: list[Measure]) -> tuple[Series, ...]:
    path, data = history.month_file("2026-01", "x", history.encode(measures))
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(data)
    return load(tmp_path)


def _words(every: tuple[Series, ...], events: tuple[Event, ...] = ()) -> list[str]:
    return [row.word for row in pages.standings(every, changes(every, events, datetime.date(2026, 3, 1)))]


def test_a_flat_series_is_steady(measure, tmp_path: Path) -> None:
    assert ["steady"] == _words(_loaded(tmp_path, [measure(night) for night in range(45)]))


def test_a_series_of_few_nights_is_steady_so_far(measure, tmp_path: Path) -> None:
    assert ["steady"] == _words(_loaded(tmp_path, [measure(0)]))


@pytest.mark.parametrize(("time", "word"), [(1030.0, "drifting"), (970.0, "faster"), (1004.0, "steady")])
def test_the_last_week_is_held_against_the_month_before(measure, tmp_path: Path, time: float, word: str) -> None:
    made = [measure(night, 1000.0 if night < 38 else time) for night in range(45)]

    assert [word] == _words(_loaded(tmp_path, made))


def test_a_confirmed_change_is_slower(measure, tmp_path: Path) -> None:
    every = _loaded(tmp_path, [measure(night, 1000.0 if night < 42 else 1050.0) for night in range(45)])
    night = datetime.date(2026, 2, 13)
    event = Event(night, "remeasured", *every[0].id, night, "a", "b", "SLOWER", 0.05)

    assert ["slower"] == _words(every, (event,))


def test_a_kernel_that_fails_tonight_is_failed(measure, tmp_path: Path) -> None:
    bad = msgspec.structs.replace(measure(40, None), outcome=Outcome.FAILED, reason="wrong")

    assert ["failed"] == _words(_loaded(tmp_path, [*(measure(night) for night in range(40)), bad]))


def test_what_has_not_been_measured_for_days_says_so(measure, tmp_path: Path) -> None:
    made = [*(measure(night) for night in range(20)), *(measure(night, case="d") for night in range(30))]

    assert ["not measured", "steady"] == _words(_loaded(tmp_path, made))


@pytest.mark.parametrize(
    ("outcome", "reason", "word", "said"),
    [
        (Outcome.FAILED, "wrong", "failed", "wrong values on 2026-02-10"),
        (Outcome.BROKEN, "gpu-sick", "broken", "GPU does not answer on 2026-02-10"),
        (Outcome.INVALID, "clocks-disagree", "steady", "+0.0% in a month"),
    ],
)
def test_a_night_without_a_time_says_whose_fault_it_was(
    outcome: Outcome, reason: str, word: str, said: str, measure, tmp_path: Path
) -> None:
    bad = msgspec.structs.replace(measure(40, None), outcome=outcome, reason=reason)
    every = _loaded(tmp_path, [*(measure(night) for night in range(40)), bad])

    assert [(word, said)] == [(row.word, row.said) for row in pages.standings(every, ())]


def test_a_kernel_that_is_gone_is_not_failed_for_ever(measure, tmp_path: Path) -> None:
    bad = msgspec.structs.replace(measure(20, None), outcome=Outcome.FAILED, reason="wrong")
    made = [*(measure(night) for night in range(20)), bad, *(measure(night, case="d") for night in range(30))]

    assert ("not measured", "last on 2026-01-20; wrong values") == _said(_loaded(tmp_path, made))[0]


def _said(every: tuple[Series, ...]) -> list[tuple[str, str]]:
    return [(row.word, row.said) for row in pages.standings(every, ())]


def test_a_series_without_any_time_says_so_and_what_compiling_told(measure, tmp_path: Path) -> None:
    made = [measure(night, None, gpu="", target="sm_90a", registers=48.0, stack_bytes=16.0) for night in range(3)]
    every = _loaded(
        tmp_path, [msgspec.structs.replace(each, outcome=Outcome.SKIPPED, reason="no-gpu") for each in made]
    )

    (row,) = pages.standings(every, ())

    assert ("no GPU: sm_90a", "no times", "48 registers, 16 B stack", "", "") == (
        row.gpu, row.word, row.said, row.time, row.spark,
    )  # fmt: skip


def test_other_machine_code_is_marked_with_what_changed(measure, tmp_path: Path) -> None:
    built = [(48.0, 0.0), (48.0, 0.0), (64.0, 16.0)]
    made = [measure(night, registers=count, stack_bytes=stack) for night, (count, stack) in enumerate(built)]
    (series,) = _loaded(tmp_path, [*made, measure(3)])

    (mark,) = pages.marks(series, ())

    assert ("code", "registers 48 → 64, stack 0 B → 16 B") == (mark["kind"], mark["text"])


def test_cases_come_in_the_order_of_their_sizes() -> None:
    assert ["8x2", "256x8", "1024x8", "a"] == sorted(["1024x8", "a", "256x8", "8x2"], key=pages.natural)


def test_the_overview_says_where_no_night_has_a_time(measure, tmp_path: Path) -> None:
    _loaded(tmp_path / "history", [measure(0, None, gpu="", target="sm_90a")])

    (overview, page) = dashboard.build(tmp_path / "history", tmp_path / "site")

    assert "No row has a time" in overview.read_text(encoding="utf-8")
    assert '<p id="untimed" hidden>No night of this row has a time' in page.read_text(encoding="utf-8")
    _loaded(tmp_path / "history", [measure(0)])
    (overview, _) = dashboard.build(tmp_path / "history", tmp_path / "site")
    assert "No row has a time" not in overview.read_text(encoding="utf-8")


def test_another_driver_is_marked_with_what_changed(measure, tmp_path: Path) -> None:
    (series,) = _loaded(tmp_path, [measure(night, driver="590" if night > 9 else "580") for night in range(20)])

    (mark,) = pages.marks(series, ())

    assert ("machine", "driver: 580 → 590") == (mark["kind"], mark["text"])


def test_a_change_names_its_commits_and_what_somebody_said_of_it(measure, tmp_path: Path) -> None:
    every = _loaded(tmp_path, [measure(night, 1000.0 if night < 42 else 1050.0) for night in range(45)])
    night = datetime.date(2026, 2, 13)
    slower = Event(night, "remeasured", *every[0].id, night, "a" * 40, "b" * 40, "SLOWER", 0.05)
    words = Event(night, "acknowledged", *every[0].id, night, text="a NaN", until=datetime.date(2026, 3, 9))

    marks = [pages.marks(every[0], changes(every, events, night)) for events in ((slower,), (slower, words))]

    assert [
        "new: +5.0%, after aaaaaaaaaa, up to bbbbbbbbbb",
        "acknowledged: +5.0%, after aaaaaaaaaa, up to bbbbbbbbbb, a NaN, until 2026-03-09",
    ] == [mark["text"] for found in marks for mark in found if mark["kind"] == "change"]


def test_a_step_that_nobody_confirmed_is_marked_as_a_step(measure, tmp_path: Path) -> None:
    (series,) = _loaded(tmp_path, [measure(night, 1000.0 if night < 20 else 1100.0) for night in range(40)])

    (mark,) = pages.marks(series, ())

    assert ("step", "level +10.0%") == (mark["kind"], mark["text"])


def test_columns_are_as_long_as_the_nights(measure, tmp_path: Path) -> None:
    (series,) = _loaded(tmp_path, [measure(night, None if night == 3 else 1.0) for night in range(9)])

    found = pages.columns(series, (), "octo-org/kernels")

    assert {9} == {len(found[name]) for name in ("night", "time", "low", "share", "psnr", "flops", "commit", "run")}
    assert ({"3": ""}, None) == (found["failed"], found["time"][3])
    assert "https://github.com/octo-org/kernels" == found["repository"]


def test_names_can_not_leave_the_page(measure, tmp_path: Path) -> None:
    name = "softmax/</script><script>alert(1)</script>&'\""
    record = measure(0, kernel=name, case=name, gpu=name, run="javascript:alert(1)")
    _loaded(tmp_path / "history", [record])

    written = dashboard.build(tmp_path / "history", tmp_path / "site")

    assert 2 == len(written)
    for page in written:
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "javascript:" not in text
    embedded = re.search(r'id="data">(.*?)</script>', written[1].read_text(encoding="utf-8"), re.DOTALL)
    assert embedded is not None
    assert name == json.loads(embedded[1])[0]["case"]


def test_an_empty_history_has_a_page(tmp_path: Path) -> None:
    (page,) = dashboard.build(tmp_path, tmp_path / "site")

    assert "0 rows" in page.read_text(encoding="utf-8")


def test_kernels_whose_names_look_alike_have_pages_of_their_own() -> None:
    assert pages.page_of("a/b c") != pages.page_of("a/b-c")


def test_a_history_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        dashboard.build(tmp_path / "histroy", tmp_path / "site")
    assert not (tmp_path / "site").exists()
