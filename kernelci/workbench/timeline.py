"""Where a call's time goes between host and GPU: tracks for a viewer, and a few figures. Pure.

It comes from a candidate's own record (kernelci.workbench.chronicle), so it explains and decides nothing. CUPTI makes
each launch a few microseconds dearer than it is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from msgspec import Struct

from kernelci.model import Metric, Unit
from kernelci.tracing import chrome
from kernelci.units import duration_ns
from kernelci.workbench.axes import OneCall, launches, shift_ns, split, together
from kernelci.workbench.happening import HOST, Happening
from kernelci.workbench.libraries import readable
from kernelci.workbench.protocol import Followed

HOST_PROCESS, GPU_PROCESS = 1_000_000, 1_000_001  # multiprocessors are processes 0, 1 …
ROWS = 8  # of a lane that viewers show
NOTABLE = 0.1  # of a call: an idle time as long as this is told


class Gap(Struct, frozen=True):
    """The GPU had nothing to do between two pieces of work of one call; the readable name of the later one."""

    length_ns: int
    before: str


class CallTimes(Struct, frozen=True):
    """Of the median call, in ns: `call` from the entry's beginning to the end of the last work that it started, `entry`
    until the entry returned, `busy` while the GPU worked, `api` while the host was inside of CUDA's functions.

    `launch`: from the beginning of an API call to that of the work that it started, the median of all; None where the
    two clocks are `apart`, by so many ns. `launches` and `gaps` (the longest first) of a call.
    """

    calls: int = 0
    call_ns: float = 0.0
    entry_ns: float = 0.0
    busy_ns: float = 0.0
    api_ns: float = 0.0
    launch_ns: float | None = None
    launches: float = 0.0
    apart_ns: int = 0
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def idle_share(self) -> float:
        """The part of a call in which the GPU does nothing: the host's share of the time."""
        return max(0.0, 1 - self.busy_ns / self.call_ns) if self.call_ns else 0.0


