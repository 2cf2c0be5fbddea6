"""The audit: what a recorded window must agree with, and that the recorder's absence is told and not judged."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.model import Finding
from kernelci.reasons import Outcome
from kernelci.reference import Reference
from kernelci.workbench import audit
from kernelci.workbench.activity import Activity
from kernelci.workbench.arena import Arena
from kernelci.workbench.audit import Auditor, RecordingCost, TimedCase, difference, faults, recording_cost, told
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Course
from kernelci.workbench.ledger import OWN, Audited, Share
from kernelci.workbench.protocol import Ledger, Source
from kernelci.workbench.session import Session
from kernelci.workbench.slots import Bank

CALLS = 100
CLOCK = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, spread=500.0)
COST = RecordingCost("", CLOCK.ns)
MakeSession = Callable[..., Session]


def _timed(ns: float, mode: str = "graph") -> TimedCase:
    bank: Any = SimpleNamespace()
    return TimedCase(Course(bank, {"full": CALLS}, mode), None, (ns, 1.01 * ns))  # type: ignore[arg-type]


def _window(each_ns: float) -> Window:
    return Window(CALLS, CLOCK.ns + CALLS * each_ns, 0.0)


def _ledger(busy_ns: float, launches: int = 1) -> Ledger:
    line = Activity("kernel", "tile", count=CALLS * launches, total_ns=CALLS * busy_ns)
    return Ledger((line,), CALLS * busy_ns, CALLS * busy_ns)


def _difference(ns: float, recorded: float, busy: float | None = None, mode: str = "graph") -> str:
    return difference(_window(recorded), _ledger(recorded if busy is None else busy), _timed(ns, mode), CLOCK, COST)


@pytest.mark.parametrize(
    ("ns", "recorded"),
    [(100e3, 100e3), (100e3, 106e3), (100e3, 96e3), (3e3, 2.9e3), (1e6, 1.04e6)],
)
def test_the_same_call_takes_what_recording_explains(ns: float, recorded: float) -> None:
    assert _difference(ns, recorded) == ""


@pytest.mark.parametrize(("ns", "recorded"), [(100e3, 112e3), (100e3, 90e3), (1e6, 1.1e6), (1e6, 0.9e6), (5e3, 20e3)])
def test_another_time_while_it_is_recorded(ns: float, recorded: float) -> None:
    assert "while it is recorded" in _difference(ns, recorded)


def test_what_recording_adds_to_a_short_call_is_between_launches() -> None:
    assert _difference(3e3, 7e3, busy=3.5e3) == ""


def test_what_recording_adds_to_a_window_is_measured() -> None:
    """Seen on an H200: 57 launches of 0.18 ms, 10.1 ms in the ledger, 11.2 ms by the referee's clock."""
    window, ledger, timed = _window(196e3), _ledger(178e3), _timed(178e3)
    assert difference(window, ledger, timed, CLOCK, COST)
    assert not difference(window, ledger, timed, CLOCK, RecordingCost("", CLOCK.ns + 1e6, 1e4))


def test_a_window_may_be_off_by_what_the_clock_is_unsure_by() -> None:
    unsure = msgspec.structs.replace(CLOCK, high=CLOCK.ns + 2e6)
    found = [difference(_window(112e3), _ledger(112e3), _timed(100e3), clock, COST) for clock in (CLOCK, unsure)]
    assert [False, True] == [not text for text in found]


def test_recording_explains_no_less_than_nothing_and_its_own_spread() -> None:
    found = RecordingCost("", CLOCK.ns - 1e3, 1e3).idle_ns(CLOCK), RecordingCost("", CLOCK.ns + 1e6).idle_ns(CLOCK)
    assert (6e3, 1e6) == found


def test_more_work_than_a_call_has_time_for() -> None:
    assert "of work a call while it is recorded" in _difference(5e3, 9e3, busy=9e3)


def test_calls_from_the_host_may_take_longer() -> None:
    assert _difference(30e3, 55e3, busy=5e3, mode="eager") == ""


