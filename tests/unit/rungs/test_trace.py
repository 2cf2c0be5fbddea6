"""The trace rung: what it asks for, what it leaves, and when it is skipped."""

import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.model import Finding, Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.reporters import Context, html, markdown
from kernelci.rungs import ladder
from kernelci.rungs import trace as rung
from kernelci.tracing.regions import Region, Trace, Track
from kernelci.tracing.table import summed
from kernelci.tracing.validating import faults
from kernelci.workbench.happening import Happening
from kernelci.workbench.protocol import Followed

SEEN = Trace(
    (
        Track(0, 0, 0, 0.0, 1000.0, (Region("load", 0.0, 800.0),)),
        Track(0, 0, 4, 0.0, 1000.0, (Region("compute", 200.0, 900.0),)),
    ),
    notes=("3 of 5 warps found no room: the first ones are shown",),
)


def case(kind: str, dtype: str, rows: int = 8) -> Case:
    return Case(kind, (("rows", rows), ("dtype", dtype)))


FOLLOWED = Followed(
    (
        Happening("call", "call 0", 0, 30_000),
        Happening("api", "cuLaunchKernelEx", 5_000, 8_000, correlation=1),
        Happening("kernel", "softmax", 10_000, 25_000, lane=7, correlation=1),
        Happening("wait", "wait", 30_000, 40_000),
    )
)

CASES = (
    case("check", "float32", 3),
    case("bench", "float32"),
    case("bench", "float32", 16),
    case("bench", "bfloat16"),
)


@pytest.fixture
def referee(tmp_path: Path) -> Any:
    """What the rung needs of a referee; its traces are made up."""

    def finding(stop: Stop, case: Case | None = None, draw: str = "", rung: str = "") -> Finding:
        return Finding(stop.reason, stop.message)

    return SimpleNamespace(
        kernel=SimpleNamespace(name="softmax/cuda", sha256=lambda: "head"),
        base=None,
        card=SimpleNamespace(regions=("load", "compute"), backend="cuda"),
        out=tmp_path,
        climbed={},
        finding=finding,
        cases=lambda: CASES,
        why_not=lambda case: None,
        trace=lambda case: SEEN,
        follow=lambda case: FOLLOWED,
    )


def value(row: Row, tag: str) -> Any:
    return next(metric.value for metric in row.metrics if metric.tag == tag)


def test_the_first_bench_case_of_each_dtype_is_traced(referee: Any) -> None:
    assert (CASES[1], CASES[3]) == rung.choose(referee)


def test_check_cases_are_traced_where_there_is_no_other(referee: Any) -> None:
    referee.cases = lambda: CASES[:1]
    assert CASES[:1] == rung.choose(referee)


def test_no_case_is_skipped(referee: Any) -> None:
    referee.why_not = lambda case: Stop("cost", "too large")
    with pytest.raises(Stop) as caught:
        rung.trace(referee)
    assert "no-cases" == caught.value.reason


def test_a_row_has_a_line_for_each_region_and_for_the_time_between(referee: Any) -> None:
    row = rung.trace(referee).rows[0]
    assert (0.4, 0.35, 0.25) == tuple(value(row, f"share:{name}") for name in ("load", "compute", "between"))
    assert (1000.0, 2, 0.0) == (value(row, "span"), value(row, "warps"), value(row, "imbalance"))
    assert pytest.approx(600 / 700) == value(row, "overlap")


def test_what_found_no_room_is_said(referee: Any) -> None:
    assert SEEN.notes == rung.trace(referee).rows[0].notes[-1:]


def test_a_traced_call_that_takes_longer_is_said(referee: Any) -> None:
    timed = Row(Outcome.PASSED, CASES[1].id, metrics=(Metric("time", 500.0, Unit.NANOSECONDS, "time"),))
    referee.climbed = {"benchmark": RungResult("benchmark", Outcome.PASSED, rows=(timed,))}
    notes = rung.trace(referee).rows[0].notes
    assert "the traced call takes 100 % longer than the timed one: read shares, not times" == notes[0]


