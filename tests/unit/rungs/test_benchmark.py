"""The benchmark rung: rows from what was measured, and whether there are enough blocks."""

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kernelci import comparison
from kernelci.config import Config
from kernelci.errors import Stop
from kernelci.model import Finding, Row, Unit, Verdict
from kernelci.reasons import Outcome
from kernelci.reference import Case, Reference
from kernelci.rungs import benchmark
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block, Course
from kernelci.workbench.duel import Measured
from kernelci.workbench.ledger import Audited

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALIBRATION = Calibration(4e12, COST, {"bfloat16": 8e14, "float32": 4e14}, 5e12, {"float32": 1e15}, 2**12)
CALLS, NS = 1000, 20_000.0


@pytest.fixture
def referee(reference: Reference) -> Any:
    """What a referee has to have for a row."""

    def finding(stop: Stop, case: Case | None = None, draw: str = "", rung: str = "") -> Finding:
        return Finding(stop.reason, stop.message, reproduce=f"--rungs {rung}")

    return SimpleNamespace(
        reference=reference, finding=finding, config=Config(), kernel=SimpleNamespace(name="add/plain")
    )


def _windows(ns: float, device: float = 1.0, count: int = 2) -> list[Window]:
    return [Window(CALLS, COST.ns + CALLS * ns, COST.device_ns + CALLS * ns * device)] * count


def _pairs(ratio: float = 1.0, blocks: int = 12, noise: float = 0.0005) -> list[Block]:
    draw = random.Random(1)
    names = ("base", "head", "base'")
    return [
        Block(
            {
                name: _windows((ratio if name == "head" else 1) * NS * draw.uniform(1 - noise, 1 + noise))
                for name in names
            }
        )
        for _ in range(blocks)
    ]


def _alone(ns: float = NS, device: float = 1.0) -> list[Block]:
    return [Block({"head": _windows(ns, device)}) for _ in range(3)]


def _one(reference: Reference, blocks: Sequence[Block], **more: Any) -> Measured:
    bank: Any = None
    course = Course(bank, {"full": CALLS}, **more.pop("course", {}))
    return Measured(reference.cases()[1], course, list(blocks), **more)


def _row(referee: Any, blocks: Sequence[Block], alike: str = "", **more: Any) -> Row:
    return benchmark._row(referee, _one(referee.reference, blocks, **more), CALIBRATION, alike)


def _tags(row: Row) -> set[str]:
    return {metric.tag for metric in row.metrics}


ALONE = {"time", "time_wall", "bandwidth", "flops", "of_ceiling"}
COMPARED = {"time_base", "time_head", "roofline_base", "roofline_head", "delta", "noise", "p", "blocks"}
END_TO_END = {"delta_end_to_end", "noise_end_to_end", "p_end_to_end"}


def test_row_of_head_alone(referee: Any) -> None:
    row = _row(referee, _alone())
    assert (Outcome.PASSED, "3x17-fp32", ALONE) == (row.outcome, row.case, _tags(row))


def test_row_of_a_comparison(referee: Any) -> None:
    row = _row(referee, _pairs())
    assert (Outcome.PASSED, ALONE | COMPARED | END_TO_END, Verdict.NONE) == (row.outcome, _tags(row), row.verdict)


def test_times_of_both_sides(referee: Any) -> None:
    found = {metric.tag: metric for metric in _row(referee, _pairs(1.1, noise=0.0)).metrics}
    assert [(Unit.NANOSECONDS, pytest.approx(NS)), (Unit.NANOSECONDS, pytest.approx(1.1 * NS))] == [
        (found[tag].unit, found[tag].value) for tag in ("time_base", "time_head")
    ]


def test_same_machine_code_is_the_same(referee: Any) -> None:
    row = _row(referee, _alone(), alike=benchmark.IDENTICAL)
    assert (Verdict.SAME, True) == (row.verdict, benchmark.IDENTICAL in row.notes)


def test_same_machine_code_in_another_host_is_compared_and_said(referee: Any) -> None:
    row = _row(referee, _pairs(), alike=benchmark.OTHER_HOST)
    assert (Verdict.NONE, COMPARED, True) == (
        row.verdict,
        COMPARED & _tags(row),
        benchmark.OTHER_HOST in row.notes,
    )


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"head": "BLOCK: 64", "base": "BLOCK: 64"}, ["autotuner: BLOCK: 64"]),
        ({"head": "BLOCK: 64"}, ["autotuner: BLOCK: 64"]),
        ({"head": "BLOCK: 64", "base": "BLOCK: 32"}, [f"{comparison.CHOICE}BLOCK: 32 -> BLOCK: 64"]),
        ({"head": "", "base": ""}, []),
    ],
)
def test_what_autotuners_chose_is_said(referee: Any, choices: dict[str, str], said: list[str]) -> None:
    assert said == [note for note in _row(referee, _pairs(), choices=choices).notes if "autotuner" in note]


