"""Contests of real processes on one arena: which windows a block has, and how the faults of a side end."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from kernelci.errors import Stop
from kernelci.reference import Reference
from kernelci.workbench import contest as contests
from kernelci.workbench import nvml, slots
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import PROBE_SIZES, Probe
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block, Contest, Contestant, Course, Opener
from kernelci.workbench.protocol import Prepared, Series
from kernelci.workbench.series import Mode
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent

MakeOpener = Callable[..., Opener]
Fight = Callable[..., Contest]
PAIR, WITH_AA = ("base", "head"), ("base", "head", "base'")
FULL = 4
ANY = Overhead(0.0, 0.0, 1e18, 0.0, spread=1e18)  # every short window fits
NONE = Overhead(1e15, 1e15, 1e15, 0.0)  # none does
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


def _counting(then: str, calls: int = 0) -> str:
    """A kernel that is right, but for what it does first in every call after so many."""
    return f"""
        import os, torch
        calls = 0
        def f(x, y):
            global calls
            calls += 1
            if calls > {calls}:
                {then}
            torch.add(x, 1, out=y)
    """


@pytest.fixture
def fight(
    written: Callable[[str], Reference], probe: Callable[[Arena], Probe], watch: Callable[[], nvml.Watch]
) -> Iterator[Fight]:
    """Fight a contest of so many blocks over the first cases of the reference."""
    arenas: list[Arena] = []

    def run(
        sides: Mapping[str, Opener],
        names: Sequence[str] = PAIR,
        blocks: int = 1,
        cases: int = 1,
        rounds: int = 1,
        configs: dict[tuple[str, int], int] | None = None,
        full_only: bool = False,
        overhead: Overhead = ANY,
        mode: Mode = "eager",
    ) -> Contest:
        reference = written(TEXT)
        arenas.append(Arena("cpu", 2**20))
        banks = [slots.Bank(reference, case, arenas[-1], FULL, "s") for case in reference.cases()[:cases]]
        calls: dict[contests.Kind, int] = {"full": FULL, "short": 2, "solo": 1, "warm": 3, "each": 2}
        courses = [Course(bank, calls, mode, rounds=rounds) for bank in banks]
        made = Contest(arenas[-1], sides, courses, "s", probe, [], overhead)
        made.configs |= configs or {}
        made.batch(names, blocks, watch, full_only)
        return made

    yield run
    for arena in arenas:
        arena.close()


@pytest.fixture
def honest(opener: MakeOpener) -> Opener:
    """Starts a right kernel."""
    return opener(PLAIN)


def _shape(block: Block) -> dict[str, list[int]]:
    """The calls of each window, by side and kind."""
    return {name: [window.calls for window in windows] for name, windows in block.windows.items()}


OTHERS = {"short": [2], "solo": [1], "warm": [3], "each": [2]}


def test_triton_against_itself_in_the_interpreter(fight: Fight, opener: MakeOpener) -> None:
    made = fight({"base": opener(RIGHT), "head": opener(RIGHT)})
    assert ({}, [FULL, FULL]) == (made.faults, _shape(made.blocks[0][0])["head"])


def test_the_first_block_has_all_windows_and_the_next_what_is_compared(fight: Fight, honest: Opener) -> None:
    made = fight({"head": honest}, names=("head",), blocks=2)
    first = {"head": [FULL] * 2} | {f"head.{kind}": calls for kind, calls in OTHERS.items()}
    assert [first, {"head": [FULL] * 2, "head.each": [2]}] == [_shape(block) for block in made.blocks[0]]


CAPTURED = f"""
import kernelci.workbench.series as series
left = LEFT
def captured(work, pool=None, before=None):
    global left
    left -= 1
    if left < 0:
        raise RuntimeError("no more graphs")
    return work