def test_warps_without_a_region_are_said(referee: Any) -> None:
    referee.trace = lambda case: replace(SEEN, tracks=(*SEEN.tracks, Track(0, 0, 8, 0.0, 1000.0)))
    notes = rung.trace(referee).rows[0].notes
    assert "1 of 3 warps enter no region: all of their time is between regions" == notes[0]


def with_base(referee: Any, sha256: str = "base", regions: tuple[str, ...] = ("load",)) -> Any:
    """The referee beside a base that loads longer and computes as long."""
    tracks = tuple(replace(each, end_ns=1100.0) for each in SEEN.tracks)
    slower = replace(tracks[0], regions=(Region("load", 0.0, 1000.0),))
    referee.base = SimpleNamespace(
        kernel=SimpleNamespace(sha256=lambda: sha256),
        card=SimpleNamespace(regions=regions),
        trace=lambda case: Trace((slower, tracks[1])),
    )
    return referee


def test_what_differs_from_base_is_said_first(referee: Any) -> None:
    found = rung.trace(with_base(referee))
    assert ("against base: load 500 ns -> 400 ns a warp",) == found.rows[0].notes[:1]
    assert f"trace/softmax/cuda/{CASES[1].id}.base.json" in [artifact.path for artifact in found.artifacts]


def test_a_base_of_the_same_source_is_not_traced(referee: Any) -> None:
    assert SEEN.notes == rung.trace(with_base(referee, "head")).rows[0].notes[-1:]


def test_a_base_without_regions_is_said(referee: Any) -> None:
    notes = rung.trace(with_base(referee, regions=())).rows[0].notes
    assert "base was not traced: its card names no regions" == notes[0]


def test_the_file_is_an_artifact_that_viewers_open(referee: Any, tmp_path: Path) -> None:
    first, second = rung.trace(referee).artifacts
    data = (tmp_path / first.path).read_bytes()
    assert ("trace/softmax/cuda", "trace", len(data)) == (str(Path(first.path).parent), first.kind, first.size_bytes)
    assert first.path != second.path
    assert [] == faults(data)
    assert f"softmax/cuda {CASES[1].id}" == json.loads(data)["otherData"]["title"]


def test_the_host_is_in_the_row_and_in_the_file(referee: Any, tmp_path: Path) -> None:
    found = rung.trace(referee)
    assert (25_000, 0.4, 1) == tuple(value(found.rows[0], f"host_{tag}") for tag in ("call", "share", "launches"))
    events = json.loads((tmp_path / found.artifacts[0].path).read_bytes())["traceEvents"]
    assert {"cuLaunchKernelEx", "softmax"} <= {event["name"] for event in events if event["ph"] == "X"}


def test_a_call_that_can_not_be_followed_costs_the_timeline_alone(referee: Any) -> None:
    def follow(case: Case) -> Followed:
        raise Stop("hang", "no answer within 10 s")

    referee.follow = follow
    row = rung.trace(referee).rows[0]
    assert Outcome.PASSED is row.outcome
    assert "no timeline of the host: hang: no answer within 10 s" == row.notes[0]


def test_a_call_that_fails_is_a_row_and_the_others_go_on(referee: Any) -> None:
    def trace(case: Case) -> Trace:
        if case is CASES[1]:
            raise Stop("gpu-fault", "an illegal address")
        return SEEN

    referee.trace = trace
    assert [Outcome.FAILED, Outcome.PASSED] == [row.outcome for row in rung.trace(referee).rows]


def test_a_trace_of_nothing_is_skipped_with_what_was_found(referee: Any) -> None:
    referee.trace = lambda case: Trace((Track(0, 0, 0, 0.0, 1.0),), notes=("the buffer's header was overwritten",))
    (finding, _) = (row.finding for row in rung.trace(referee).rows)
    assert finding == Finding("no-trace", "the call left no region; the buffer's header was overwritten")