def call_times(followed: Followed) -> CallTimes:
    """The median call's figures. What was not recorded is a note."""
    if followed.missing:
        return CallTimes(notes=(f"no timeline of the host: {followed.missing}",))
    told = split(followed.happenings)
    if not told:
        return CallTimes(notes=("no timeline of the host: no call was recorded",))
    calls = [together(one) for one in told]
    middle = sorted(calls, key=span_ns)[len(calls) // 2]
    delays = [delay for one in calls for delay in _delays(one)]
    apart = max(abs(shift_ns(one)) for one in told)
    return CallTimes(
        calls=len(calls),
        call_ns=span_ns(middle),
        entry_ns=middle.entry.end_ns - middle.entry.start_ns,
        busy_ns=covered(middle.works),
        api_ns=covered([each for each in middle.functions if each.lane == 0 and each.start_ns < middle.entry.end_ns]),
        launch_ns=median(delays) if delays and not apart else None,
        launches=len(middle.works),
        gaps=tuple(sorted(gaps(middle.works), key=lambda gap: -gap.length_ns)),
        apart_ns=apart,
        notes=(f"{followed.dropped} records of the host's timeline were lost",) if followed.dropped else (),
    )


def gaps(works: Sequence[Happening]) -> list[Gap]:
    """The GPU's idle times between works, in order."""
    found, until = [], works[0].end_ns if works else 0
    for work in works[1:]:
        if work.start_ns > until:
            found.append(Gap(work.start_ns - until, shown(work)))
        until = max(until, work.end_ns)
    return found


def span_ns(one: OneCall) -> int:
    """From the entry's beginning to the last work's end; without work, until it returned."""
    return max([work.end_ns for work in one.works], default=one.entry.end_ns) - one.entry.start_ns


def covered(spans: Sequence[Happening]) -> int:
    """The time in which at least one of them was."""
    total, until = 0, 0
    for each in sorted(spans, key=lambda one: one.start_ns):
        total += max(0, each.end_ns - max(each.start_ns, until))
        until = max(until, each.end_ns)
    return total


def _delays(one: OneCall) -> Iterator[int]:
    """From API calls to the works that they started."""
    begins = launches(one.functions)
    works = (work for work in one.works if work.correlation in begins)
    return (max(0, work.start_ns - begins[work.correlation]) for work in works)


def shown(one: Happening) -> str:
    """A readable name: a kernel's and a function's own, of a copy its direction."""
    if one.kind in ("memcpy", "memset"):
        return f"{one.kind} {one.name}".strip()
    return readable(one.name) or one.kind


def metrics(times: CallTimes) -> tuple[Metric, ...]:
    """What a row shows; nothing where there was no timeline."""
    if not times.calls:
        return ()
    longest = times.gaps[0].length_ns if times.gaps else 0
    text = "from the entry's begin to its last GPU work's end, followed by CUPTI, which slows each launch"
    ns = Unit.NANOSECONDS
    latency = "from the API call to the work's beginning"
    launch = (
        () if times.launch_ns is None else (Metric("launch_latency", times.launch_ns, ns, "launch latency", latency),)
    )
    return (
        Metric("host_call", times.call_ns, ns, "call from host", text),
        Metric("host_share", times.idle_share, Unit.FRACTION, "host share", "part of the call with an idle GPU"),
        Metric("host_launches", times.launches, Unit.COUNT, "launches", "kernels, copies and fills of a call"),
        *launch,
        Metric("launch_gap", longest, ns, "longest launch gap", "idle GPU between two works of the call"),
    )


def told(times: CallTimes) -> Iterator[str]:
    """What is worth a line of a row."""
    yield from times.notes
    if not times.calls:
        return
    parts = [duration_ns(each) for each in (times.call_ns, times.entry_ns, times.api_ns, times.busy_ns)]
    yield "from the host a call takes {}: {} of host code, {} of it in CUDA's API; the GPU works for {}".format(*parts)
    if times.apart_ns:
        apart = duration_ns(times.apart_ns)
        yield f"CUPTI has the clocks of host and GPU up to {apart} apart: GPU work is moved after its launch"
    if times.gaps and times.gaps[0].length_ns >= NOTABLE * times.call_ns:
        gap = times.gaps[0]
        yield f"the GPU idles {duration_ns(gap.length_ns)} before {gap.before}"


def events(followed: Followed) -> list[dict[str, Any]]:
    """The timeline in the Trace Event Format: host threads, GPU streams, and an arrow from each launch to its work."""
    if not followed.happenings:
        return []
    placed = _placed(_together(followed.happenings))
    found = []
    for pid, name in (
        (HOST_PROCESS, "host (other calls than the traced ones)"),
        (GPU_PROCESS, "GPU as the host sees it"),
    ):
        found.append(chrome.named("process_name", pid, 0, name))
        order = {"sort_index": pid - GPU_PROCESS - 1}  # above the multiprocessors
        found.append({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": order})
    threads: dict[Place, int] = {}
    for one, place in placed:
        if place not in threads:
            threads[place] = len(threads)
            lane = f"stream {one.lane}" if place.pid == GPU_PROCESS else f"thread {one.lane}"
            lane += f", row {place.row}" if place.row else ""
            found.append(chrome.named("thread_name", place.pid, threads[place], lane))
    found += [_complete(one, place.pid, threads[place]) for one, place in placed]
    return [*found, *_arrows(placed, threads)]


def _together(happenings: Sequence[Happening]) -> list[Happening]:
    """All of them, with calls' works on the host's axis."""
    calls = split(happenings)
    within = {id(work) for one in calls for work in one.works}
    moved = [work for one in calls for work in together(one).works]
    return [*(each for each in happenings if id(each) not in within), *moved]


class Place(NamedTuple):
    """Where something is shown; `row` above 0 where it would cross what is in that lane already."""

    pid: int
    lane: int
    row: int


Placed = list[tuple[Happening, Place]]


def _placed(happenings: Sequence[Happening]) -> Placed:
    """Rows in which everything nests, as viewers want it; what needs more than ROWS of them is left out."""
    ends: dict[Place, list[int]] = defaultdict(list)
    found: Placed = []
    for one in sorted(happenings, key=lambda each: (each.start_ns, -each.end_ns)):
        pid = HOST_PROCESS if one.kind in HOST else GPU_PROCESS
        for place in (Place(pid, one.lane, row) for row in range(ROWS)):
            inside = ends[place]
            while inside and inside[-1] <= one.start_ns:
                inside.pop()
            if not inside or one.end_ns <= inside[-1]:
                inside.append(one.end_ns)
                found.append((one, place))
                break
    return found


def _complete(one: Happening, pid: int, thread: int) -> dict[str, Any]:
    begin, end = one.start_ns / 1e3, one.end_ns / 1e3
    return {
        "ph": "X",
        "name": shown(one),
        "cat": one.kind,
        "ts": begin,
        "dur": round(end - begin, 3),
        "pid": pid,
        "tid": thread,
    }


def _arrows(placed: Placed, threads: dict[Place, int]) -> Iterator[dict[str, Any]]:
    sources = {
        one.correlation: (one, place) for one, place in reversed(placed) if one.kind == "api" and one.correlation
    }
    for one, place in placed:
        if one.kind in HOST or one.correlation not in sources:
            continue
        source, start = sources[one.correlation]
        if source.start_ns <= one.start_ns:
            base = {"name": "launch", "cat": "launch", "id": one.correlation}
            yield {"ph": "s", "ts": source.start_ns / 1e3, "pid": start.pid, "tid": threads[start], **base}
            yield {"ph": "f", "ts": one.start_ns / 1e3, "pid": place.pid, "tid": threads[place], "bp": "e", **base}
