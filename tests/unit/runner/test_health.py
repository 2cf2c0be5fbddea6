"""What readings of a machine mean."""

import pytest

from kernelci.config import RunnerOptions
from kernelci.runner import health, probe
from kernelci.runner.hardware import Gpu, Hardware, labels
from kernelci.runner.health import Fault, GpuState, Nvidia, Seen
from kernelci.workbench.gpu_settings import GpuSettings
from kernelci.workbench.health import Readings

GPU = Gpu("GPU-11111111-2222-3333-4444-555555555555", "NVIDIA H200", (9, 0))
OTHER = Gpu("GPU-22222222-2222-3333-4444-555555555555", "NVIDIA H200", (9, 0))
HARDWARE = Hardware((GPU,), "570.86.15")
WELL = GpuState(
    GPU, Readings(memory_errors=0), GpuSettings(GPU.uuid, "max 1980 MHz", 700.0, "on", "off"), "default", True,
    2**29, False, False,
)  # fmt: skip
OPTIONS = RunnerOptions()


def _seen(state: GpuState, hardware: Hardware = HARDWARE) -> Seen:
    return Seen(hardware, (state,))


def _but(**changes: object) -> GpuState:
    return GpuState(**{name: changes.get(name, getattr(WELL, name)) for name in GpuState.__struct_fields__})  # type: ignore[arg-type]


def test_a_machine_that_is_well() -> None:
    assert [] == health.gpu_faults(OPTIONS, _seen(WELL), _seen(WELL))


def test_a_machine_that_tells_nothing_is_not_accused() -> None:
    assert [] == health.gpu_faults(OPTIONS, _seen(GpuState(GPU)), _seen(GpuState(GPU)))


@pytest.mark.parametrize(
    ("state", "severe", "text"),
    [
        (_but(missing="NVML no longer answers"), True, "lost (NVML no longer answers)"),
        (_but(vital=Readings(memory_errors=0, xids=(31, 79))), True, "the driver reported Xid 79"),
        (_but(vital=Readings(memory_errors=3)), True, "3 new uncorrected memory errors (ECC)"),
        (_but(remap_failed=True), True, "could not be remapped"),
        (_but(remap_pending=True), True, "takes a reset"),
        (_but(vital=Readings(processes=(4711, 12))), False, "another process (pid 4711, 12) is on it"),
        (_but(used_bytes=5 * 2**30), False, "5.0 GiB of its memory are in use, and no job runs"),
        (_but(vital=Readings(throttle=0x48)), False, "hardware slowdown and hardware thermal throttle while idle"),
        (_but(compute_mode="exclusive"), False, "compute mode is exclusive, and is to be default"),
        (_but(persistent=False), False, "persistence mode has been switched off"),
        (_but(settings=GpuSettings(GPU.uuid, "max 1200 MHz", 700.0, "on", "off")), False, "clocks was max 1980 MHz"),
        (_but(settings=GpuSettings(GPU.uuid, "max 1980 MHz", 350.0, "on", "off")), False, "power_limit_w was 700.0"),
        (_but(settings=GpuSettings(GPU.uuid, "max 1980 MHz", 700.0, "on", "on")), False, "mig was off and is on"),
    ],
)  # fmt: skip
def test_faults_of_a_gpu(state: GpuState, severe: bool, text: str) -> None:
    (found,) = health.gpu_faults(OPTIONS, _seen(WELL), _seen(state))

    assert (severe, True) == (found.severe, text in found.text)
    assert found.text.startswith("NVIDIA H200 GPU-11111111: ")


def test_a_kernels_own_xid_and_a_power_cap_are_no_illness() -> None:
    assert [] == health.gpu_faults(OPTIONS, _seen(WELL), _seen(_but(vital=Readings(xids=(13, 31, 43), throttle=0x4))))


def test_a_compute_mode_that_nobody_named_may_be_any_and_not_change() -> None:
    options, first = RunnerOptions(compute_mode=""), _seen(_but(compute_mode="exclusive"))

    assert [] == health.gpu_faults(options, first, first)
    assert "compute mode was exclusive" in health.text(health.gpu_faults(options, first, _seen(WELL)))