def test_same_machine_code_that_fails_is_not_the_same(referee: Any) -> None:
    row = _row(referee, _alone(), alike=benchmark.IDENTICAL, head_fault=Stop("raised", "no"))
    assert (Outcome.FAILED, Verdict.NONE) == (row.outcome, row.verdict)


FAULTS = [
    ("wrong-while-timed", Outcome.FAILED),
    ("raised", Outcome.FAILED),
    ("hang", Outcome.FAILED),
    ("base-disturbed", Outcome.INVALID),
    ("clocks-disagree", Outcome.INVALID),
]


@pytest.mark.parametrize(("reason", "outcome"), FAULTS)
def test_a_fault_of_head_is_the_rows(referee: Any, reason: str, outcome: Outcome) -> None:
    row = _row(referee, _pairs(), head_fault=Stop(reason, "why"))
    assert row.finding is not None
    assert (outcome, reason, "why", "--rungs benchmark") == (
        row.outcome, row.finding.reason, row.finding.message, row.finding.reproduce
    )  # fmt: skip


def test_a_fault_of_base_is_a_note(referee: Any) -> None:
    row = _row(referee, _alone(), base_fault=Stop("raised", "ValueError: no"))
    assert (Outcome.PASSED, ["no comparison: base ends as raised: ValueError: no"]) == (row.outcome, [*row.notes[1:]])


def test_a_base_that_fails_when_measured_again_is_a_note_and_no_second_contest(referee: Any) -> None:
    row = _row(referee, _pairs(1.05), base_fault=Stop("raised", "ValueError: no"))
    assert (True, set()) == (
        "measured once again: base ends as raised: ValueError: no" in row.notes, {"again"} & _tags(row),
    )  # fmt: skip


def test_a_second_contest_is_in_the_row(referee: Any) -> None:
    row = _row(referee, _pairs(1.05), again=_pairs(1.05, blocks=8))
    assert {"again", "blocks_again"} <= _tags(row)


def test_a_base_that_can_not_be_trusted_makes_the_row_invalid(referee: Any) -> None:
    blocks = _pairs()
    for block in blocks:
        block.windows["base"] = _windows(NS, device=0.5)
    row = _row(referee, blocks)
    assert row.finding is not None
    assert (Outcome.INVALID, "clocks-disagree", True) == (
        row.outcome, row.finding.reason, row.finding.message.startswith("of base: ")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        (_alone(device=0.5), "clocks-disagree"),
        (_alone(ns=1e-5), "impossible-time"),
        ([], "not-measured"),
        ([*_alone(), *[Block({"head": _windows(NS)}, noisy=True)] * 9], "not-quiet"),
        ([*_alone(), Block({"head.solo": [Window(1, 9e7, 9e7)]})], "short-windows"),
    ],
)
def test_what_makes_a_row_invalid(referee: Any, blocks: list[Block], reason: str) -> None:
    row = _row(referee, blocks)
    assert (Outcome.INVALID, reason) == (row.outcome, row.finding.reason if row.finding else "")


LEDGER = [
    ("library-call", "impossible-time", "library-call"),
    ("ledger-count", "impossible-time", "impossible-time"),
    ("ledger-count", "", "ledger-count"),
]


@pytest.mark.parametrize(("ledger", "clock", "reason"), LEDGER)
def test_which_finding_comes_first(referee: Any, ledger: str, clock: str, reason: str) -> None:
    audited = Audited(findings=(Finding(ledger, "by the ledger"),))
    row = _row(referee, _alone(ns=1e-5 if clock else NS), audited=audited)
    assert reason == (row.finding.reason if row.finding else "")


def test_blocks_that_do_not_count_are_counted_and_named(referee: Any) -> None:
    dropped = Block({"head": _windows(9 * NS)}, dropped="thermal throttle")
    row = _row(referee, [*_alone(), dropped, dropped])
    found = {metric.tag: metric.value for metric in row.metrics}
    assert (2, True, NS) == (found["dropped"], "block dropped: thermal throttle" in row.notes, found["time"])


def _notes(referee: Any, blocks: Sequence[Block], **course: Any) -> list[str]:
    return [*_row(referee, blocks, course=course).notes]


def test_notes_of_a_row(referee: Any) -> None:
    assert ["1000 calls a window, 3 blocks"] == _notes(referee, _alone())


