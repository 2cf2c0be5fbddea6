"""Where a call's time goes between host and GPU: tracks for a viewer, and a few figures. Pure.

It comes from a candidate's own record (kernelci.workbench.chronicle), so it explains and decides nothing. CUPTI makes
each launch a few microseconds dearer than it is.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from kernelci.model import Metric, Unit
from kernelci.units import duration
from kernelci.workbench.happening import HOST, Happening
from kernelci.workbench.libraries import readable
from kernelci.workbench.protocol import Followed

HOST_PROCESS, GPU_PROCESS = 1_000_000, 1_000_001  # multiprocessors are processes 0, 1 …
NOTABLE = 0.1  # of a call: an idle time as long as this is told


class Gap(Struct, frozen=True):
    """The GPU had nothing to do between two pieces of work of one call; the readable name of the later one."""

    length_ns: int
    before: str


class Account(Struct, frozen=True):
    """Of the median call, in ns: `call` from the entry's beginning to the end of the last work that it started, `entry`
    until the entry returned, `busy` while the GPU worked, `api` while the host was inside of CUDA's functions.

    `launch`: from the beginning of an API call to that of the work that it started, the median of all. `launches` and
    `gaps` (the longest first) of a call.
    """

    calls: int = 0
    call_ns: float = 0.0
    entry_ns: float = 0.0
    busy_ns: float = 0.0
    api_ns: float = 0.0
    launch_ns: float = 0.0
    launches: float = 0.0
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def idle_share(self) -> float:
        """The part of a call in which the GPU does nothing: the host's share of the time."""
        return max(0.0, 1 - self.busy_ns / self.call_ns) if self.call_ns else 0.0


class One(Struct, frozen=True):
    """A call and what belongs to it: works of the GPU and API calls that began before the wait for them ended."""

    entry: Happening
    works: tuple[Happening, ...]
    functions: tuple[Happening, ...]

    @property
    def span_ns(self) -> int:
        """From the entry's beginning to the last work's end; without work, until it returned."""
        return max([work.end_ns for work in self.works], default=self.entry.end_ns) - self.entry.start_ns

    def gaps(self) -> list[Gap]:
        """The GPU's idle times between its works, in order."""
        found, until = [], self.works[0].end_ns if self.works else 0
        for work in self.works[1:]:
            if work.start_ns > until:
                found.append(Gap(work.start_ns - until, shown(work)))
            until = max(until, work.end_ns)
        return found


