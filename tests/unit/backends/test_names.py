"""Backends are found by existing, and finding them costs nothing."""

import subprocess
import sys

import pytest

from kernelci import backends

HEAVY = ("torch", "triton", "tilelang", "tvm", "cutlass", "cuda")


def test_a_backend_is_a_file() -> None:
    assert ["cuda", "cutedsl", "tilelang", "torch", "triton"] == backends.names()


def test_an_unknown_backend_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="fortran"):
        backends.get("fortran")


def test_getting_every_backend_imports_no_dsl() -> None:
    code = (
        "import sys; from kernelci import backends; [backends.get(name) for name in backends.names()]; "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", backends.names())
def test_every_backend_offers_what_the_protocol_asks(name: str) -> None:
    backend = backends.get(name)
    offered = [backend.environment, backend.preload, backend.describe, backend.intercept]
    assert all(callable(function) for function in offered)
