"""Calibration: what a call must take at the least, what the ceilings are, and a real probe of the clock's cost."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernelci.reference import Cost
from kernelci.workbench import calibration
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import PROBE_ROUNDS, PROBE_SIZES, Calibration, Probe, clock_overhead
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session

FOUND = Calibration(
    4e12, Overhead(3e4, 3e4, 3e4, 1e3), {"bfloat16": 8e14}, 5e12, {"bfloat16": 1e15}, l2_bytes=50_000_000
)
Opened = Callable[[Arena, Source, str], Session]


@pytest.fixture
def opened(zygote: Zygote) -> Iterator[Opened]:
    """Starts candidates, and ends them."""
    made: list[Session] = []

    def start(arena: Arena, source: Source, entry: str) -> Session:
        made.append(Session(zygote, source, entry, "triton", "cpu", Limits(30.0, 30.0, 2**31), arena=arena))
        return made[-1]

    yield start
    for one in made:
        one.close()


CASES = [
    ("bytes bind", Cost(0.0, 1e9), "bfloat16", 1_000_000, 0.2e6),
    ("FLOP bind", Cost(1e12, 1e6), "bfloat16", 1_000_000, 1e6),
    ("a dtype without a peak", Cost(1e12, 1e9), "float32", 1_000_000, 0.2e6),
    ("all stays in the L2", Cost(0.0, 1e8), "bfloat16", 1, 0.0),
    ("twice the L2 may stay", Cost(0.0, 1e8), "bfloat16", 2, 1e5 / 5 / 2 * 1e0),
    ("nothing is known", Cost(0.0, None), "float32", 1, 0.0),
]


@pytest.mark.parametrize(
    ("cost", "dtype", "calls", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_least(cost: Cost, dtype: str, calls: int, expected: float) -> None:
    assert pytest.approx(expected, rel=0.001, abs=1e-6) == FOUND.least_ns(cost, dtype, calls)


@pytest.mark.parametrize(
    ("cost", "dtype", "expected"),
    [
        (Cost(0.0, 4e9), "bfloat16", 1e6),
        (Cost(8e11, 4e6), "bfloat16", 1e6),
        (Cost(8e11, 4e6), "float32", 1e3),
        (Cost(0.0, None), "float32", 0.0),
    ],
)
def test_ceiling(cost: Cost, dtype: str, expected: float) -> None:
    assert pytest.approx(expected) == FOUND.ceiling_ns(cost, dtype)


def test_a_call_at_the_ceiling_is_possible() -> None:
    cost = Cost(1e12, 1e9)
    assert FOUND.least_ns(cost, "bfloat16", 10) <= FOUND.ceiling_ns(cost, "bfloat16")


def test_probe(opened: Opened) -> None:
    arena = Arena("cpu", 2**16)
    probe = Probe(arena, opened)
    windows = [probe.window(size) for size in PROBE_SIZES]
    probe.close()
    arena.close()
    assert [(size, True, 0.0) for size in PROBE_SIZES] == [
        (one.calls, one.wall_ns > 0, one.device_ns) for one in windows
    ]


def test_the_probe_leaves_slots_alone(opened: Opened) -> None:
    arena = Arena("cpu", 2**16)
    arena.raw(0, 2**16).fill_(7)
    probe = Probe(arena, opened)
    probe.window(PROBE_SIZES[0])
    probe.close()
    touched = int((arena.raw(4096, 2**16) != 7).sum())
    arena.close()
    assert 0 == touched


def test_the_clocks_own_cost_comes_from_windows_of_all_sizes(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Window] = []

    def line(windows: list[Window]) -> Any:
        seen.extend(windows)
        return Overhead(1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(calibration, "overhead", line)
    clock_overhead("cpu", opened)
    assert dict.fromkeys(PROBE_SIZES, PROBE_ROUNDS) == {
        size: sum(window.calls == size for window in seen) for size in PROBE_SIZES
    }


def test_a_dtype_that_torch_does_not_multiply_has_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MATMUL_SIZE", 16)
    assert (0.0, True) == (
        calibration.matmul_peak("cpu", "bool"), calibration.matmul_peak("cpu", "float32") > 0
    )  # fmt: skip


def test_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "COPY_BYTES", 2**20)
    assert calibration.copy_bandwidth("cpu") > 0
