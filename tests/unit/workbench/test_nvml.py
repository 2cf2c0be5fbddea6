"""What samples of a GPU's state mean; and that all of it works where NVML does not."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import nvml
from kernelci.workbench.nvml import Device, Sampled, State, Watch, foreign, remarks, summary, why_dropped
from kernelci.workbench.nvml_handle import Handle, answered, ours

NOWHERE = "GPU-00000000-0000-0000-0000-000000000000"
READINGS = st.none() | st.floats(0, 3e9)
STATES = st.builds(State, READINGS, READINGS, READINGS, READINGS, READINGS, st.none() | st.integers(0, 0x1FF))


def test_a_summary() -> None:
    states = [
        State(1.9e9, 3.2e9, 300.0, 700.0, 50.0, 0x4, (7,)),
        State(1.5e9, 3.2e9, 500.0, throttle=0x0),
        State(1.8e9, 3.2e9, 400.0, 650.0, 61.0, 0x40, (9, 7)),
    ]

    expected = Sampled(3, 1.8e9, 1.5e9, 1.9e9, 3.2e9, 400.0, 650.0, 61.0, 0x44, (7, 9))
    assert expected == summary(states)


def test_nothing_known_is_nothing_claimed() -> None:
    assert Sampled(samples=2) == summary([State(), State()])


@given(st.lists(STATES, max_size=8))
def test_the_median_clock_lies_between_the_extremes(states: list[State]) -> None:
    found = summary(states)
    clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]

    assert bool(clocks) == (found.sm_clock_hz is not None)
    if clocks:
        assert (min(clocks), max(clocks)) == (found.sm_clock_low_hz, found.sm_clock_high_hz)
        assert min(clocks) <= (found.sm_clock_hz or 0.0) <= max(clocks)


@pytest.mark.parametrize(
    ("sampled", "why"),
    [
        (Sampled(throttle=0x40), "hardware thermal throttle"),
        (Sampled(throttle=0x28), "hardware slowdown and software thermal throttle"),
        (Sampled(foreign=(4711,)), "another process (pid 4711) on the GPU"),
        (Sampled(foreign=tuple(range(20))), "another process (pid 0, 1, 2, 3, 4) on the GPU"),
        (Sampled(sm_clock_hz=1.22e9), "clocks fell to 61 % of the usual 2000 MHz"),
    ],
)
def test_dropped(sampled: Sampled, why: str) -> None:
    assert why == why_dropped(sampled, 2e9)


@pytest.mark.parametrize(
    "sampled",
    [
        Sampled(),
        Sampled(throttle=0x4 | 0x1 | 0x2, sm_clock_hz=1.95e9),  # a power cap, an idle moment, an application clock
        Sampled(sm_clock_hz=1.75e9, sm_clock_low_hz=0.3e9),  # idle before the first window
        Sampled(sm_clock_hz=2.2e9),
    ],
)
def test_kept(sampled: Sampled) -> None:
    assert "" == why_dropped(sampled, 2e9)


def test_without_a_normal_clock_no_clock_is_low() -> None:
    assert ("", "") == (why_dropped(Sampled(sm_clock_hz=1e8), None), why_dropped(Sampled(sm_clock_hz=1e8), 0.0))


def test_a_power_cap_is_a_remark() -> None:
    assert ("clocks held down by the power limit at 700 W",) == remarks(Sampled(throttle=0x4, power_limit_w=700.0))
    assert () == remarks(Sampled(throttle=0x1))


@pytest.mark.parametrize(
    ("pids", "expected"),
    [
        (None, None),
        ((), ()),
        ((1,), ()),
        ((1, 5, 9), (5, 9)),
        ((1, 5, 0), (5,)),  # the last can't be seen any more
        ((5, 9), None),  # where not even we are seen, the numbers belong to another namespace
    ],
)
def test_foreign(pids: tuple[int, ...] | None, expected: tuple[int, ...] | None) -> None:
    assert expected == foreign(pids, lambda pid: pid == 1 if pid else None)


def test_this_process_and_its_children_are_ours() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = (ours(os.getpid()), ours(child.pid), ours(os.getppid()), ours(2**22 + 1))
        child.kill()

    assert (True, True, False, None) == found


def test_a_refused_question_has_no_answer() -> None:
    assert None is answered(lambda: 1 / 0)


def test_no_such_gpu() -> None:
    handle = Handle(NOWHERE)

    assert (True, None, None, None) == (
        bool(handle.missing), handle.throttle(), handle.pids(), handle.number("nvmlDeviceGetPowerUsage"),
    )  # fmt: skip


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)

    device = Device(NOWHERE)
    assert device.missing.startswith("ModuleNotFoundError")
    assert State() == device.state()


def test_a_watch_without_nvml_sees_nothing() -> None:
    with Watch(Device(NOWHERE)) as watch:
        pass

    assert (Sampled(), "") == (watch.sampled, why_dropped(watch.sampled, 2e9))


class _Made:
    """A device that answers with made-up states."""

    missing = ""

    def state(self, whole: bool = True) -> State:
        return State(sm_clock_hz=1.98e9, throttle=0x4)


def test_a_watch_takes_a_first_and_a_last_sample() -> None:
    watch = Watch(_Made(), period_s=60.0)  # type: ignore[arg-type]

    watch.start()
    assert Sampled(2, 1.98e9, 1.98e9, 1.98e9, throttle=0x4) == watch.stop()
    assert watch.sampled == watch.stop()


@pytest.mark.gpu
def test_a_gpu_tells_its_clock() -> None:
    import torch

    from kernelci.workbench.nvml_handle import uuid_of

    values = torch.ones(2**20, device="cuda:0")
    with Watch(nvml.Device(uuid_of("cuda:0"))) as watch:
        for _ in range(100):
            values += 1
        torch.cuda.synchronize()
    assert 1e8 < (watch.sampled.sm_clock_hz or 0.0) < 4e9
