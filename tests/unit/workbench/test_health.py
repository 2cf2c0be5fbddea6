"""What readings of a GPU mean; the probe itself where there is one."""

import time

import pytest

from kernelci.errors import GpuSick
from kernelci.workbench import health
from kernelci.workbench.health import Monitor, Readings, ailment, remarks

WELL = Readings(free_bytes=90 * 2**30, total_bytes=100 * 2**30, memory_errors=2, processes=(7,))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (Readings(fault="no answer within 10 s"), "no answer within 10 s"),
        (Readings(xids=(31, 79)), "Xid 79"),
        (Readings(memory_errors=3), "1 new uncorrected memory errors"),
        (Readings(free_bytes=2**30, total_bytes=100 * 2**30), "1073741824 bytes of GPU memory"),
    ],
)
def test_sick(now: Readings, said: str) -> None:
    assert said in ailment(WELL, now)


@pytest.mark.parametrize(
    "now",
    [
        WELL,
        Readings(),  # a machine that tells nothing
        Readings(xids=(13, 31, 43, 45)),  # these follow from a kernel's own fault
        Readings(memory_errors=2),
        Readings(free_bytes=50 * 2**30, total_bytes=100 * 2**30),  # others climb meanwhile
        Readings(throttle=0x40, processes=(7, 8)),
    ],
)
def test_well(now: Readings) -> None:
    assert "" == ailment(WELL, now)


def test_memory_that_was_short_before_is_not_the_faults_doing() -> None:
    short = Readings(free_bytes=2**30, total_bytes=100 * 2**30)
    assert "" == ailment(short, short)


def test_remarks() -> None:
    now = Readings(throttle=0x40 | 0x01, processes=(7, 8, 9))
    assert ("throttled: hardware thermal", "2 foreign processes on the GPU") == remarks(WELL, now)


def test_without_a_gpu_nothing_is_asked() -> None:
    monitor = Monitor("cpu")
    monitor.after("gpu-fault")
    monitor.require_well()
    assert () == monitor.notes


def test_sick_stays_sick() -> None:
    monitor = Monitor("cpu")
    monitor._sick = "the driver reported Xid 79"
    with pytest.raises(GpuSick, match="Xid 79"):
        monitor.require_well()


@pytest.mark.gpu
def test_gpu_is_well_and_soon_asked() -> None:
    monitor = health.monitor("cuda:0")
    monitor.after("gpu-fault")
    began = time.perf_counter()
    monitor.after("gpu-fault")
    assert 0.05 > time.perf_counter() - began


@pytest.mark.gpu
def test_readings_of_a_gpu() -> None:
    found = health.Probe("cuda:0").read()
    assert ("", True) == (found.fault, 0 < (found.free_bytes or 0) <= (found.total_bytes or 0))