def account(followed: Followed) -> Account:
    """The figures. What was not recorded is a note."""
    if followed.missing:
        return Account(notes=(f"no timeline of the host: {followed.missing}",))
    calls = split(followed.happenings)
    if not calls:
        return Account(notes=("no timeline of the host: no call was recorded",))
    middle = sorted(calls, key=lambda one: one.span_ns)[len(calls) // 2]
    delays = _delays(followed.happenings)
    return Account(
        calls=len(calls),
        call_ns=middle.span_ns,
        entry_ns=middle.entry.end_ns - middle.entry.start_ns,
        busy_ns=covered(middle.works),
        api_ns=covered([each for each in middle.functions if each.start_ns < middle.entry.end_ns]),
        launch_ns=median(delays) if delays else 0.0,
        launches=len(middle.works),
        gaps=tuple(sorted(middle.gaps(), key=lambda gap: -gap.length_ns)),
        notes=(f"{followed.dropped} records of the host's timeline were lost",) if followed.dropped else (),
    )


def split(happenings: Sequence[Happening]) -> list[One]:
    """The calls, in order; what lies in none of them is left out."""
    entries = [each for each in happenings if each.kind == "call"]
    waits = [each for each in happenings if each.kind == "wait"]
    found = []
    for entry, wait in zip(entries, waits, strict=False):
        within = [each for each in happenings if entry.start_ns <= each.start_ns < max(wait.end_ns, entry.end_ns)]
        works = sorted((each for each in within if each.kind not in HOST), key=lambda each: each.start_ns)
        found.append(One(entry, tuple(works), tuple(each for each in within if each.kind == "api" and each.lane == 0)))
    return found


def covered(spans: Sequence[Happening]) -> int:
    """The time in which at least one of them was."""
    total, until = 0, 0
    for each in sorted(spans, key=lambda one: one.start_ns):
        total += max(0, each.end_ns - max(each.start_ns, until))
        until = max(until, each.end_ns)
    return total


def _delays(happenings: Sequence[Happening]) -> list[int]:
    """From API calls to the work that they started, by correlation; of several with one number the first."""
    begins: dict[int, int] = {}
    for each in happenings:
        if each.kind == "api" and each.correlation:
            begins.setdefault(each.correlation, each.start_ns)
    works = (each for each in happenings if each.kind not in HOST and each.correlation in begins)
    return [max(0, each.start_ns - begins[each.correlation]) for each in works]


def shown(one: Happening) -> str:
    """A readable name: of a kernel its own, of a copy its direction."""
    if one.kind == "kernel":
        return readable(one.name) or "kernel"
    return f"{one.kind} {one.name}".strip()


def metrics(found: Account) -> tuple[Metric, ...]:
    """What a row shows; nothing where there was no timeline."""
    if not found.calls:
        return ()
    longest = found.gaps[0].length_ns if found.gaps else 0
    text = "of a call from the host, followed by CUPTI, which slows each launch"
    ns = Unit.NANOSECONDS
    return (
        Metric("host_call", found.call_ns, ns, "call from host", f"until its last GPU work ended; {text}"),
        Metric("host_entry", found.entry_ns, ns, "host code", "until the entry returned"),
        Metric("host_api", found.api_ns, ns, "in CUDA's API", "part of the host code inside of CUDA's functions"),
        Metric("host_busy", found.busy_ns, ns, "GPU at work", "during that call, overlaps counted once"),
        Metric("host_share", found.idle_share, Unit.FRACTION, "host share", "part of the call with an idle GPU"),
        Metric("host_launches", found.launches, Unit.COUNT, "launches", "kernels, copies and fills of a call"),
        Metric("launch_latency", found.launch_ns, ns, "launch latency", "from the API call to the work's beginning"),
        Metric("launch_gap", longest, ns, "longest launch gap", "idle GPU between two works of the call"),
    )


def told(found: Account) -> Iterator[str]:
    """What is worth a line of a row."""
    yield from found.notes
    if found.gaps and found.gaps[0].length_ns >= NOTABLE * found.call_ns:
        gap = found.gaps[0]
        yield f"the GPU idles {duration(gap.length_ns * 1e-9)} before {gap.before}"


def events(followed: Followed) -> list[dict[str, Any]]:
    """The timeline in the Trace Event Format: host threads, GPU streams, and an arrow from each launch to its work."""
    found = [_named("process_name", HOST_PROCESS, 0, "host (other calls than the traced ones)")]
    found.append(_named("process_name", GPU_PROCESS, 0, "GPU, as the host sees it"))
    found += [
        {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid - HOST_PROCESS - 2}}
        for pid in (HOST_PROCESS, GPU_PROCESS)
    ]
    for pid, lane in sorted({_place(each) for each in followed.happenings}):
        found.append(_named("thread_name", pid, lane, f"stream {lane}" if pid == GPU_PROCESS else f"thread {lane}"))
    found += [_complete(each) for each in followed.happenings]
    return [*found, *_arrows(followed.happenings)]


def _place(one: Happening) -> tuple[int, int]:
    return (HOST_PROCESS if one.kind in HOST else GPU_PROCESS, one.lane)


def _complete(one: Happening) -> dict[str, Any]:
    pid, lane = _place(one)
    begin, end = one.start_ns / 1e3, one.end_ns / 1e3
    event = {"ph": "X", "name": shown(one), "cat": one.kind, "ts": begin, "dur": round(end - begin, 3)}
    return event | {"pid": pid, "tid": lane}


def _arrows(happenings: Sequence[Happening]) -> Iterator[dict[str, Any]]:
    sources = {each.correlation: each for each in reversed(happenings) if each.kind == "api" and each.correlation}
    for each in happenings:
        source = sources.get(each.correlation)
        if each.kind in HOST or source is None or source.start_ns > each.start_ns:
            continue
        for phase, one, more in (("s", source, {}), ("f", each, {"bp": "e"})):
            pid, lane = _place(one)
            base = {"ph": phase, "name": "launch", "cat": "launch", "id": each.correlation, "ts": one.start_ns / 1e3}
            yield base | {"pid": pid, "tid": lane} | more


def _named(name: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": text}}
