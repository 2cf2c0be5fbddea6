"""Whole duels of real processes on the CPU: who is measured, whose fault it is, and what no side can do."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kernelci import stats
from kernelci.errors import Stop
from kernelci.reference import Cost, Reference
from kernelci.workbench import duel, nvml, timing
from kernelci.workbench.arena import Arena
from kernelci.workbench.audit import Auditor, RecordingCost
from kernelci.workbench.calibration import Calibration, Probe
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block, Course, Opener
from kernelci.workbench.duel import ALONE, PAIR, Means, Measured, Result
from kernelci.workbench.figures import checked_time
from kernelci.workbench.session import Session

MakeOpener = Callable[..., Opener]
Run = Callable[..., Result]
CALLS = 10
COST = Overhead(1e5, 0.9e5, 1.1e5, 1e5, spread=1e4)
CALIBRATION = Calibration(1e10, COST, {}, 1e15, {}, 2**12)
TEXT = """
independent = {"rows": ("x",)}
def cases():
    yield bench("a few", rows=3, cols=17, dtype="float32")
    yield bench("more", rows=5, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""
RIGHT = """
import triton
import triton.language as tl

@triton.jit
def add_one(x, y, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < size) + 1, mask=at < size)

def f(x, y):
    add_one[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), 64)
"""
PLAIN = "import torch\ndef f(x, y):\n    torch.add(x, 1, out=y)\n"
WRONG = PLAIN.replace("x, 1", "x, 2")
RAISES = "def f(x, y):\n    raise ValueError('no')\n"
# More calls than a scout makes of a case, or a process that only gets ready.
LATER = 2 + 2 * CALLS + 1


def _later(then: str, calls: int = LATER) -> str:
    """Right, but for what it does in later calls of the first case."""
    return f"""
        import torch
        calls = 0
        def f(x, y):
            global calls
            calls += x.shape[0] == 3
            if x.shape[0] == 3 and calls > {calls}:
                {then}
            torch.add(x, 1, out=y)
    """


@pytest.fixture
def run(
    written: Callable[[str], Reference],
    probe: Callable[[Arena], Probe],
    watch: Callable[[], nvml.Watch],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Fight a duel over the first cases, with one block each and windows of ten calls."""
    monkeypatch.setattr(timing, "WINDOW_NS", CALLS * COST.call_ns)
    monkeypatch.setattr(stats, "LOOKS", stats.Looks(at=(1, 2), deciding=1))
    monkeypatch.setattr(duel, "BLOCKS_ALONE", 1)
    monkeypatch.setattr(stats, "AGAIN", 1)
    for name in ("DISTURBED", "LEAST_DISTURBED"):
        monkeypatch.setattr(duel, name, math.inf)  # a busy machine is no disturbance

    def fight(
        sides: Mapping[str, Opener],
        cases: int = 1,
        undecided: duel.Undecided = lambda group, cost: [],
        differs: duel.Differs = lambda one, cost: False,
    ) -> Result:
        auditor = Auditor(lambda arena: sides["head"](arena), frozenset(), RecordingCost("there is no GPU"))
        reference = written(TEXT)
        means = Means("cpu", sides, probe, watch, undecided, "s", auditor, differs=differs)
        return duel.run(means, reference, reference.cases()[:cases], CALIBRATION)

    return fight


def _only(result: Result) -> Measured:
    (one,) = result.cases
    return one


def _sides(one: Measured) -> list[set[str]]:
    """The sides that each block measured."""
    return [{name.partition(".")[0] for name, windows in block.windows.items() if windows} for block in one.blocks]


def _faults(one: Measured) -> tuple[str, str]:
    return tuple(fault.reason if fault else "" for fault in (one.head_fault, one.base_fault))  # type: ignore[return-value]


def test_a_kernel_against_itself(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"base": opener(RIGHT), "head": opener(RIGHT)}))
    assert (("", ""), [{"base", "head", "base'"}]) == (_faults(one), _sides(one))


def test_all_contests_share_a_probe(run: Run, opener: MakeOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Probe] = []
    sample = Probe.sample

    def seen(self: Probe) -> Window:
        asked.append(self)
        return sample(self)

    monkeypatch.setattr(Probe, "sample", seen)
    run({"base": opener(PLAIN), "head": opener(PLAIN)}, differs=lambda one, cost: True)
    assert (True, 1) == (len(asked) > 2, len(set(map(id, asked))))


def test_base_is_measured_before_any_process_of_head_is_there(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"base": opener(PLAIN), "head": opener(PLAIN)}))
    assert [{"base"}] == [set(block.windows) for block in one.alone]


def test_head_alone(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"head": opener(PLAIN)}))
    assert ([{"head"}], [], ("", "")) == (_sides(one), one.alone, _faults(one))


def test_windows_are_as_long_as_planned(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"head": opener(PLAIN)}))
    assert one.course is not None
    assert ([CALLS, CALLS], "eager") == ([window.calls for window in one.blocks[0].windows["head"]], one.course.mode)


def test_blocks_go_on_until_there_are_enough(run: Run, opener: MakeOpener) -> None:
    asked: list[int] = []

    def undecided(group: list[Measured], cost: Overhead) -> list[Measured]:
        asked.append(len(group[0].blocks))
        return group

    one = _only(run({"base": opener(PLAIN), "head": opener(PLAIN)}, undecided=undecided))
    assert ([1, 2], [True, False]) == (asked, ["base'" in block.windows for block in one.blocks])


def test_a_row_that_has_its_answer_gets_no_more_blocks(run: Run, opener: MakeOpener) -> None:
    def undecided(group: list[Measured], cost: Overhead) -> list[Measured]:
        return [one for one in group if one.case.title == "more"]

    sides = {"base": opener(PLAIN), "head": opener(PLAIN)}
    assert [1, 2] == [len(one.blocks) for one in run(sides, cases=2, undecided=undecided).cases]


def test_what_differs_is_measured_once_again_by_fresh_processes(run: Run, opener: MakeOpener) -> None:
    def differs(one: Measured, cost: Overhead) -> bool:
        return one.case.title == "more"

    sides = {"base": opener(PLAIN), "head": opener(PLAIN)}
    first, second = run(sides, cases=2, differs=differs).cases
    assert ([], [{"base", "head"}]) == (first.again, [set(map(_side, block.windows)) for block in second.again])


def _side(name: str) -> str:
    return name.partition(".")[0]


def test_a_head_that_fails_when_measured_again_has_failed(run: Run, opener: MakeOpener) -> None:
    starts = iter([PLAIN] * 2 + [RAISES] * 9)  # the scout and the first contest's process; then the second contest's
    sides = {"base": opener(PLAIN), "head": lambda arena: opener(next(starts))(arena)}
    one = _only(run(sides, differs=lambda one, cost: True))
    assert ("raised", "") == _faults(one)


def test_notes_say_that_there_is_no_ledger(run: Run, opener: MakeOpener) -> None:
    assert ["no ledger of the GPU's work: there is no GPU"] == run({"head": opener(PLAIN)}).notes


def test_what_the_time_went_into(run: Run, opener: MakeOpener) -> None:
    spent = run({"head": opener(PLAIN)}).spent
    assert all(part > 0 for part in (spent.setting_up, spent.starting, spent.windows, spent.checking))


@pytest.mark.parametrize(("text", "reason"), [(WRONG, "wrong-while-timed"), (RAISES, "raised")])
def test_a_head_that_fails_at_once_is_not_measured(run: Run, opener: MakeOpener, text: str, reason: str) -> None:
    one = _only(run({"base": opener(PLAIN), "head": opener(text)}))
    assert ((reason, ""), None, []) == (_faults(one), one.course, one.blocks)


@pytest.mark.parametrize("then", ["x = x + 1", "raise ValueError('no')", "import os; os._exit(1)"])
def test_a_head_that_fails_later_fails_in_its_case_alone(run: Run, opener: MakeOpener, then: str) -> None:
    first, second = run({"base": opener(PLAIN), "head": opener(_later(then))}, cases=2).cases
    assert (True, "", [{"base", "head", "base'"}]) == (_faults(first)[0] != "", _faults(second)[0], _sides(second))


@pytest.mark.parametrize("text", [WRONG, RAISES, _later("x = x + 1"), _later("raise ValueError('no')")])
def test_a_base_that_fails_leaves_head_its_own_time(run: Run, opener: MakeOpener, text: str) -> None:
    one = _only(run({"base": opener(text), "head": opener(PLAIN)}))
    head, base = _faults(one)
    assert ("", True, [{"head"}]) == (head, base != "", _sides(one))


def test_a_base_that_fails_in_one_case_is_compared_in_the_other(run: Run, opener: MakeOpener) -> None:
    first, second = run({"base": opener(_later("x = x + 1")), "head": opener(PLAIN)}, cases=2).cases
    assert ([{"head"}], [{"base", "head", "base'"}]) == (_sides(first), _sides(second))


def test_a_base_that_is_slow_only_beside_head(run: Run, opener: MakeOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duel, "DISTURBED", 0.5)
    slow = PLAIN.replace("    torch.add", "    __import__('time').sleep(0.05)\n    torch.add")
    starts = iter([PLAIN] + [slow] * 2 + [PLAIN] * 9)  # alone; beside head, and against itself; alone again
    sides = {"base": lambda arena: opener(next(starts))(arena), "head": opener(PLAIN)}
    one = _only(run(sides))
    assert one.head_fault is not None
    assert ("base-disturbed", True) == (one.head_fault.reason, "slower" in one.head_fault.message)
    alone = [set(map(_side, block.windows)) for block in one.alone]
    assert ([{"base"}] * 2, [{"base", "head", "base'"}]) == (alone, _sides(one))


def test_bases_scout_makes_its_block_alone_and_none_beside_head(run: Run, opener: MakeOpener) -> None:
    opened: list[Arena] = []

    def counted(arena: Arena) -> Session:
        opened.append(arena)
        return opener(PLAIN)(arena)

    sides = {"base": counted, "head": opener(PLAIN)}
    run(sides)
    assert 3 == len(opened)  # the scout, and base and base' of the contest


def test_both_sides_fail(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"base": opener(RAISES), "head": opener(WRONG)}))
    assert (("wrong-while-timed", "raised"), []) == (_faults(one), one.blocks)


SCRIBBLES = """
    import threading, time, torch
    lock, left, last = threading.Lock(), [], [0.0]

    def scribble():
        while True:
            with lock:
                if left and time.monotonic() - last[0] > 0.5:  # by then its own outputs have been checked
                    left[0].add_(1)
            time.sleep(0.001)

    def f(x, y):
        with lock:
            torch.add(x, 1, out=y)
            left[:], last[0] = [y], time.monotonic()
            if threading.active_count() == 1:
                threading.Thread(target=scribble, daemon=True).start()
"""
PATIENT = f"""
    import time, torch
    slots = set()
    def f(x, y):
        slots.add(y.data_ptr())
        torch.add(x, 1, out=y)
        if len(slots) == {CALLS} and y.data_ptr() == max(slots):
            time.sleep(0.9)
"""


def test_a_head_that_writes_where_base_has_written(run: Run, opener: MakeOpener) -> None:
    one = _only(run({"base": opener(PATIENT), "head": opener(SCRIBBLES)}))
    assert one.head_fault is not None
    assert ("base-disturbed", True) == (one.head_fault.reason, "beside head the base is" in one.head_fault.message)


SLOW_WHEN_SHORT = """
    import sys, time, torch

    def calls():
        "How many calls this window has: it is all there, a few frames up."
        frame = sys._getframe()
        while frame is not None:
            if isinstance(frame.f_locals.get("calls"), list):
                return len(frame.f_locals["calls"])
            frame = frame.f_back
        return 0

    def f(x, y):
        if calls() == 1:
            time.sleep(0.5)
        torch.add(x, 1, out=y)
"""


def test_a_base_that_is_wrong_in_windows_of_one_call_alone_too_is_not_disturbed(run: Run, opener: MakeOpener) -> None:
    wrong = SLOW_WHEN_SHORT.replace("time.sleep(0.5)", "x = x + 1")
    head, base = _faults(_only(run({"base": opener(wrong), "head": opener(PLAIN)})))
    assert ("", "wrong-while-timed") == (head, base)


def test_a_head_that_is_slow_only_in_short_windows(
    run: Run, opener: MakeOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "EACH_CALLS", CALLS)
    one = _only(run({"head": opener(SLOW_WHEN_SHORT)}))
    with pytest.raises(Stop) as caught:
        checked_time(one.blocks, "head", CALIBRATION, Cost(0.0), "float32")
    assert "short-windows" == caught.value.reason


def test_no_slot_fits(run: Run, opener: MakeOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "budget", lambda device: 1000)
    with pytest.raises(Stop) as caught:
        run({"head": opener(PLAIN)})
    assert "out-of-memory" == caught.value.reason


def test_steps_of_a_comparison() -> None:
    assert ([(4, True), (8, True)], [(3, False)]) == ([*duel._steps(PAIR)][:2], [*duel._steps(ALONE)])


def test_steps_end_with_the_budget() -> None:
    assert stats.LOOKS.budget == sum(blocks for blocks, _ in duel._steps(PAIR))


def _beside(base_ns: float, alone_ns: float, dropped: str = "") -> Measured:
    bank: Any = None
    case: Any = None
    beside, alone = (Block({"base": [Window(10, COST.ns + 10 * ns, 0.0)]}, dropped) for ns in (base_ns, alone_ns))
    return Measured(case, Course(bank, {"full": 10}), [beside], alone=[alone])


@pytest.mark.parametrize(
    ("beside", "alone", "share"),
    [(100.0, 100.0, 0.0), (100.0, 0.0, 0.0), (109.0, 100.0, 0.0), (150.0, 100.0, 0.5), (50.0, 100.0, 0.0)],
)
def test_how_much_slower_base_is_beside_head(beside: float, alone: float, share: float) -> None:
    assert pytest.approx(share) == duel._slower(_beside(beside, alone), COST)


@pytest.mark.parametrize(
    ("spread", "share"),
    [(0.0, 0.01), (0.001, 0.01), (0.01, 0.04), (0.02, 0.08), (0.2, 0.1)],
    ids=["steady", "as events vary", "as the wall clock varies", "a matmul at the power limit", "head can widen it"],
)
def test_how_much_slower_is_a_disturbance(spread: float, share: float) -> None:
    steps = [-1.0, 0.0, 1.0]
    times = [100.0 * math.exp(spread / 1.4826 * steps[number % 3]) for number in range(12)]
    assert pytest.approx(share, rel=1e-6) == duel.disturbed(times)


@pytest.mark.parametrize("times", [[], [100.0], [100.0, 100.0, 100.0], [0.0] * 12])
def test_few_blocks_say_nothing_of_their_spread(times: list[float]) -> None:
    assert duel.DISTURBED == duel.disturbed(times)


def test_nothing_is_slower_where_no_block_counts() -> None:
    assert 0.0 == duel._slower(_beside(200.0, 100.0, dropped="noise"), COST)


def _measured(head: str, base: str | None, written: Callable[[str], Reference]) -> Measured:
    """A case whose scouts gave these reasons against a graph; empty: none."""
    reference = written(TEXT)
    scouts = {"head": [timing.Scouted(1e5, -1, head)]} | (
        {} if base is None else {"base": [timing.Scouted(1e5, -1, base)]}
    )
    arena = Arena("cpu", 2**20)
    try:
        return duel._measured(arena, reference, reference.cases()[0], 0, scouts, CALIBRATION, "s")
    finally:
        arena.close()


@pytest.mark.parametrize(
    ("head", "base", "why"),
    [("", "", ""), ("", None, ""), ("no", "", "head: no"), ("", "no", "base: no"), ("a", "b", "head: a; base: b")],
)
def test_without_a_graph_for_one_side_there_is_none_for_both(
    written: Callable[[str], Reference], head: str, base: str | None, why: str
) -> None:
    course = _measured(head, base, written).course
    assert course is not None
    assert ("eager", why) == (course.mode, course.why_eager)  # on the CPU there is none anyhow
