"""A host's own readings, and the known sum, on the GPUs of this machine."""

import sys

import pytest

from kernelci.config import RunnerOptions
from kernelci.runner import hardware, health, probe
from kernelci.runner.health import Nvidia

pytestmark = pytest.mark.gpu
OPTIONS = RunnerOptions(compute_mode="", gpu_memory_used_bytes=2**40)


def test_this_machine_is_well() -> None:
    machine = Nvidia()
    first = machine.look(fresh=True)

    assert "" == first.hardware.missing
    assert [] == health.gpu_faults(OPTIONS, first, machine.look())
    assert all(state.used_bytes is not None and state.compute_mode for state in first.gpus)


def test_its_labels_name_the_gpu() -> None:
    found = hardware.labels(hardware.find())

    assert {"gpu", "self-hosted", "ephemeral"} <= set(found)
    assert any(label.startswith("gpu:") for label in found)
    assert any(label.startswith("sm_") for label in found)
    assert any(label.startswith("driver:") for label in found)


def test_the_known_sum_on_every_gpu() -> None:
    assert ([], "") == probe.run([sys.executable, "-P", "-m", probe.MODULE], len(hardware.find().gpus))
