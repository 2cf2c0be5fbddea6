"""The trusted side of the ledger: what a candidate's own record of its GPU work tells against it. Pure.

The record was made beside the kernel, so it can't acquit anybody. A kernel that hides from it has to keep four stories
in agreement: the names, the counts of one call and of many, the work in them, and the referee's own clock.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct

from kernelci.model import Finding, Metric, Unit
from kernelci.units import duration_ns, significant
from kernelci.workbench.activity import Activity, printable
from kernelci.workbench.libraries import library_of, readable, stem
from kernelci.workbench.protocol import Ledger

OWN_SHARE = 0.5  # of the time, at least, outside of libraries and copies
AGREEMENT = 0.05  # between the ledger's time and the referee's window
# Between two dependent nodes of a graph the GPU idles about 1 µs, and CUPTI, which stamps each node, adds as much.
GAP_NS = 2_000.0
STAMP_NS = 500.0  # by which CUPTI's stamps may lengthen a launch, where the window was timed without it
START_NS = 10_000.0  # a single launch may be slower by so much: cold instruction cache, clocks that still rise
LESS_WORK = 0.5  # of what the same number of single calls takes
LONE_CALLS = 8  # from so many launches on, one that takes half of all the time is none of many equal ones
LONE_NS = 100_000.0  # what a busy host or a cold start may add to any one launch
SHOWN = 20
OWN = "own"
COPIES = {"memcpy": "memory copies", "memset": "memory fills", "rest": "unlisted work"}


class Share(Struct, frozen=True):
    """What ran under one name: `owner` is "own", a library's name, what kind of copy it is, or empty if unknown."""

    name: str
    owner: str
    share: float
    per_call: float


class Audited(Struct, frozen=True):
    """What an audit of a case found, from the ledgers of one call and of many.

    `own_share` is None where nobody knows which kernels are the candidate's own.
    `time_ns`: per call, overlaps counted once. `nodes`: of CUDA graphs, as many as ran; 0 outside of graphs.
    `findings`: what is wrong, the kernel's fault before a doubtful measurement.
    """

    kernels_per_call: float = 0.0
    time_ns: float = 0.0
    streams: int = 0
    nodes: int = 0
    own_share: float | None = None
    library_share: float = 0.0
    libraries: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    one: Ledger,
    many: Ledger,
    calls: int,
    window_ns: float,
    symbols: Iterable[str],
    *,
    gap_ns: float = GAP_NS,
    idle_ns: float = 0.0,
    unsure_ns: float = 0.0,
    expected: bool = False,
) -> Audited:
    """Judge the ledgers of one call and of `calls` calls, which the referee timed at `window_ns` altogether.

    `symbols` are those of the compile rung; empty: unknown. `gap_ns`: the idle time that a launch may bring; infinite
    for calls from the host. `idle_ns`: what recording may bring to the window besides. `unsure_ns`: how far off
    `window_ns` may be either way. `expected`: this machine gives ledgers, so that a missing one is suspicious.
    """
    missing = one.missing or many.missing
    if missing:
        text = f"no ledger of the GPU's work: {missing}"
        return Audited(findings=(Finding("ledger-missing", text),)) if expected else Audited(notes=(text,))
    owners = Owners(symbols)
    shares = _shares(many, calls, owners)
    own = sum(share.share for share in shares if share.owner == OWN) if owners.known else None
    library = sum(share.share for share in shares if share.owner not in (OWN, ""))
    kernels = [line for line in many.activities if line.kind == "kernel"]
    findings = [*_whose(shares, library, bool(kernels)), *_counts(one, many, calls)]
    return Audited(
        kernels_per_call=sum(line.count for line in kernels) / calls,
        time_ns=many.busy_ns / calls,
        streams=len({line.stream for line in many.activities}),
        nodes=sum(line.nodes for line in many.activities),
        own_share=own,
        library_share=library,
        libraries=tuple(dict.fromkeys(share.owner for share in shares if share.owner not in (OWN, ""))),
        shares=tuple(shares[:SHOWN]),
        findings=(*findings, *_times(many, window_ns, gap_ns, idle_ns, unsure_ns)),
        notes=_unknown(shares, own),
    )


class Owners:
    """Whose a line of the ledger is."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self._names = {printable(symbol) for symbol in symbols if symbol}
        self._stems = {stem(name) for name in self._names}
        self.known = bool(self._names)

    def owner(self, line: Activity) -> str:
        """ "own", a library, a kind of copy, or empty. A library's unmistakable name counts before any claim to it."""
        if line.kind != "kernel":
            return COPIES[line.kind]
        library = library_of(line.name)
        if library is not None and not library.yours:
            return library.name
        if line.name in self._names:
            return OWN
        if library is not None and self.known:
            return library.name
        return OWN if stem(line.name) in self._stems else ""


def _shares(ledger: Ledger, calls: int, owners: Owners) -> list[Share]:
    """Lines summed by owner and readable name, the longest first."""
    times: dict[tuple[str, str], float] = defaultdict(float)
    counts: Counter[tuple[str, str]] = Counter()
    for line in ledger.activities:
        key = (owners.owner(line), readable(line.name) or line.kind)
        times[key] += line.total_ns
        counts[key] += line.count
    total = sum(times.values()) or 1.0
    found = [Share(name, owner, time / total, counts[owner, name] / calls) for (owner, name), time in times.items()]
    return sorted(found, key=lambda share: (-share.share, share.name))