def test_note_of_an_eager_row(referee: Any) -> None:
    assert "eager: it can't be captured in a CUDA graph: head: no" in _notes(
        referee, _alone(), mode="eager", why_eager="head: no"
    )


def test_note_of_a_copy_in_the_time(referee: Any) -> None:
    assert any(
        note.startswith(benchmark.COPIED) for note in _notes(referee, _alone(), copied={"head": "too little memory"})
    )


def test_note_of_a_time_by_one_clock(referee: Any) -> None:
    blocks = [Block({"head": [Window(CALLS, COST.ns + CALLS * NS, 0.0)]})]
    assert "by the referee's clock alone" in _notes(referee, blocks)


@pytest.mark.parametrize(
    ("blocks", "enough"),
    [
        (_pairs(1.0), True),
        (_pairs(1.05), True),
        (_pairs(0.9), True),
        (_pairs(1.05, blocks=4), False),
        (_pairs(1.0, blocks=4), True),
        (_pairs(1.004, noise=0.02), False),
        (_pairs(1.0, blocks=1), False),
    ],
    ids=["same", "slower", "faster", "slower, too early", "same at once", "noise", "one block"],
)
def test_whether_there_are_enough_blocks(referee: Any, blocks: list[Block], enough: bool) -> None:
    assert enough == (not benchmark._undecided(referee)([_one(referee.reference, blocks)], COST))


def test_only_a_row_without_an_answer_needs_more_blocks(referee: Any) -> None:
    decided, noisy = (_one(referee.reference, blocks) for blocks in (_pairs(), _pairs(1.004, noise=0.02)))
    assert [id(noisy)] == [id(one) for one in benchmark._undecided(referee)([decided, noisy], COST)]


@pytest.mark.parametrize("fault", ["head_fault", "base_fault"])
def test_a_row_with_a_fault_needs_no_more_blocks(referee: Any, fault: str) -> None:
    one = _one(referee.reference, _pairs(1.004, noise=0.02), **{fault: Stop("raised", "no")})
    assert not benchmark._undecided(referee)([one], COST)


def test_more_blocks_do_not_help_where_the_clocks_disagree(referee: Any) -> None:
    blocks = _pairs(1.004, noise=0.02)
    for block in blocks:
        block.windows["head"] = _windows(NS, device=0.5)
    assert not benchmark._undecided(referee)([_one(referee.reference, blocks)], COST)


@pytest.mark.parametrize(
    ("ratio", "blocks", "differs"), [(1.05, 12, True), (0.95, 12, True), (1.0, 12, False), (1.05, 4, False)]
)
def test_what_may_become_slower_or_faster_is_measured_again(
    referee: Any, ratio: float, blocks: int, differs: bool
) -> None:
    one = _one(referee.reference, _pairs(ratio, blocks))
    assert differs == benchmark._differs(referee)(one, COST)


def _disagreeing() -> list[Block]:
    """Each side's clocks are as near as they must be, and what they say of head against base is not."""
    blocks = _pairs(noise=0.0)
    for block in blocks:
        block.windows |= {"base": _windows(NS, device=0.996), "head": _windows(NS, device=1.004)}
    return blocks


def test_clocks_that_disagree_are_asked_again(referee: Any) -> None:
    assert benchmark._differs(referee)(_one(referee.reference, _disagreeing()), COST)


def test_clocks_that_disagree_once_did_so_by_chance(referee: Any) -> None:
    rows = [_row(referee, _disagreeing(), again=again) for again in ([], _disagreeing()[:8], _pairs(blocks=8))]
    assert [(Outcome.INVALID, False), (Outcome.INVALID, False), (Outcome.PASSED, True)] == [
        (row.outcome, benchmark.BY_CHANCE in row.notes) for row in rows
    ]


def test_ceilings() -> None:
    found = {metric.tag: (metric.value, metric.unit) for metric in benchmark._ceilings(CALIBRATION)}
    assert {
        "copy": (4e12, Unit.BYTES_PER_SECOND),
        "matmul:bfloat16": (8e14, Unit.FLOP_PER_SECOND),
        "matmul:float32": (4e14, Unit.FLOP_PER_SECOND),
        "overhead": (30_000.0, Unit.NANOSECONDS),
        "empty": (1_000.0, Unit.NANOSECONDS),
    } == found


def test_no_bench_cases(referee: Any, reference: Reference) -> None:
    referee.cases = lambda: tuple(case for case in reference.cases() if case.kind == "check")
    with pytest.raises(Stop) as caught:
        benchmark.benchmark(referee)
    assert "no-bench-cases" == caught.value.reason
