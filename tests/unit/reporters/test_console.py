import io
import re
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.model import Environment, Finding, KernelReport, Report, RungResult
from kernelci.reasons import Outcome
from kernelci.reporters import Context, console


class Stream(io.TextIOWrapper):
    """A file in a narrow encoding, as a terminal of another language has."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="ascii")

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]


def test_a_narrow_encoding_is_no_error(reports: ModuleType) -> None:
    stream = Stream()

    console.show(reports.one_wrong(), "out", stream)

    assert "? FAILED" in stream.text()


def test_colours_only_where_they_are_asked_for(reports: ModuleType) -> None:
    report = reports.one_wrong()

    plain, coloured = (console.render(report, Context(color=color)) for color in (False, True))
    assert "\x1b[1;31m" in coloured
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()
    assert plain.splitlines() == [line.rstrip() for line in uncoloured]


@pytest.mark.parametrize("name", ["all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base"])
def test_no_line_is_wider_than_the_terminal(name: str, reports: ModuleType) -> None:
    for width in (60, 100):
        lines = console.render(reports.ALL[name](), Context(width=width)).splitlines()

        assert [] == [line for line in lines if len(line) > width]


def test_many_stops_are_counted(reports: ModuleType) -> None:
    assert "and 10 more in results.json" in console.render(reports.large(1, console.STOPS + 10), Context())


@settings(deadline=None)
@given(
    st.text(max_size=80)
    | st.sampled_from(["\x1b]8;;http://evil\x07x", "[bold]", "[/]", "\x9b2J", "\u202e", ":tada:", "[link=x]"])
)
def test_no_text_reaches_the_terminal_as_a_command(text: str) -> None:
    found = Finding("crashed", text, text, 3, text, text)
    kernel = KernelReport(text, text, text, text, text, (RungResult(text, Outcome.FAILED, 1.0, found, notes=(text,)),))

    rendered = console.render(Report(1, text, text, 1.0, Environment(text, text), (kernel,), text, (text,)), Context())

    assert [] == re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rendered)


def test_markup_in_a_message_is_shown_as_it_is() -> None:
    found = Finding("crashed", "[bold red]markup[/] :tada:")
    kernel = KernelReport("a/b", "a", "b", "c", "d", (RungResult("run", Outcome.FAILED, 1.0, found),))

    assert "[bold red]markup[/] :tada:" in console.render(
        Report(1, "", "", 1.0, Environment("", ""), (kernel,)), Context()
    )


RUNGS = (
    *("precheck", "compile", "run", "correctness", "sanitize", "perturb"),
    *("benchmark", "dump", "trace", "profile", "roofline"),
)
NO_GPU = Finding("no-gpu", "no GPU")


def _climbed(skipped: tuple[str, ...]) -> list[str]:
    """The lines of the ladder's table for one kernel that passed every rung but these."""
    rungs = tuple(
        RungResult(name, Outcome.SKIPPED, finding=NO_GPU) if name in skipped else RungResult(name, Outcome.PASSED)
        for name in RUNGS
    )
    kernel = KernelReport("softmax/tilelang", "softmax", "tilelang", "kernels/softmax/tilelang.py", "0" * 64, rungs)
    report = Report(1, "0.1.0", "2026-11-30T00:00:00+00:00", 1.0, Environment("", ""), (kernel,))
    return console.render(report, Context(width=100)).splitlines()


def test_where_seconds_went_is_told_elsewhere(reports: ModuleType) -> None:
    report = reports.all_green()
    first = report.kernels[0]
    rungs = (replace(first.rungs[0], notes=("seconds: calls 3.0; in all 3.0", "one more thing")), *first.rungs[1:])
    text = console.render(replace(report, kernels=(replace(first, rungs=rungs),)), Context())
    assert (False, True) == ("seconds" in text, "one more thing" in text)


def test_a_rung_that_all_skipped_has_no_column_where_there_are_many() -> None:
    header = next(
        line for line in _climbed(("sanitize", "benchmark", "trace", "profile")) if line.startswith("kernel ")
    )
    assert ["kernel", *(name for name in RUNGS if name not in ("sanitize", "benchmark", "trace", "profile"))] == (
        header.split()
    )


def test_a_kernels_name_stays_whole_beside_all_rungs() -> None:
    assert any(line.startswith("softmax/tilelang ") for line in _climbed(()))
