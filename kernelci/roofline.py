"""The roofline of one case: what bounds its time, how close it is, and whether to go on. Pure.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model" (2009): a kernel's rate is bounded by
bandwidth times intensity, and by the peak. Ceilings are those that this GPU reached in this run.
"""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

STOP = 0.9  # of the ceiling that binds: what is left is rarely worth the work
ABOVE = 1.02  # of the datasheet's: nothing runs faster than that
MORE_BYTES, FEWER_BYTES = 1.15, 0.85  # DRAM bytes over those of the formula
FEW_LAUNCHES = 3.0  # a case whose limit is below so many empty calls is bound by latency
EMPTY_CALLS = 1.5  # empty calls that a short kernel may take beside its limit


class Bound(StrEnum):
    """What a case's time is bound by."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"


class Advice(StrEnum):
    """What to do next."""

    STOP = "stop"
    GO_ON = "go on"
    WRONG = "formula wrong"


class Ceilings(Struct, frozen=True):
    """What the GPU reaches: byte/s and FLOP/s, measured in this run and by its datasheet (0: not known).

    `empty_ns` is what a call of an empty kernel takes; `peak_measured`: whether the peak is.
    """

    bytes_per_s: float
    flops_per_s: float
    sheet_bytes_per_s: float = 0.0
    sheet_flops_per_s: float = 0.0
    empty_ns: float = 0.0
    peak_measured: bool = True
    l2_bytes: int = 0
    """What was written may still be there when a call ends."""

    @property
    def ridge(self) -> float:
        """The intensity, FLOP/byte, from which on the peak binds."""
        return self.flops_per_s / self.bytes_per_s if self.bytes_per_s else 0.0


class Work(Struct, frozen=True):
    """What a case must do by its formula, its time, ns, and its DRAM bytes where a profile counted them."""

    flops: float
    bytes: float
    time_ns: float
    dram_bytes: float | None = None

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes if self.bytes else float("inf") if self.flops else 0.0


class Place(Struct, frozen=True):
    """Where a case stands: shares are of 1, `limit_ns` is the time at the measured ceilings."""

    work: Work
    ceilings: Ceilings
    bound: Bound
    limit_ns: float
    attained: float
    of_datasheet: float
    """0 where the datasheet is not known."""
    advice: Advice
    text: str


def place(work: Work, ceilings: Ceilings, hints: tuple[str, ...] = (), stop: float = STOP) -> Place:
    """Place a case under the roof. `hints`: what its machine code or profile says to try, the likeliest first."""
    limit_ns, bound = _limit(work, ceilings.bytes_per_s, ceilings.flops_per_s)
    sheet_ns, _ = _limit(work, ceilings.sheet_bytes_per_s, ceilings.sheet_flops_per_s)
    if limit_ns < FEW_LAUNCHES * ceilings.empty_ns:
        bound = Bound.LATENCY
    attained, of_sheet = limit_ns / work.time_ns, sheet_ns / work.time_ns
    wrong = tuple(_wrong(work, of_sheet, ceilings.l2_bytes))
    close = attained >= stop or (bound is Bound.LATENCY and work.time_ns <= limit_ns + EMPTY_CALLS * ceilings.empty_ns)
    advice = Advice.WRONG if wrong else Advice.STOP if close else Advice.GO_ON
    found = Place(work, ceilings, bound, limit_ns, attained, of_sheet, advice, "")
    said = wrong or (_close(found), *_next(found, stop, hints))
    return Place(
        work, ceilings, bound, limit_ns, attained, of_sheet, advice, f"{advice}: {'; '.join(filter(None, said))}"
    )


def _limit(work: Work, bytes_per_s: float, flops_per_s: float) -> tuple[float, Bound]:
    """The time, ns, that both ceilings allow, and which of them binds."""
    memory = 1e9 * work.bytes / bytes_per_s if bytes_per_s else 0.0
    compute = 1e9 * work.flops / flops_per_s if flops_per_s else 0.0
    return max(memory, compute), Bound.MEMORY if memory >= compute else Bound.COMPUTE


def _wrong(work: Work, of_sheet: float, l2_bytes: int) -> Iterator[str]:
    if of_sheet > ABOVE:
        yield f"faster than the datasheet allows ({_percent(of_sheet)}): the cost says more work than is done"
    if work.dram_bytes is not None and work.dram_bytes < FEWER_BYTES * (work.bytes - l2_bytes):
        share = _percent(work.dram_bytes / work.bytes)
        yield f"DRAM moved {share} of the formula's bytes: work is left out, or the cost is too high"


def _close(found: Place) -> str:
    """How close it is to what binds it."""
    if found.bound is Bound.LATENCY:
        empty = f"an empty call takes {found.ceilings.empty_ns / 1e3:.3g} µs"
        alone = f"the work alone {found.limit_ns / 1e3:.3g} µs"
        return f"bound by latency: {found.work.time_ns / 1e3:.3g} µs, {empty}, {alone}"
    ceiling = "a copy's bandwidth" if found.bound is Bound.MEMORY else "the matmul peak"
    known = "" if found.ceilings.peak_measured or found.bound is Bound.MEMORY else " by the datasheet"
    return f"{_percent(found.attained)} of {ceiling}{known}, bound by {found.bound}"


def _next(found: Place, stop: float, hints: tuple[str, ...]) -> Iterator[str]:
    """What is left to gain, what to try, and which limit comes then."""
    if found.advice is Advice.STOP:
        return
    work = found.work
    moved = work.dram_bytes / work.bytes if work.dram_bytes is not None and work.bytes else 1.0
    if moved > MORE_BYTES and found.bound is not Bound.LATENCY:
        yield f"DRAM moved {moved:.2g} times the formula's bytes: something is read or written more than once"
    yield from hints[:2]
    if not hints and found.bound is Bound.LATENCY:
        yield "fewer launches, or more work in one"
    least = found.limit_ns / stop
    if 0 < least < work.time_ns:
        factor = work.time_ns / least
        much = f"{factor:.2g} times" if factor >= 1.1 else f"{100 * (factor - 1):.2g} %"
        yield f"up to {much} faster before the limit"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