series.captured = captured
{PLAIN}
"""


@pytest.mark.parametrize(("left", "modes"), [(99, {"graph"}), (3, {"eager"})])
def test_what_is_compared_is_captured_on_both_sides_or_on_none(
    fight: Fight, opener: MakeOpener, left: int, modes: set[str]
) -> None:
    last: dict[tuple[int, int], str] = {}

    def told(opened: Opener) -> Opener:
        def start(arena: Arena) -> Session:
            session = opened(arena)
            prepare, turn = session.prepare, len(sessions)
            sessions.append(session)

            def prepared(message: Series) -> Prepared:
                last[turn, message.number] = message.mode
                return prepare(message)

            session.prepare = prepared  # type: ignore[method-assign]
            return session

        return start

    sessions: list[Session] = []
    sides = {"base": opener(CAPTURED.replace("LEFT", "99")), "head": opener(CAPTURED.replace("LEFT", str(left)))}
    made = fight({side: told(one) for side, one in sides.items()}, names=WITH_AA, mode="graph")
    assert ({}, modes) == (made.faults, {mode for mode in last.values() if mode != "each"})


def test_base_against_base_has_full_windows_only(fight: Fight, honest: Opener) -> None:
    found = _shape(fight({"base": honest, "head": honest}, names=WITH_AA).blocks[0][0])
    assert ([FULL] * 2, []) == (found["base'"], [name for name in found if name.startswith("base'.")])


def test_where_only_the_time_counts_there_are_full_windows_only(fight: Fight, honest: Opener) -> None:
    made = fight({"base": honest}, names=("base",), full_only=True)
    assert [{"base": [FULL] * 2}] == [_shape(block) for block in made.blocks[0]]


def test_more_rounds_are_more_full_windows(fight: Fight, honest: Opener) -> None:
    found = _shape(fight({"head": honest}, names=("head",), rounds=3).blocks[0][0])
    assert ([FULL] * 6, [1]) == (found["head"], found["head.solo"])


def _spied(opener: Opener, gone: list[int]) -> Opener:
    """Opens sessions that note the windows they are asked for."""

    def opened(arena: Arena) -> Session:
        session = opener(arena)
        go = session.go

        def noted(number: int) -> tuple[int, float]:
            gone.append(number)
            return go(number)

        session.go = noted  # type: ignore[method-assign]
        return session

    return opened


@pytest.mark.parametrize(("overhead", "short"), [(ANY, 1), (NONE, 1 + contests.REPEATS)])
def test_a_short_window_that_does_not_fit_is_made_again(
    fight: Fight, honest: Opener, overhead: Overhead, short: int
) -> None:
    gone: list[int] = []
    made = fight({"head": _spied(honest, gone)}, names=("head",), overhead=overhead)
    kinds: list[contests.Kind] = ["short", "solo", "full", "warm"]
    counts = [gone.count(made.number(0, kind)) for kind in kinds]
    assert ([short, short, 2, 1], [2]) == (counts, _shape(made.blocks[0][0])["head.short"][:1])


def test_windows_have_a_time_by_the_referees_clock(fight: Fight, honest: Opener) -> None:
    (block,) = fight({"head": honest}, names=("head",)).blocks[0]
    assert all(window.wall_ns > 0 and window.fill_ns > 0 for windows in block.windows.values() for window in windows)


def test_each_block_has_a_window_of_the_probe(fight: Fight, honest: Opener) -> None:
    made = fight({"head": honest}, names=("head",), blocks=3)
    assert (3, True) == (len(made.probed), {window.calls for window in made.probed} <= set(PROBE_SIZES))


def test_sides_take_turns(fight: Fight, honest: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    go = Contestant.go

    def seen(self: Contestant, number: int, course: Course, kind: contests.Kind, spent: Spent) -> Window:
        order.extend([self.side] if kind == "full" else [])
        return go(self, number, course, kind, spent)

    monkeypatch.setattr(Contestant, "go", seen)
    fight({"base": honest, "head": honest}, names=WITH_AA, blocks=6, rounds=2)
    parts = [order[begin : begin + 6] for begin in range(0, len(order), 6)]
    turns = [part == part[::-1] and sorted(part[:3]) == sorted(WITH_AA) for part in parts]
    assert ([True] * 12, set(WITH_AA)) == (turns, {part[0] for part in parts})


def test_no_full_window_comes_first(fight: Fight, honest: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[contests.Kind] = []
    go = Contestant.go

    def seen(self: Contestant, number: int, course: Course, kind: contests.Kind, spent: Spent) -> Window:
        kinds.append(kind)
        return go(self, number, course, kind, spent)

    monkeypatch.setattr(Contestant, "go", seen)
    fight({"base": honest, "head": honest}, names=PAIR, blocks=1)
    assert ["full"] * 4 == kinds[-4:]
    assert "full" not in kinds[:-4]


@pytest.mark.parametrize("names", [("head",), PAIR])
def test_what_time_went_into(fight: Fight, honest: Opener, names: Sequence[str]) -> None:
    spent = fight({"base": honest, "head": honest}, names=names).spent
    assert all(
        part > 0
        for part in (
            spent.starting,
            spent.readying,
            spent.drawing,
            spent.windows,
            spent.checking,
            spent.probing,
            spent.ending,
        )
    )


WARM_UPS = 2 * 5  # of each kind of window


def _fault(made: Contest, side: str = "head", index: int = 0) -> Stop:
    assert {(side, index)} == set(made.faults)
    return made.faults[side, index]


def test_wrong_only_once_it_is_timed(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    head = opener(_counting("x = x + 1", calls=WARM_UPS + 2))
    assert "wrong-while-timed" == _fault(fight({"base": honest, "head": head})).reason


def test_raises_in_the_third_call(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    fault = _fault(fight({"base": honest, "head": opener(_counting("raise ValueError('no')", calls=2))}))
    assert ("raised", True) == (fault.reason, "ValueError: no" in fault.message)


def test_raises_once_it_is_timed(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    made = fight({"base": honest, "head": opener(_counting("raise ValueError('no')", calls=WARM_UPS))})
    assert "raised" == _fault(made).reason


def test_a_fault_of_base_is_bases(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    made = fight({"base": opener(_counting("x = x + 1", calls=WARM_UPS)), "head": honest})
    assert "wrong-while-timed" == _fault(made, "base").reason


def test_a_fault_of_base_against_base_is_bases(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    made = fight({"base": opener(_counting("x = x + 1", calls=2)), "head": honest}, names=("head", "base'"))
    assert "wrong-while-timed" == _fault(made, "base").reason


def test_no_more_blocks_after_a_fault(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    head = opener(_counting("x = x + 1", calls=WARM_UPS))
    assert 1 == len(fight({"base": honest, "head": head}, blocks=3).blocks[0])


ENDS = {
    "raises": ("raise ValueError('no')", "raised"),
    "is wrong": ("x = x + 1", "wrong-while-timed"),
    "exits": ("os._exit(3)", "exited"),
}


@pytest.mark.parametrize("calls", [0, WARM_UPS], ids=["at once", "once it is timed"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("faulty", [0, 1])
def test_the_other_case_goes_on(
    fight: Fight, honest: Opener, opener: MakeOpener, faulty: int, end: str, calls: int
) -> None:
    then, reason = ENDS[end]
    rows = 3 if faulty == 0 else 5
    counted = (
        _counting(f"\n                {then}", calls)
        .replace("calls += 1", f"calls += x.shape[0] == {rows}")
        .replace("if calls >", f"if x.shape[0] == {rows} and calls >")
    )
    made = fight({"base": honest, "head": opener(counted)}, blocks=2, cases=2)
    good = [_shape(block) for block in made.blocks[1 - faulty]]
    assert (reason, 2, [FULL] * 2) == (_fault(made, index=faulty).reason, len(good), good[1]["head"])


def test_a_hang_ends_its_case_alone(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    text = _counting("__import__('time').sleep(1000 if x.shape[0] == 3 else 0)", WARM_UPS)
    made = fight({"base": honest, "head": opener(text, call_s=2.0)}, cases=2)
    assert ("hang", 1) == (_fault(made).reason, len(made.blocks[1]))


def test_what_the_other_side_left_is_no_answer(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    lazy = opener("def f(x, y):\n    pass\n")  # it lies in wait for base's output in the same slot
    assert "wrong-while-timed" == _fault(fight({"base": honest, "head": lazy})).reason


def test_memory_of_the_values_themselves(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    text = """
        import torch
        kept = {}
        def f(x, y):
            key = x.data_ptr()
            if key not in kept:
                kept[key] = x + 1
            y.copy_(kept[key])
    """
    assert "wrong-while-timed" == _fault(fight({"base": honest, "head": opener(text)})).reason


TUNED = """
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"ADDED": 7}), triton.Config({"ADDED": 1})], key=["size"])
@triton.jit
def add(x, y, size, ADDED: tl.constexpr):
    at = tl.arange(0, 128)
    tl.store(y + at, tl.load(x + at, mask=at < size) + ADDED, mask=at < size)