def _whose(shares: list[Share], library: float, ran: bool) -> list[Finding]:
    """A kernel that nobody knows is no library: other shapes take kernels that the compile rung did not build."""
    if not ran:
        return [Finding("library-call", f"no kernel ran at all{_after(shares)}")]
    if library > 1 - OWN_SHARE:
        return [
            Finding("library-call", f"{_percent(library)} of the time in libraries and copies{_after(shares, 'of it')}")
        ]
    return []


def _unknown(shares: list[Share], own: float | None) -> tuple[str, ...]:
    """What a reader should look at where less than half of the time is known to be the kernel's own."""
    if own is None or own >= OWN_SHARE:
        return ()
    return (f"{_percent(own)} of the time in kernels that the compile rung built{_after(shares)}",)


def _after(shares: list[Share], what: str = "the rest") -> str:
    """The largest that are not its own, to go on with after a sentence."""
    others = [share for share in shares if share.owner != OWN][:3]
    named = [f"{_percent(share.share)} {share.name}{_in(share.owner)}" for share in others]
    return f"; {what}: {', '.join(named)}" if named else ""


def _in(owner: str) -> str:
    return f" ({owner})" if owner else ""


def _percent(share: float) -> str:
    return f"{significant(100 * share, 2)} %"


def _counts(one: Ledger, many: Ledger, calls: int) -> list[Finding]:
    """Many calls must be as many times one call: in launches, in work, and with no launch that does the work of all."""
    texts = filter(None, (_dropped(one, many), _launches(one, many, calls), _work(one, many, calls), _lone(many)))
    return [Finding("ledger-count", text) for text in list(texts)[:1]]


def _dropped(one: Ledger, many: Ledger) -> str:
    lost = one.dropped + many.dropped
    return f"{lost} activities on the GPU were not recorded" if lost else ""


def _launches(one: Ledger, many: Ledger, calls: int) -> str:
    alone, together = _counted(one), _counted(many)
    for launch in sorted(alone.keys() | together.keys()):
        single, found = alone[launch], together[launch]
        if found != single * calls:
            what = f"{readable(launch[1]) or launch[0]}, grid {launch[2]}"
            return f"{what}: {single} launches in one call, {found} in {calls} calls (not {single * calls})"
    return ""


Launch = tuple[str, str, tuple[int, int, int], tuple[int, int, int]]


def _counted(ledger: Ledger) -> Counter[Launch]:
    """Launches by kind, name, grid and block; not by stream, which a graph is free to choose."""
    counts: Counter[Launch] = Counter()
    for line in ledger.activities:
        counts[line.kind, line.name, line.grid, line.block] += line.count
    return counts


def _work(one: Ledger, many: Ledger, calls: int) -> str:
    launches = sum(line.count for line in one.activities)
    single, found = _total_ns(one), _total_ns(many)
    if found >= LESS_WORK * calls * max(0.0, single - launches * START_NS):
        return ""
    return f"one call keeps the GPU busy for {duration_ns(single)}, {calls} calls for {duration_ns(found)}"


def _lone(many: Ledger) -> str:
    for line in many.activities:
        total = max(line.total_ns, line.longest_ns)  # a liar's sum may be smaller
        if line.count >= LONE_CALLS and 2 * line.longest_ns > total + LONE_NS:
            share = _percent(line.longest_ns / total)
            return f"one of {line.count} launches of {readable(line.name) or line.kind} took {share} of their time"
    return ""


def _times(many: Ledger, window_ns: float, gap_ns: float, idle_ns: float, unsure_ns: float) -> list[Finding]:
    """The GPU can't have worked longer than the referee waited, nor idled more than launches explain."""
    busy, launches = many.busy_ns, sum(line.count for line in many.activities)
    text = f"the ledger holds {duration_ns(busy)} of work, the referee waited {duration_ns(window_ns)}"
    if busy > (1 + AGREEMENT) * (window_ns + unsure_ns) + launches * STAMP_NS:
        return [Finding("ledger-time", text)]
    if launches and busy + launches * gap_ns + idle_ns < (1 - AGREEMENT) * (window_ns - unsure_ns):
        return [Finding("ledger-time", f"{text}; recording {launches} launches doesn't explain it")]
    return []


def _total_ns(ledger: Ledger) -> float:
    return sum(line.total_ns for line in ledger.activities)


def metrics(audited: Audited) -> tuple[Metric, ...]:
    """What a row shows of an audit; nothing where there was no ledger."""
    if not audited.shares:
        return ()
    found = [
        Metric("ledger_time", audited.time_ns, Unit.NANOSECONDS, "time in the ledger", "GPU work per call, by CUPTI"),
        Metric("kernels_per_call", audited.kernels_per_call, Unit.COUNT, "kernels per call", "launches, by CUPTI"),
    ]
    if audited.own_share is not None:
        text = "share of the GPU's work in kernels that the compile rung built"
        found.append(Metric("own_share", audited.own_share, Unit.FRACTION, "own share", text))
    return tuple(found)
