"""What torch builds by itself: nothing is intercepted, and its extensions are built below the cache folder."""

import os
from pathlib import Path

import pytest

from kernelci import backends
from kernelci.backends import CompileFailed, torch
from kernelci.compiling import extensions


def test_extensions_go_below_the_cache(tmp_path: Path) -> None:
    assert str(tmp_path / "extensions") == torch.environment(tmp_path)["TORCH_EXTENSIONS_DIR"]


def test_without_a_gpu_all_usual_architectures_are_built(tmp_path: Path) -> None:
    assert "8.0;9.0a;10.0a" == torch.environment(tmp_path)["TORCH_CUDA_ARCH_LIST"]


def test_there_is_nothing_to_intercept() -> None:
    assert (False, True) == tuple(backends.intercepts(backends.get(name)) for name in ("torch", "triton"))


def test_nothing_can_be_yielded() -> None:
    with pytest.raises(CompileFailed, match=r"compile.. yielded str"):
        torch.describe("text", "sm_90a")


def test_the_linker_finds_the_wheels_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").touch()
    (home / "lib").mkdir()
    (home / "lib" / "libcudart.so.13").touch()
    monkeypatch.setattr("kernelci.workbench.toolkit._places", lambda: iter([home]))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache" / "extensions"))
    monkeypatch.setenv("LIBRARY_PATH", "/elsewhere")

    extensions.make_ready()

    made = tmp_path / "cache" / "libraries"
    assert home / "lib" / "libcudart.so.13" == (made / "libcudart.so").readlink()
    assert f"{made}:/elsewhere" == os.environ["LIBRARY_PATH"]