UNTRACEABLE = [
    (SimpleNamespace(regions=(), backend="cuda"), "no-regions", "the card names no regions, so", "mark regions"),
    (SimpleNamespace(regions=("load",), backend="torch"), "not-traceable", "torch has no trace build, so", "--profile"),
]


@pytest.mark.parametrize(("card", "_", "why", "next_step"), UNTRACEABLE)
def test_a_kernel_that_can_not_be_traced_has_the_hosts_timeline(
    referee: Any, tmp_path: Path, card: Any, _: str, why: str, next_step: str
) -> None:
    referee.card, referee.trace = card, None
    found = rung.trace(referee)
    assert [Outcome.PASSED, Outcome.PASSED] == [row.outcome for row in found.rows]
    row, artifact = found.rows[0], found.artifacts[0]
    assert (25_000, 1) == (value(row, "host_call"), value(row, "host_launches"))
    assert row.notes[0].startswith(why)
    assert next_step in row.notes[0]
    data = (tmp_path / artifact.path).read_bytes()
    assert [] == faults(data)
    assert {"cuLaunchKernelEx", "softmax"} <= {event["name"] for event in json.loads(data)["traceEvents"]}


@pytest.mark.parametrize(("card", "reason", "why", "_"), UNTRACEABLE)
def test_without_a_timeline_such_a_kernel_is_skipped(referee: Any, card: Any, reason: str, why: str, _: str) -> None:
    referee.card, referee.follow = card, lambda case: Followed(missing="no CUPTI")
    found = rung.trace(referee)
    assert [Outcome.SKIPPED, Outcome.SKIPPED] == [row.outcome for row in found.rows]
    finding = found.rows[0].finding
    assert finding == Finding(reason, f"{why.removesuffix(', so')}; no timeline of the host: no CUPTI")


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(["load", "compute", "x" * 80]))))
def test_any_trace_gives_metrics_that_a_report_takes(spans: list[tuple[float, float, str]]) -> None:
    regions = [Region(name, begin, begin + length) for begin, length, name in spans]
    tracks = tuple(Track(0, 0, 0, region.begin_ns, region.end_ns, (region,)) for region in regions)
    found = list(rung.metrics(summed(Trace(tracks))))
    assert len({metric.tag for metric in found}) == len(found)
    assert all(isinstance(metric.value, float | int) for metric in found)


def test_it_needs_a_gpu_for_itself_and_stands_on_correctness() -> None:
    (found,) = [each for each in ladder() if each.name == "trace"]
    assert (("correctness",), ("gpu", "quiet")) == (found.after, found.needs)


@pytest.fixture
def report(referee: Any, reports: ModuleType) -> Report:
    """A report with the rung's own rows and artifacts."""
    found = rung.trace(referee)
    result = RungResult("trace", Outcome.PASSED, rows=tuple(found.rows), artifacts=tuple(found.artifacts))
    return reports.report((reports.kernel("softmax/cuda", reports.checked(), result),))


def test_a_comment_shows_the_regions(report: Report) -> None:
    lines = markdown.render(report, Context(page="comment")).splitlines()
    (line,) = [line for line in lines if f"<code>{CASES[1].id}</code>" in line and "<code>load</code>" in line]
    assert "40 %" in line
    assert "800 ns" in line


def test_the_page_shows_the_regions_and_links_the_file(report: Report) -> None:
    page = html.render(report, Context())
    section = page.partition("<h2>Inside the kernel</h2>")[2].partition("<h2>")[0]
    assert "from the host a call takes 25 µs" in section
    tables = re.findall(r"<table>.*?</table>", section, re.DOTALL)
    assert ["traced" in table for table in tables] == [True, False]  # the call, and its regions
    assert "<td><code>load</code></td>" in tables[1]
    assert "40 %" in tables[1]
    assert f'href="{report.kernels[0].rungs[-1].artifacts[0].path}"' in page
