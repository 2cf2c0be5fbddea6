"""How one kernel's cases are timed: how many slots and calls a case gets, and what a scout finds of it first."""

import math
import secrets
from collections.abc import Sequence

import torch
from msgspec import Struct

from kernelci.errors import Stop
from kernelci.reference import Case, Cost, Reference
from kernelci.workbench import pools, slots
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Window
from kernelci.workbench.contest import EACH_CALLS, Contestant, Course, Kind
from kernelci.workbench.cuda_memory import CudaFailed
from kernelci.workbench.draws import Sketch
from kernelci.workbench.series import usual_mode
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent

WINDOW_NS = 20e6
MAX_CALLS = 8192  # a graph of so many calls takes about two tenths of a second to capture
MAX_CALLS_DRAWN_ALONE = 64
SCOUT_CALLS, SCOUT_WINDOWS = 64, 2
MEMORY_SHARE = 0.3  # of what is free goes to the arena; the pools and the oracle need the rest
MEMORY_BYTES = 40 * 2**30
LEAST_CALLS = 2
HOT_ROUNDS = 3


def arena_for(
    device: str, reference: Reference, cases: Sequence[Case], calibration: Calibration, returns: bool = False
) -> tuple[Arena, str]:
    """An arena that holds the slots of every case by turns, halved until the GPU has room; a note where it had not.

    `returns`: an entry returns its outputs, so that part of the arena is to serve what it allocates.
    Raises Stop("out-of-memory") where two slots of the largest case don't fit.
    """
    serves = returns and device != "cpu"  # where torch can't be told where to allocate
    layouts = [slots.layout(reference, case, serves) for case in cases]
    least = max(LEAST_CALLS * layout.stride for layout in layouts)
    wanted = max(
        layout.bytes(most_calls(reference, case, layout, 2**60, calibration))
        for case, layout in zip(cases, layouts, strict=True)
    )
    size, note = min(wanted, budget(device)), ""
    while size >= least:
        try:
            return Arena(device, size, serves), note
        except CudaFailed:
            size //= 2
            note = f"the GPU's memory holds only {size / 2**30:.3g} GiB of slots: windows are shorter"
    raise Stop("out-of-memory", f"two slots of the largest case need {least} bytes of GPU memory")


def budget(device: str) -> int:
    """Bytes of memory that slots may take."""
    if device == "cpu":
        return 2**28
    free, _ = torch.cuda.mem_get_info(device)
    return int(min(MEMORY_BYTES, MEMORY_SHARE * free))


def most_calls(reference: Reference, case: Case, layout: slots.Layout, size: int, calibration: Calibration) -> int:
    """Calls of a window that a case can need: 20 ms at the fastest that is possible, within memory and patience."""
    cost = cost_of(reference, case)
    fastest = calibration.least_ns(cost, dtype_of_case(case), 2**20)
    wanted = math.ceil(WINDOW_NS / max(fastest, calibration.overhead.call_ns, 100.0))
    cap = MAX_CALLS if pools.is_plain(reference, case) else MAX_CALLS_DRAWN_ALONE
    return max(LEAST_CALLS, min(wanted, cap, layout.fits(size)))


def cost_of(reference: Reference, case: Case) -> Cost:
    """The Cost of a case."""
    inputs = reference.inputs(case, Sketch())
    return reference.cost(case, inputs, reference.outputs(case, inputs))


def dtype_of_case(case: Case) -> str:
    """The dtype that a case names; "float32" where it names none."""
    return str(dict(case.values).get("dtype", "float32")).removeprefix("torch.")


class Scouted(Struct, frozen=True):
    """What a first process of a side showed of a case: nanoseconds of a call, the autotuner's choice, and why it can't
    be captured in a graph, if it can't."""

    ns: float
    config: int
    why_eager: str = ""
    choice: str = ""
    """That choice in words: a claim."""


def scouted(
    session: Session, arena: Arena, reference: Reference, cases: Sequence[Case], calibration: Calibration
) -> "list[Scouted | Stop]":
    """By a process that tunes: about how long a call takes. One answer per case."""
    return [_scouted(Contestant("scout", session), arena, reference, case, calibration) for case in cases]


def _scouted(
    one: Contestant, arena: Arena, reference: Reference, case: Case, calibration: Calibration
) -> "Scouted | Stop":
    layout = slots.layout(reference, case, arena.serves)
    calls = min(SCOUT_CALLS, most_calls(reference, case, layout, arena.size, calibration))
    try:
        tried = first_windows(one, slots.Bank(reference, case, arena, calls, secrets.token_hex(8)), SCOUT_WINDOWS)
    except Stop as stop:
        return stop
    closest = min(map(calibration.overhead.closest, tried.windows))
    return Scouted(closest, tried.config, tried.course.why_eager, one.choice)


class Tried(Struct, frozen=True):
    """The first windows on a bank: what they took, the autotuner's choice, and the course as it turned out to be."""

    windows: list[Window]
    config: int
    course: Course


def first_windows(one: Contestant, bank: slots.Bank, count: int) -> Tried:
    """Get windows of the whole bank ready, and make so many. Raises Stop."""
    course = Course(bank, {"full": bank.count}, usual_mode(bank.device))
    bank.deal()
    config = one.prepare(0, course, "full", None)
    return Tried([one.go(0, course, "full", Spent()) for _ in range(count)], config, course)


def calls_for(ns: float, touched: int, most: int, calibration: Calibration, window_ns: float = WINDOW_NS) -> int:
    """Calls of a full window of calls that take `ns` and touch so many bytes."""
    cold = math.ceil(2 * calibration.l2_bytes / touched)
    return max(LEAST_CALLS, min(most, max(cold, math.ceil(window_ns / max(ns, 100.0)))))


def course(arena: Arena, reference: Reference, case: Case, ns: float, calibration: Calibration, seed: str) -> Course:
    """A case's windows: 20 ms of calls where memory permits, at least twice the L2; a short window of secret size.

    Arithmetic at full rate takes a GPU to its power limit, where single windows lose up to a tenth of the clock. So
    where arithmetic binds, windows are half as long, and a block has three times as many: its fastest is a free one.
    """
    layout = slots.layout(reference, case, arena.serves)
    most = most_calls(reference, case, layout, arena.size, calibration)
    touched = max(1, layout.read + layout.written)
    hot = calibration.is_bound_by_arithmetic(cost_of(reference, case), dtype_of_case(case))
    full = calls_for(ns, touched, most, calibration, WINDOW_NS / 2 if hot else WINDOW_NS)
    warm = min(full, calibration.l2_bytes // 2 // touched)
    calls: dict[Kind, int] = {
        "full": full,
        "short": max(1, full // 8 + secrets.randbelow(max(1, full // 2))),
        "solo": 1,
        "each": min(full, EACH_CALLS),
    }
    if warm >= 1:
        calls["warm"] = warm
    bank = slots.Bank(reference, case, arena, full, seed)
    usual = []
    for _ in range(3):
        bank.deal()
        usual.append(bank.fill_ns)
    return Course(bank, calls, usual_mode(arena.device), sorted(usual)[1], rounds=HOT_ROUNDS if hot else 1)
