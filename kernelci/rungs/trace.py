"""trace: what each warp was doing inside the kernel, and when: a table of regions and a file for Perfetto.

Beside it what host and GPU did in calls of the kernel as it is: launches, and the time between them.
"""

from collections.abc import Iterator
from pathlib import Path

from kernelci import backends, units
from kernelci.compiling.builder import representative
from kernelci.errors import Stop
from kernelci.model import Artifact, Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, kept, rung, safe
from kernelci.tracing import chrome, comparing, table
from kernelci.tracing.regions import GAP, Trace
from kernelci.tracing.table import Table
from kernelci.workbench import timeline
from kernelci.workbench.activity import printable
from kernelci.workbench.protocol import Followed

FOLDER = "trace"
CASES = 4  # one for each dtype, so many at most
NOTES = 8
CHANGES = 4  # against base, that are told
APART = 0.25  # a traced call that takes longer than a timed one by more than this is told so
NO_REGION = "between"
NEXT = {  # what to do for more than the host's timeline
    "no-regions": 'mark regions in the kernel and list them, `regions = ["load", "compute"]` (docs/trace.md)',
    "not-traceable": "`--profile all` shows more",
}


@rung("trace", after=("correctness",), needs=("gpu", "quiet"))
def trace(referee: Referee) -> Findings:
    """One row per case that is traced: the first bench case of each dtype."""
    without = _untraceable(referee)
    found = Findings()
    for case in choose(referee):
        try:
            if without is None:
                _look(referee, case, found)
            else:
                _look_from_host(referee, case, found, without)
        except Stop as stop:
            found.rows.append(failed(referee, stop, case, rung="trace"))
    return found


def _untraceable(referee: Referee) -> Stop | None:
    """Why nothing can be seen of the kernel's inside."""
    if not hasattr(backends.get(referee.card.backend), "traced"):
        return Stop("not-traceable", f"{referee.card.backend} has no trace build")
    return None if referee.card.regions else Stop("no-regions", "the card names no regions")


def choose(referee: Referee) -> tuple[Case, ...]:
    """The cases that are traced. Raises Stop("no-cases") where none is left."""
    cases = [case for case in referee.cases() if referee.why_not(case) is None]
    timed = [case for case in cases if case.kind == "bench"]
    chosen = representative(timed or cases)[:CASES]
    if not chosen:
        raise Stop("no-cases", "no case to trace")
    return chosen


def _look(referee: Referee, case: Case, found: Findings) -> None:
    seen: Trace = referee.trace(case)
    if not any(track.regions for track in seen.tracks):
        raise Stop("no-trace", "; ".join(("the call left no region", *seen.notes))[:2000])
    summed, followed = table.summed(seen), _followed(referee, case)
    host = timeline.call_times(followed)
    found.artifacts.append(_file(referee, case, seen, ".json", followed))
    changes = tuple(_against_base(referee, case, summed, found))
    notes = (*changes, *_apart(referee, case, summed), *_idle(seen), *timeline.told(host), *seen.notes)[:NOTES]
    found.rows.append(Row(Outcome.PASSED, case.id, metrics=(*metrics(summed), *timeline.metrics(host)), notes=notes))


def _look_from_host(referee: Referee, case: Case, found: Findings, without: Stop) -> None:
    """The host's timeline alone. Raises `without` where there is none either."""
    followed = _followed(referee, case)
    host = timeline.call_times(followed)
    if not host.calls:
        raise Stop(without.reason, "; ".join((without.message, *host.notes))[:2000])
    found.artifacts.append(_file(referee, case, Trace(), ".json", followed))
    why = f"{without.message}, so this is the call as the host sees it alone: {NEXT[without.reason]}"
    notes = (why, *timeline.told(host))[:NOTES]
    found.rows.append(Row(Outcome.PASSED, case.id, metrics=timeline.metrics(host), notes=notes))


def _followed(referee: Referee, case: Case) -> Followed:
    """What host and GPU do in calls of the kernel as it is; what goes wrong there costs the timeline alone."""
    try:
        found: Followed = referee.follow(case)
    except Stop as stop:
        return Followed(missing=printable(f"{stop.reason}: {stop.message}", 1000))
    return found


def metrics(summed: Table) -> Iterator[Metric]:
    """A line for each region, and what holds for the call."""
    yield Metric("span", summed.span_ns, Unit.NANOSECONDS, "traced", "from the first warp's begin to the last's end")
    yield Metric("warps", summed.warps, Unit.COUNT, "warps", "that are in the trace")
    yield Metric("sms", summed.sms, Unit.COUNT, "multiprocessors", "that had a warp")
    if summed.overlap is not None:
        text = "of a multiprocessor's copying or computing, whichever is less, in which it does both"
        yield Metric("overlap", summed.overlap, Unit.FRACTION, "overlap", text)
    text = "by how much the multiprocessor that is busy longest exceeds the mean"
    yield Metric("imbalance", summed.imbalance, Unit.FRACTION, "imbalance", text)
    for line in summed.lines:
        name = line.name if line.name != GAP else NO_REGION
        yield Metric(f"share:{name}", line.share, Unit.FRACTION, "share", "of all warps' lifetimes")
        yield Metric(f"time:{name}", line.time_ns / summed.warps, Unit.NANOSECONDS, "time of a warp", "the mean")
        yield Metric(f"visits:{name}", line.count, Unit.COUNT, "visits", "of all warps")
        yield Metric(f"visit:{name}", line.mean_ns, Unit.NANOSECONDS, "a visit", "the mean, with what lies inside")
        yield Metric(f"longest:{name}", line.longest_ns, Unit.NANOSECONDS, "longest visit")


def _apart(referee: Referee, case: Case, summed: Table) -> Iterator[str]:
    """Whether the traced call is another than the timed one: marks cost time, and hold the compiler back."""
    timed = referee.climbed["benchmark"].rows if "benchmark" in referee.climbed else ()
    times = (float(each.value) for row in timed if row.case == case.id for each in row.metrics if each.tag == "time")
    time = next(times, 0.0)
    if time and summed.span_ns / time - 1 > APART:
        more = units.value(summed.span_ns / time - 1, Unit.FRACTION)
        yield f"the traced call takes {more} longer than the timed one: read shares, not times"


def _idle(seen: Trace) -> Iterator[str]:
    """Warps that mark nothing, as those beside a producer: their lives are in no region."""
    idle = sum(not track.regions for track in seen.tracks)
    if idle:
        yield f"{idle} of {len(seen.tracks)} warps enter no region: all of their time is between regions"


def _against_base(referee: Referee, case: Case, head: Table, found: Findings) -> Iterator[str]:
    """In which regions a warp spends more or less time than base's; nothing where both are of the same source."""
    if referee.base is None or referee.base.kernel.sha256() == referee.kernel.sha256():
        return
    try:
        if not referee.base.card.regions:
            raise Stop("no-regions", "its card names no regions")
        seen: Trace = referee.base.trace(case)
    except Stop as stop:
        yield f"base was not traced: {stop.message}"[:500]
        return
    found.artifacts.append(_file(referee, case, seen, ".base.json"))
    yield from (f"against base: {text}" for text in comparing.changes(table.summed(seen), head)[:CHANGES])


def _file(referee: Referee, case: Case, seen: Trace, ending: str, followed: Followed | None = None) -> Artifact:
    path = Path(FOLDER) / referee.kernel.name / f"{safe(case.id)}{ending}"
    host = timeline.events(followed) if followed is not None else []
    content = chrome.encode(seen, f"{referee.kernel.name} {case.id}", host)
    return kept(referee, path, content, "trace")
