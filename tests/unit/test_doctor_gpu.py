"""`doctor` on the instruments around a GPU."""

from pathlib import Path

import pytest

from kernelci import doctor_gpu
from kernelci.check import Check
from kernelci.workbench import instruments, toolkit
from kernelci.workbench.nvml import State


def test_the_state_of_a_gpu() -> None:
    found = doctor_gpu.state(State(1.98e9, 3.2e9, 71.4, temperature_c=31.0), "")

    assert Check("NVML", True, "SM clock 1980 MHz, 71 W, 31 °C") == found


@pytest.mark.parametrize(
    ("found", "missing", "step"),
    [
        (State(), "ModuleNotFoundError: No module named 'pynvml'", "pip install 'kernelci[gpu]'; until then"),
        (State(power_w=70.0), "", "throttled blocks of a benchmark are not seen"),
    ],
)
def test_a_state_that_nobody_tells(found: State, missing: str, step: str) -> None:
    check = doctor_gpu.state(found, missing)

    assert (False, True) == (check.passed, check.next_step.startswith(step))


@pytest.mark.parametrize(
    ("missing", "step"),
    [
        ("cuptiError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "options nvidia NVreg_RestrictProfilingToAdminUsers=0"),
        ("ModuleNotFoundError: No module named 'cupti'", "pip install 'kernelci[gpu]'"),
        ("NotSupportedError: libcupti.so.13 is not found", "pip install 'kernelci[gpu]'"),
        ("cuptiError: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "only one profiler can listen"),
        ("RuntimeError: CUPTI accepts the request and records nothing", "only one profiler can listen"),
    ],
)
def test_a_ledger_that_is_missing(missing: str, step: str) -> None:
    check = doctor_gpu.ledger(missing)

    assert (False, missing, True) == (check.passed, check.found, check.next_step.startswith(step))


def test_a_ledger() -> None:
    assert Check("ledger", True, "CUPTI records kernels") == doctor_gpu.ledger("")


def test_without_a_gpu_nothing_is_asked() -> None:
    found = doctor_gpu.examine(has_gpu=False)

    assert ["NVML", "ledger", "Nsight Compute", "compute-sanitizer"] == [check.name for check in found]
    assert ["not asked: no GPU"] * 2 == [check.found for check in found[:2]]


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with one empty folder, and nothing known of any tool."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(instruments, "_LOCAL", tmp_path / "none")
    monkeypatch.setattr(instruments, "_NSIGHT", tmp_path / "nsight")
    monkeypatch.setattr(toolkit, "home", lambda _needs: None)
    for function in (instruments.compute_sanitizer, instruments.nsight_compute):
        function.cache_clear()
        monkeypatch.setattr(instruments, function.__name__, function.__wrapped__)
    return tmp_path


def _tool(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return path


def test_no_tools(binaries: Path) -> None:
    found = doctor_gpu.examine(has_gpu=False)[2:]

    assert [(False, "no `ncu`"), (False, "not installed")] == [(check.passed, check.found) for check in found]
    assert all(check.next_step for check in found)


def test_tools_on_the_path(binaries: Path) -> None:
    ncu, sanitizer = _tool(binaries / "ncu"), _tool(binaries / "compute-sanitizer")

    found = doctor_gpu.examine(has_gpu=False)[2:]
    assert [(True, str(ncu), ""), (True, str(sanitizer.resolve()), "")] == [
        (check.passed, check.found, check.next_step) for check in found
    ]


def test_the_newest_nsight_compute(binaries: Path) -> None:
    for version in ("2024.3.2", "2025.3.1"):
        _tool(binaries / "nsight" / version / "ncu")

    assert binaries / "nsight" / "2025.3.1" / "ncu" == instruments.nsight_compute()


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    assert [True, True] == [check.passed for check in doctor_gpu.examine(has_gpu=True)[:2]]
