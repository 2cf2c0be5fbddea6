"""Why two reports' times can't be compared."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.fingerprint import differences, remarks
from kernelci.model import Environment

ONE = Environment(
    "Linux x86_64", "3.12.3", "NVIDIA H200", "sm_90a", "580.1", "bubblewrap", {"torch": "2.11.0", "triton": "3.6.0"},
    "GPU-1", "13.0", "max 1980 MHz, memory 3201 MHz", 700.0, "on", "off",
)  # fmt: skip


def _other(**changed: object) -> Environment:
    return msgspec.structs.replace(ONE, **changed)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (ONE, ()),
        (_other(gpu="NVIDIA H100", target="sm_90"), ("GPU NVIDIA H200 and NVIDIA H100", "target sm_90a and sm_90")),
        (_other(gpu=""), ("GPU NVIDIA H200 and none",)),
        (_other(driver="575.2"), ("driver 580.1 and 575.2",)),
        (_other(cuda="12.8"), ("CUDA 13.0 and 12.8",)),
        (_other(versions={"torch": "2.12.0", "triton": "3.6.0"}), ("torch 2.11.0 and 2.12.0",)),
        (_other(clocks="max 1755 MHz"), ("clocks max 1980 MHz, memory 3201 MHz and max 1755 MHz",)),
        (_other(power_limit_w=500.0), ("power limit 700 W and 500 W",)),
        (_other(ecc="off", mig="on"), ("ECC on and off", "MIG off and on")),
    ],
)
def test_what_counts(other: Environment, expected: tuple[str, ...]) -> None:
    assert expected == differences(ONE, other)


@pytest.mark.parametrize(
    "other",
    [
        _other(gpu_uuid="GPU-2"),
        _other(machine="Linux aarch64", python="3.11.0", isolation="none"),
        _other(versions={"torch": "2.11.0", "numpy": "1.26"}),  # without Triton its kernels don't run at all
        _other(clocks="", power_limit_w=None, ecc="", mig="", cuda="", gpu_uuid=""),  # a report of an earlier version
    ],
)
def test_what_does_not(other: Environment) -> None:
    assert () == differences(ONE, other)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (ONE, ()),
        (_other(gpu_uuid="GPU-2"), ("not the same GPU: GPU-1 and GPU-2",)),
        (_other(gpu_uuid="", driver="", ecc=""), ("known of one side only: driver, ECC",)),
    ],
)
def test_remarks(other: Environment, expected: tuple[str, ...]) -> None:
    assert expected == remarks(ONE, other)


TEXTS = st.sampled_from(["", "a", "b"])
ENVIRONMENTS = st.builds(
    Environment, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS), TEXTS, TEXTS, TEXTS,
    st.none() | st.floats(0, 1000), st.sampled_from(["on", "off", ""]), st.sampled_from(["on", "off", ""]),
)  # fmt: skip


@given(ENVIRONMENTS, ENVIRONMENTS)
def test_both_directions_agree(a: Environment, b: Environment) -> None:
    assert len(differences(a, b)) == len(differences(b, a))
    assert () == differences(a, a)