def f(x, y):
    add[(1,)](x, y, x.numel())
"""


def test_configurations_stay_pinned(fight: Fight, honest: Opener, opener: MakeOpener) -> None:
    made = fight({"base": honest, "head": opener(TUNED)}, blocks=2, configs={("head", 0): 1})
    assert ({}, {("head", 0): 1}) == (made.faults, made.configs)


def test_the_first_choice_is_kept(fight: Fight, opener: MakeOpener) -> None:
    made = fight({"head": opener(TUNED)}, names=("head",))
    assert {("head", 0): 0} == made.configs  # in the interpreter the first; it is wrong here
    assert "wrong-while-timed" == _fault(made).reason


def test_a_kernel_without_an_autotuner_has_no_choice(fight: Fight, honest: Opener) -> None:
    assert {} == fight({"head": honest}, names=("head",)).configs


def test_a_kernel_is_prepared_for_the_case_whose_turn_it_is(fight: Fight, opener: MakeOpener) -> None:
    planned = opener("""
        import torch
        plan = 0
        def prepare(case):
            global plan
            plan = case.rows
        def f(x, y):
            torch.add(x, 1 if plan == x.shape[0] else 2, out=y)
    """)

    found = fight({"base": planned, "head": planned}, cases=2)

    assert ({}, [1, 1]) == (found.faults, [len(blocks) for blocks in found.blocks])
