"""The stub that calls a kernel under a disturbance."""

import contextlib
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelci import disturbing
from kernelci.disturbing import calling
from kernelci.disturbing.calling import Undisturbed
from kernelci.workbench.protocol import Source

KERNEL = Source("softmax", "plain.py", {"plain.py": b"def softmax(x, y): return x + y\n"})


def test_the_stub_stands_beside_the_kernels_files() -> None:
    made = disturbing.source(KERNEL, "softmax", "shared")
    assert (disturbing.STUB, {"plain.py", disturbing.STUB}) == (made.name, set(made.files))


def test_the_stub_has_the_entry_with_its_signature(tmp_path: Path) -> None:
    made = disturbing.source(KERNEL, "softmax", "shared")
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    module = calling.kernel(tmp_path / made.name)
    assert ["x", "y"] == list(inspect.signature(module.softmax).parameters)
    assert not hasattr(module, "prepare")


def test_the_stub_has_the_kernels_prepare(tmp_path: Path) -> None:
    source = Source("softmax", "plain.py", {"plain.py": KERNEL.files["plain.py"] + b"def prepare(case): return 7\n"})
    for name, content in disturbing.source(source, "softmax", "shared").files.items():
        (tmp_path / name).write_bytes(content)
    assert 7 == calling.kernel(tmp_path / disturbing.STUB).prepare(None)


def _entry(value: int) -> int:
    return value + 1


def test_a_call_that_launches_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    called = calling.disturbed(SimpleNamespace(entry=_entry), "entry", "warps-more")  # type: ignore[arg-type]
    with pytest.raises(Undisturbed, match="the call has nothing that it could change"):
        called(1)


def test_a_disturbance_that_fails_is_not_the_kernels_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(calling._MAKERS, "shared", lambda: contextlib.nullcontext([])[0])  # type: ignore[index]
    called = calling.disturbed(SimpleNamespace(entry=_entry), "entry", "shared")  # type: ignore[arg-type]
    with pytest.raises(Undisturbed, match="shared can't be made here: TypeError"):
        called(1)


def test_what_the_kernel_raises_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(calling._MAKERS, "shared", lambda: contextlib.nullcontext(["made"]))
    called = calling.disturbed(SimpleNamespace(entry=_entry), "entry", "shared")  # type: ignore[arg-type]
    assert 2 == called(1)
    with pytest.raises(TypeError, match="can only concatenate"):
        called("one")


def test_every_disturbance_can_be_made() -> None:
    assert {one.name for one in disturbing.DISTURBANCES} == set(calling._MAKERS)


@pytest.mark.parametrize(
    ("backend", "device", "tier", "expected"),
    [
        ("triton", "cpu", "pr", ["fill", "order"]),
        ("triton", "cuda", "pr", ["shared", "load"]),
        ("cutedsl", "cuda", "full", ["shared", "load"]),
        ("cuda", "cuda", "full", ["shared", "load", "delays", "fusion"]),
        ("tilelang", "cuda", "full", ["shared", "load", "delays", "fusion"]),
        (
            "triton",
            "cuda",
            "full",
            [
                "shared",
                "load",
                "delays",
                "fusion",
                "overflow",
                "warps-more",
                "warps-fewer",
                "stages-one",
                "stages-more",
            ],
        ),
        ("torch", "cpu", "pr", []),
    ],
)
def test_what_there_is_to_disturb(backend: str, device: Any, tier: str, expected: list[str]) -> None:
    assert expected == [one.name for one in disturbing.fitting(backend, device, tier)]


def test_the_exceptions_name_is_what_the_rung_looks_for() -> None:
    assert disturbing.NOTHING == Undisturbed.__name__