def test_a_cheap_call_that_is_dear_while_recorded_is_seen_from_the_host_too() -> None:
    assert "a call while it is recorded" in _difference(1e6, 2e6, busy=5e3, mode="eager")


def test_nothing_is_compared_where_no_block_counts() -> None:
    bank: Any = SimpleNamespace()
    assert difference(_window(1e5), _ledger(1e5), TimedCase(Course(bank, {"full": CALLS}), None, ()), CLOCK, COST) == ""


@given(st.floats(1e3, 1e7), st.floats(1.0, 3.0))
def test_what_is_refused_stays_refused_when_it_gets_worse(ns: float, factor: float) -> None:
    slow = 2.5 * ns + 10e3
    assert _difference(ns, slow)
    assert _difference(ns, slow * factor)


def test_faults_by_outcome() -> None:
    audited = Audited(findings=(Finding("ledger-count", "8 calls"), Finding("library-call", "cuBLAS")))
    assert ["library-call"] == [fault.reason for fault in faults(audited, Outcome.FAILED)]
    assert ["8 calls"] == [fault.message for fault in faults(audited, Outcome.INVALID)]
    assert [] == list(faults(None, Outcome.FAILED))


def test_a_note_tells_whose_kernels_they_are() -> None:
    shares = (Share("tile", OWN, 0.9, 1.0), Share("memset", "memory fills", 0.07, 1.0), Share("odd", "", 0.03, 1.0))
    text = "GPU work by CUPTI: 90 % tile (its own), 7 % memset (memory fills), 3 % odd (unknown); 2 streams"
    assert [text] == list(told(Audited(shares=shares, streams=2)))
    assert [] == list(told(Audited()))


def test_a_machine_without_a_gpu_gives_no_ledger(session: MakeSession) -> None:
    def opened(arena: Arena, source: Source, entry: str) -> Session:
        made = session(source.files["probe.py"].decode(), entry)
        return Session(
            made._forker, source, entry, "triton", "cpu", made.limits, arena=arena, audit=True
        )  # the fixture's zygote

    assert recording_cost("cpu", opened).missing


def test_a_candidate_that_does_not_record_says_so(session: MakeSession) -> None:
    assert "nothing was to be recorded" == session("def f(): pass").ledger().missing


def test_no_process_starts_where_there_is_no_ledger() -> None:
    def never(arena: Arena) -> Session:
        raise AssertionError

    auditor = Auditor(never, frozenset(), RecordingCost("no driver"))
    arena: Any = None
    assert [] == audit.run(auditor, arena, [_timed(math.pi)], CLOCK)


TEXT = """
independent = {"rows": ("x",)}
def cases():
    yield bench("a few", rows=3, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""


def _audited(written: Callable[[str], Reference], opened: Callable[[Arena], Session]) -> Audited:
    """The audit of a kernel that was timed without a fault, by a process that can record nothing here."""
    reference = written(TEXT)
    arena = Arena("cpu", 2**18)
    bank = Bank(reference, reference.cases()[0], arena, 8, "s")
    try:
        timed = TimedCase(Course(bank, {"full": 8}, "eager"), None, (1e5,))
        (audited,) = audit.run(Auditor(opened, frozenset(), RecordingCost()), arena, [timed], CLOCK)
    finally:
        arena.close()
    return audited


def _findings(audited: Audited) -> list[str]:
    return [finding.reason for finding in audited.findings]


def test_a_whole_audit(written: Callable[[str], Reference], opener: Callable[..., Callable[[Arena], Session]]) -> None:
    text = "import torch\ndef f(x, y):\n    torch.add(x, 1, out=y)\n"
    assert ["ledger-missing"] == _findings(_audited(written, opener(text)))  # there is no GPU


@pytest.mark.parametrize(
    ("body", "reason"), [("torch.add(x, 2, out=y)", "wrong-while-timed"), ("raise ValueError('no')", "audit-differs")]
)
def test_what_goes_wrong_only_in_the_audit(
    written: Callable[[str], Reference], opener: Callable[..., Callable[[Arena], Session]], body: str, reason: str
) -> None:
    assert [reason] == _findings(_audited(written, opener(f"import torch\ndef f(x, y):\n    {body}\n")))
