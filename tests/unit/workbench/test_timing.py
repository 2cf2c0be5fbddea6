"""How many calls a case gets: by time, by the L2, by memory; and the arena that holds them."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.reference import Case, Reference
from kernelci.workbench import slots, timing
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import EACH_CALLS, Course
from kernelci.workbench.cuda_memory import CudaFailed
from kernelci.workbench.timing import HOT_ROUNDS, LEAST_CALLS, MAX_CALLS, MAX_CALLS_DRAWN_ALONE, calls_for

Written = Callable[[str], Reference]
CALIBRATION = Calibration(
    1e12, Overhead(3e4, 3e4, 3e4, 1e3), {"float32": 1e12}, 1e12, {"float32": 1e12}, l2_bytes=2**20
)
TEXT = """
def cases():
    yield bench("a few", rows=64, cols=32, dtype="float32")
    yield bench("more", rows=128, cols=32, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
def cost(case):
    return FLOP
"""
TOUCHED = 2 * 64 * 32 * 4
MIB = 2**20


def _reference(written: Written, flop: float = 0.0, name: str = "some") -> Reference:
    return written(TEXT.replace("FLOP", f"{flop}"), name)


def _case(reference: Reference) -> Case:
    return reference.cases()[0]


@pytest.fixture
def arena() -> Iterator[Arena]:
    """Sixteen mebibytes."""
    made = Arena("cpu", 16 * MIB)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("ns", "touched", "most", "calls"),
    [
        (20_000.0, 2**20, 4096, 1000),  # 20 ms
        (20_000.0, 2**20, 300, 300),  # memory
        (1e6, 2**12, 4096, 512),  # twice the L2
        (1e9, 2**30, 4096, 2),
        (0.0, 2**30, 4096, 4096),  # a claim
    ],
)
def test_calls(ns: float, touched: int, most: int, calls: int) -> None:
    assert calls == calls_for(ns, touched, most, CALIBRATION)


@given(st.floats(0, 1e13), st.integers(1, 2**40), st.integers(2, MAX_CALLS))
def test_calls_stay_within_bounds(ns: float, touched: int, most: int) -> None:
    assert LEAST_CALLS <= calls_for(ns, touched, most, CALIBRATION) <= most


def _most(reference: Reference, size: int, calibration: Calibration = CALIBRATION) -> int:
    case = _case(reference)
    return timing.most_calls(reference, case, slots.layout(reference, case), size, calibration)


@pytest.mark.parametrize(("flop", "call_ns", "calls"), [(0.0, 1e3, MAX_CALLS), (1e9, 1e3, 20), (0.0, 1e5, 200)])
def test_most_calls_are_those_at_the_fastest_time_that_is_possible(
    written: Written, flop: float, call_ns: float, calls: int
) -> None:
    calibration = replace(CALIBRATION, overhead=replace(CALIBRATION.overhead, call_ns=call_ns))
    assert calls == _most(_reference(written, flop), 2**60, calibration)


def test_most_calls_by_memory(written: Written) -> None:
    reference = _reference(written)
    assert 16 * MIB // slots.layout(reference, _case(reference)).stride == _most(reference, 16 * MIB)


def test_few_calls_where_each_slot_is_drawn_alone(written: Written) -> None:
    text = TEXT.replace("FLOP", "0").replace("dtype=case.dtype)}", "dtype=case.dtype).abs()}")
    assert MAX_CALLS_DRAWN_ALONE == _most(written(text), 2**60)


def _course(arena: Arena, reference: Reference, ns: float = 20_000.0) -> Course:
    return timing.course(arena, reference, _case(reference), ns, CALIBRATION, "s")


def test_windows_of_a_course(arena: Arena, written: Written) -> None:
    calls = _course(arena, _reference(written)).calls
    warm = 2**20 // 2 // TOUCHED
    assert (1, EACH_CALLS, warm) == (calls["solo"], calls["each"], calls["warm"])


def test_short_windows_are_of_many_sizes(arena: Arena, written: Written) -> None:
    reference = _reference(written)
    courses = [_course(arena, reference).calls for _ in range(12)]
    full = courses[0]["full"]
    sizes = {calls["short"] for calls in courses}
    assert (True, True) == (len(sizes) > 3, all(full // 8 <= size < 5 * full / 8 for size in sizes))


def test_a_full_window_is_cold(arena: Arena, written: Written) -> None:
    assert _course(arena, _reference(written), ns=1e9).calls["full"] * TOUCHED >= 2 * CALIBRATION.l2_bytes


def test_no_warm_window_where_nothing_fits(arena: Arena, written: Written) -> None:
    small = replace(CALIBRATION, l2_bytes=TOUCHED)
    reference = _reference(written)
    assert "warm" not in timing.course(arena, reference, _case(reference), 20_000.0, small, "s").calls


def test_what_arithmetic_binds_has_more_and_shorter_windows(arena: Arena, written: Written) -> None:
    cool, hot = (_course(arena, _reference(written, flop, f"r{flop:.0f}"), ns=5e4) for flop in (0.0, 1e5))
    assert [(400, 1), (200, HOT_ROUNDS)] == [(one.calls["full"], one.rounds) for one in (cool, hot)]


def test_a_course_knows_its_usual_fill(arena: Arena, written: Written) -> None:
    assert _course(arena, _reference(written)).usual_fill_ns > 0


def test_the_arena_holds_every_case(written: Written) -> None:
    reference = _reference(written)
    made, note = timing.arena_for("cpu", reference, reference.cases(), CALIBRATION)
    wanted = max(slots.layout(reference, case).stride for case in reference.cases()) * MAX_CALLS
    made.close()
    assert (True, "") == (made.size >= min(wanted, timing.budget("cpu")), note)


def test_the_arena_is_halved_until_it_fits(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(device: str, size: int, serves: bool = False) -> Arena:
        if size > 16 * MIB:
            raise CudaFailed("out of memory")
        return Arena(device, size, serves)

    monkeypatch.setattr(timing, "Arena", small)
    reference = _reference(written)
    made, note = timing.arena_for("cpu", reference, reference.cases(), CALIBRATION)
    made.close()
    assert (True, True) == (8 * MIB < made.size <= 16 * MIB, "windows are shorter" in note)


def test_no_memory_for_two_slots(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(device: str, size: int, serves: bool = False) -> Arena:
        raise CudaFailed("out of memory")

    monkeypatch.setattr(timing, "Arena", none)
    reference = _reference(written)
    with pytest.raises(Stop) as caught:
        timing.arena_for("cpu", reference, reference.cases(), CALIBRATION)
    assert "out-of-memory" == caught.value.reason


def test_dtype_of_a_case(written: Written) -> None:
    named = _case(_reference(written))
    assert ("float32", "bfloat16") == (
        timing.dtype_of_case(Case("bench", ())),
        timing.dtype_of_case(named.with_dtype("torch.bfloat16")),
    )


def test_cost_counts_bytes_by_itself(written: Written) -> None:
    reference = _reference(written, flop=7.0)
    cost = timing.cost_of(reference, _case(reference))
    assert (7.0, TOUCHED) == (cost.flops, cost.bytes)


def test_the_fastest_window_of_a_scout() -> None:
    windows = [Window(10, 30_000.0 + 10 * ns, 0.0) for ns in (5.0, 3.0, 4.0)]
    assert 3.0 == min(map(CALIBRATION.overhead.closest, windows))