def test_no_gpu_a_gpu_less_another_driver() -> None:
    two = Seen(Hardware((GPU, OTHER), "570.86.15"), (WELL, _but(gpu=OTHER)))
    fewer = Seen(HARDWARE, two.gpus)
    newer = Seen(Hardware((GPU, OTHER), "580.1"), two.gpus)

    assert [Fault("no GPU: no driver")] == health.gpu_faults(OPTIONS, Seen(Hardware(missing="no driver")), Seen())
    assert [Fault("1 of 2 GPUs are left", True)] == health.gpu_faults(OPTIONS, two, fewer)
    assert "start the host again" in health.text(health.gpu_faults(OPTIONS, two, newer))


def test_remarks() -> None:
    state = _but(persistent=False, settings=GpuSettings(mig="on"), vital=Readings())

    assert ["persistence mode is off", "memory errors are not told", "MIG is on"] == [
        next(text for text in ("persistence mode is off", "memory errors are not told", "MIG is on") if text in found)
        for found in health.remarks(_seen(state))
    ]
    assert () == health.remarks(_seen(WELL))


@pytest.mark.parametrize(
    ("github_s", "faults"), [(None, 0), (1000.0, 0), (1059.0, 0), (1061.0, 1), (900.0, 1)]
)  # fmt: skip
def test_skew(github_s: float | None, faults: int) -> None:
    assert faults == len(health.skew(OPTIONS, github_s, 1000.0))


@pytest.mark.parametrize(
    ("gpus", "driver", "expected"),
    [
        ((GPU, GPU), "570.86.15", ["gpu", "gpu:h200", "sm_90a", "gpus:2", "driver:570.86.15", "driver:570"]),
        ((Gpu("u", "NVIDIA Strange (TM) 9000", (9, 9)),), "", ["gpu", "gpu:nvidia-strange-tm-9000", "sm_99", "gpus:1"]),
        ((Gpu("u", "§"),), "no version", ["gpu", "gpu:unknown", "gpus:1"]),
        ((), "570.1", []),
    ],
)
def test_labels(gpus: tuple[Gpu, ...], driver: str, expected: list[str]) -> None:
    always = ["self-hosted", "linux", "ephemeral", "x64"]

    assert [*always, *expected, "mine"] == list(
        labels(Hardware(gpus, driver), ("mine", "gpu") if gpus else ("mine",), "x86_64")
    )


@pytest.mark.parametrize(
    ("printed", "faults", "missing"),
    [
        (b'{"faults": ["", ""], "missing": ""}', [], ""),
        (
            b'{"faults": ["", "a sum of known numbers is wrong"]}',
            [Fault("GPU 1: a sum of known numbers is wrong", True)],
            "",
        ),
        (b'{"faults": [""]}', [Fault("the known sum was computed on 1 of 2 GPUs")], ""),
        (b'{"missing": "No module named torch"}', [], "no known sum is computed before a job: No module named torch"),
        (b"42", [Fault("the known sum was not computed (exit code 3): it said so")], ""),
        (b'{"faults": ["", ""], "more": 1}', [Fault("the known sum was not computed (exit code 3): it said so")], ""),
    ],
)
def test_the_probe_is_read_strictly(printed: bytes, faults: list[Fault], missing: str) -> None:
    assert (faults, missing) == probe.judged(printed, 3, "it said so\n", 2)


def test_a_probe_that_hangs_or_is_not_there() -> None:
    hangs, _ = probe.run(["sleep", "60"], 1, timeout_s=0.05)
    absent, _ = probe.run(["/no/such/program"], 1)

    assert ["the known sum was not computed"] * 2 == [fault.text.partition(":")[0] for fault in (*hangs, *absent)]


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pynvml.nvmlInit", lambda: 1 / 0)

    found = Nvidia().look(fresh=True)

    assert ((), "ZeroDivisionError: division by zero") == (found.gpus, found.hardware.missing)
