"""How a GPU is set up, in words."""

import pytest

from kernelci.workbench.device import Device, environment
from kernelci.workbench.gpu_settings import GpuSettings, clocks, settings, switch


@pytest.mark.parametrize(
    ("readings", "text"),
    [
        ((1.98e9, 3.201e9, 1.98e9), "max 1980 MHz, memory 3201 MHz, applications 1980 MHz"),
        ((1.98e9, None, None), "max 1980 MHz"),
        ((None, None, None), ""),
    ],
)
def test_clocks(readings: tuple[float | None, float | None, float | None], text: str) -> None:
    assert text == clocks(*readings)


@pytest.mark.parametrize(("modes", "text"), [([1, 0], "on"), ([0, 1], "off"), (None, ""), ([], ""), ("on", "")])
def test_switch(modes: object, text: str) -> None:
    assert text == switch(modes)


def test_a_gpu_that_nobody_knows() -> None:
    assert GpuSettings("GPU-0") == settings("GPU-0")


def test_without_a_gpu_nothing_is_said_of_one() -> None:
    found = environment(Device("cpu"), "none")

    assert ("", "", "", None, "", "") == (
        found.gpu_uuid, found.cuda, found.clocks, found.power_limit_w, found.ecc, found.mig,
    )  # fmt: skip


@pytest.mark.gpu
def test_a_gpu_has_an_identity() -> None:
    from kernelci.workbench.device import find

    found = environment(find(), "none")
    assert (True, True) == (found.gpu_uuid.startswith("GPU-"), bool(found.cuda))
