"""`doctor --runner`: what a host needs, and what contains a job there."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from kernelci.check import Check
from kernelci.config import RunnerOptions
from kernelci.runner import doctor
from kernelci.runner.hardware import Gpu, Hardware
from kernelci.runner.health import GpuState, Seen
from kernelci.workbench.health import Readings

GPU = Gpu("GPU-11111111-2222-3333-4444-555555555555", "NVIDIA H200", (9, 0))
SEEN = Seen(Hardware((GPU,), "570.86.15"), (GpuState(GPU, Readings(memory_errors=0), persistent=True),))


USER = "61999" if os.geteuid() == 0 else ""


class Made:
    """A machine with one H200."""

    def look(self, fresh: bool = False) -> Seen:
        return SEEN


def test_all_of_it(tmp_path: Path) -> None:
    installation = tmp_path / "runner"
    installation.mkdir()
    (installation / "run.sh").touch()
    (installation / ".kernelci-version").write_text("2.336.0")
    (tmp_path / "kernelci.toml").write_text(
        f'[runner]\nrepository = "a/b"\nworkflows = ["a/b/*"]\ninstallation = "{installation}"\nversion = "2.336.0"\n'
        f'state = "{tmp_path}/state"\nbroker = "{tmp_path}/socket"\nuser = "{USER}"\ndisk_free_bytes = 0\n'
    )
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        found = {check.name: check for check in doctor.examine(tmp_path, Made)}

    passed = ["policy", "programs", "GitHub's runner", "disk", "GPUs", "persistence mode"]
    assert [] == [found[name] for name in passed if not found[name].passed]
    assert (USER == "", False) == ("that of the loop" == found["user of jobs"].found, found["broker"].passed)
    assert "x64, gpu, gpu:h200, sm_90a, gpus:1, driver:570.86.15, driver:570" == found["GPUs"].found
    assert doctor.conclusion(list(found.values())).startswith("This machine can take jobs; weaker than it could be: ")


def test_an_empty_machine(tmp_path: Path) -> None:
    found = doctor.examine(tmp_path, Empty)

    assert "This machine can't take jobs yet: see the lines that say NO." == doctor.conclusion(found)
    assert all(check.next_step for check in found if check.essential and not check.passed)


class Empty:
    """A machine without a GPU."""

    def look(self, fresh: bool = False) -> Seen:
        return Seen(Hardware(missing="no driver"))


def test_a_configuration_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "kernelci.toml").write_text("[runner]\ntime_limit = 3\n")

    (found,) = doctor.examine(tmp_path, Made)
    assert ("configuration", True) == (found.name, "time_limit" in found.found)


@pytest.mark.parametrize(
    ("parameters", "has_gpu", "passed", "text"),
    [
        ("A: 1\nRmProfilingAdminOnly: 0\n", True, True, "open to users"),
        ("RmProfilingAdminOnly: 1\n", True, False, "for root only"),
        ("", True, False, "not told"),
        ("", False, False, "no driver"),
    ],
)
def test_counters(parameters: str, has_gpu: bool, passed: bool, text: str) -> None:
    assert (passed, text) == ((found := doctor.counters(parameters, has_gpu)).passed, found.found)


def test_device_nodes(tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    assert f"missing or closed: {tmp_path}/nvidia-uvm" == doctor.nodes(tmp_path, True).found

    (tmp_path / "nvidia-uvm").touch()
    (tmp_path / "nvidia-uvm").chmod(0o666)
    assert Check("device nodes", True, "open to users") == doctor.nodes(tmp_path, True)


def test_secrets(tmp_path: Path) -> None:
    (tmp_path / "token").touch(0o644)
    (tmp_path / "app.pem").touch(0o600)

    assert [(False, f"chmod 600 {tmp_path}/token"), (True, "")] == [
        (check.passed, check.next_step) for check in doctor.tokens(tmp_path)
    ]


@pytest.mark.parametrize(
    ("told", "passed"),
    [
        ({"max_user_namespaces": "100\n"}, True),
        ({"max_user_namespaces": "0"}, False),
        ({"apparmor_restrict_unprivileged_userns": "1"}, False),
        ({"unprivileged_userns_clone": "0"}, False),
        ({}, True),
    ],
)
def test_bubblewrap(told: dict[str, str], passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")

    assert passed == doctor.bubblewrap(lambda path: told.get(path.name, "")).passed


def test_gpus_that_are_not_well() -> None:
    sick = Seen(SEEN.hardware, (GpuState(GPU, remap_pending=True),))

    assert (False, True) == ((found := doctor.gpus(RunnerOptions(), sick)).passed, "takes a reset" in found.found)


@pytest.mark.parametrize("kind", ["none", "file"])
def test_no_broker(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "socket"
    if kind == "file":
        path.touch()

    found: Any = doctor._broker(RunnerOptions(broker=str(path), host_user=str(os.getuid())))
    assert (False, True) == (found.passed, bool(found.next_step))
