"""Readings through NVML, on a made-up driver that answers as nvidia-ml-py does. The real one is asked in tests/gpu."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kernelci.config import RunnerOptions
from kernelci.runner import hardware, health
from kernelci.runner.health import Nvidia

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-22222222-2222-3333-4444-555555555555")


class Driver(SimpleNamespace):
    """A stand-in for pynvml with two H200s. Functions that are not here are not answered."""

    class NVMLError(Exception):
        """What pynvml raises."""

    def __init__(self) -> None:
        constants = {name: name for name in (
            "NVML_CLOCK_SM", "NVML_CLOCK_MEM", "NVML_TEMPERATURE_GPU", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
            "NVML_VOLATILE_ECC", "nvmlEventTypeXidCriticalError",
        )}  # fmt: skip
        super().__init__(
            **constants, uuids=list(UUIDS), xids=[], used=2**29, mode=0, persistent=1, ecc=0, remapped=(0, 0, 0, 0)
        )
        self.throttle, self.processes, self.lost = 0x1, [], set[str]()

    def nvmlInit(self) -> None:  # noqa: N802
        """Ready."""

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return self._alive(self.uuids[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return self._alive(uuid)

    def _alive(self, handle: str) -> str:
        if handle in self.lost:
            raise self.NVMLError("GPU is lost")
        return handle

    def nvmlDeviceGetUUID(self, handle: str) -> bytes:  # noqa: N802
        return self._alive(handle).encode()

    def nvmlDeviceGetName(self, handle: str) -> str:  # noqa: N802
        self._alive(handle)
        return "NVIDIA H200"

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> list[int]:  # noqa: N802
        return [9, 0]

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"570.86.15"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(used=self.used, total=2**37)

    def nvmlDeviceGetComputeMode(self, handle: str) -> int:  # noqa: N802
        return int(self.mode)

    def nvmlDeviceGetPersistenceMode(self, handle: str) -> int:  # noqa: N802
        return int(self.persistent)

    def nvmlDeviceGetRemappedRows(self, handle: str) -> tuple[int, ...]:  # noqa: N802
        return tuple(self.remapped)

    def nvmlDeviceGetTotalEccErrors(self, handle: str, kind: str, counter: str) -> int:  # noqa: N802
        assert ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC") == (kind, counter)
        return int(self.ecc)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return int(self.throttle)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.processes]

    def nvmlEventSetCreate(self) -> list[int]:  # noqa: N802
        return []

    def nvmlDeviceRegisterEvents(self, handle: str, kind: str, events: list[int]) -> None:  # noqa: N802
        """Noted."""

    def nvmlEventSetWait_v2(self, events: list[int], timeout_ms: int) -> Any:  # noqa: N802
        if not self.xids:
            raise self.NVMLError("timeout")
        return SimpleNamespace(eventData=self.xids.pop(0))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def _faults(driver: Driver, **changes: Any) -> str:
    """What a second look says after such changes."""
    machine = Nvidia()
    first = machine.look(fresh=True)
    assert [] == health.gpu_faults(RunnerOptions(), first, machine.look())
    driver.__dict__.update(changes)
    return health.text(health.gpu_faults(RunnerOptions(), first, machine.look()))


def test_what_is_found(driver: Driver) -> None:
    seen = Nvidia().look(fresh=True)

    assert list(UUIDS) == [state.gpu.uuid for state in seen.gpus]
    assert (2**29, "default", True, False, 0) == (
        (one := seen.gpus[0]).used_bytes, one.compute_mode, one.persistent, one.remap_failed, one.vital.memory_errors,
    )  # fmt: skip
    assert {"gpu:h200", "sm_90a", "gpus:2", "driver:570"} <= set(hardware.labels(seen.hardware))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"xids": [31, 79]}, "the driver reported Xid 79"),
        ({"ecc": 2}, "2 new uncorrected memory errors (ECC)"),
        ({"remapped": (0, 1, 1, 0)}, "takes a reset"),
        ({"remapped": (0, 1, 0, 1)}, "could not be remapped"),
        ({"used": 2**35}, "32.0 GiB of its memory are in use"),
        ({"mode": 3}, "compute mode is exclusive"),
        ({"persistent": 0}, "persistence mode has been switched off"),
        ({"processes": [1]}, "another process (pid 1) is on it"),
        ({"throttle": 0x40}, "hardware thermal throttle while idle"),
        ({"lost": {UUIDS[1]}}, "NVIDIA H200 GPU-22222222: lost (NVML no longer answers)"),
        ({"uuids": UUIDS[:1]}, "1 of 2 GPUs are left"),
    ],
)
def test_what_has_changed(driver: Driver, changes: dict[str, Any], text: str) -> None:
    assert text in _faults(driver, **changes)


def test_a_fresh_look_starts_again(driver: Driver) -> None:
    machine = Nvidia()
    machine.look(fresh=True)
    driver.uuids.pop()

    assert (2, 1) == (len(machine.look().gpus), len(machine.look(fresh=True).gpus))


def test_a_gpu_that_does_not_answer_at_the_first_look(driver: Driver) -> None:
    driver.lost.add(UUIDS[0])

    seen = Nvidia().look(fresh=True)
    assert [UUIDS[1]] == [state.gpu.uuid for state in seen.gpus]
    assert [health.Fault("GPU 0 does not answer", severe=True)] == health.gpu_faults(RunnerOptions(), seen, seen)
