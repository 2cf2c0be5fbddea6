"""A trace summed up: time per region, how much of copying is hidden behind computing, how even multiprocessors are."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from kernelci.tracing.regions import GAP, Region, Trace

# What a region does follows from its name's first word: `load`, `load_a`, `compute_scores`.
COPY = ("load", "copy", "store", "prefetch")
COMPUTE = ("compute", "multiply", "mma", "gemm", "reduce")
Span = tuple[float, float]


class Line(Struct, frozen=True):
    """One region over all tracks. `share` is of all tracks' lifetimes; regions inside it count for themselves.

    `busy_warps`: tracks that have it.
    """

    name: str
    time_ns: float
    share: float
    count: int
    mean_ns: float
    longest_ns: float
    busy_warps: int


class Table(Struct, frozen=True):
    """The lines, the longest first and the gaps last; their times add up to `lifetime_ns`.

    `span_ns`: from the first track's beginning to the last one's end. `overlap`: the part of a multiprocessor's copying
    or computing, whichever is less, during which it also does the other; None where it does only one of them.
    `imbalance`: by how much the multiprocessor that is busy longest exceeds the mean, as a part of that.
    """

    lines: tuple[Line, ...]
    lifetime_ns: float
    span_ns: float
    warps: int
    sms: int
    overlap: float | None
    imbalance: float

    def line(self, name: str) -> Line | None:
        """The line of this region."""
        return next((line for line in self.lines if line.name == name), None)


def summed(trace: Trace) -> Table:
    """The table of a trace; one of nothing has no lines."""
    pieces = [(track.sm, number, piece) for number, track in enumerate(trace.tracks) for piece in track.pieces()]
    lifetime = sum(track.lifetime_ns for track in trace.tracks)
    span = 0.0
    if trace.tracks:
        span = max(track.end_ns for track in trace.tracks) - min(track.begin_ns for track in trace.tracks)
    return Table(
        _lines(trace, pieces, lifetime), lifetime, span, len(trace.tracks), len({track.sm for track in trace.tracks}),
        _overlap(pieces), _imbalance(trace),
    )  # fmt: skip


def _lines(trace: Trace, pieces: list[tuple[int, int, Region]], lifetime: float) -> tuple[Line, ...]:
    times: dict[str, float] = defaultdict(float)
    for _, _, piece in pieces:
        times[piece.name] += piece.end_ns - piece.begin_ns
    lengths: dict[str, list[float]] = defaultdict(list)
    warps: dict[str, set[int]] = defaultdict(set)
    for number, track in enumerate(trace.tracks):
        for region in track.regions:
            lengths[region.name].append(region.end_ns - region.begin_ns)
            warps[region.name].add(number)
    for _, number, piece in pieces:
        if piece.name == GAP:
            lengths[GAP].append(piece.end_ns - piece.begin_ns)
            warps[GAP].add(number)
    found = [
        Line(
            *(name, times[name], times[name] / lifetime if lifetime else 0.0, len(each), sum(each) / len(each)),
            *(max(each), len(warps[name])),
        )
        for name, each in lengths.items()
    ]
    return tuple(sorted(found, key=lambda line: (line.name == GAP, -line.time_ns, line.name)))


def kind_of(name: str) -> str:
    """`copy`, `compute`, or nothing: by the first word of a region's name."""
    word = name.split("_")[0]
    return "copy" if word in COPY else "compute" if word in COMPUTE else ""


def _overlap(pieces: list[tuple[int, int, Region]]) -> float | None:
    spans: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for sm, _, piece in pieces:
        if kind := kind_of(piece.name):
            spans[sm, kind].append((piece.begin_ns, piece.end_ns))
    both = least = 0.0
    for sm in {sm for sm, _ in spans}:
        copy, compute = (joined(spans.get((sm, kind), ())) for kind in ("copy", "compute"))
        both += _length(_common(copy, compute))
        least += min(_length(copy), _length(compute))
    return both / least if least else None


def _imbalance(trace: Trace) -> float:
    spans: dict[int, list[Span]] = defaultdict(list)
    for track in trace.tracks:
        spans[track.sm].append((track.begin_ns, track.end_ns))
    busy = [_length(joined(each)) for each in spans.values()]
    mean = sum(busy) / len(busy) if busy else 0.0
    return max(busy) / mean - 1 if mean else 0.0


def joined(spans: Iterable[Span]) -> list[Span]:
    """The union of spans, as spans apart from each other, in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _common(some: list[Span], others: list[Span]) -> list[Span]:
    """Where spans of both lists are; each list is a union in order."""
    found: list[Span] = []
    left = right = 0
    while left < len(some) and right < len(others):
        begin, end = max(some[left][0], others[right][0]), min(some[left][1], others[right][1])
        if begin < end:
            found.append((begin, end))
        if some[left][1] < others[right][1]:
            left += 1
        else:
            right += 1
    return found


def _length(spans: list[Span]) -> float:
    return sum(end - begin for begin, end in spans)
