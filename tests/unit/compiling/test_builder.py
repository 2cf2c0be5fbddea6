"""The builder: compiles once per content, and takes a cubin that nothing can read for what it is."""

from pathlib import Path

import msgspec
import pytest

from kernelci import catalog, config
from kernelci.compiling.builder import Builder, Compilation, _described, _kept, representative
from kernelci.reference import check, load
from kernelci.workbench.protocol import BuiltKernel

ROOT = Path(__file__).resolve().parents[3]


def test_second_submit_comes_from_the_cache(tmp_path: Path) -> None:
    options = config.load(tmp_path, {}, {"cache": str(tmp_path), "kernels": str(ROOT / "tests" / "bad_kernels")})
    (kernel,) = catalog.scan(tmp_path, options).select(["matmul/tail_off_by_one"])
    reference, builder = load(ROOT / "references" / "matmul.py"), Builder(options)
    try:
        first, second = (builder.submit(kernel, reference, "sm_80", False).result() for _ in range(2))
    finally:
        builder.close()
    assert (False, True) == (first.cached, second.cached)
    assert first == msgspec.structs.replace(second, cached=False)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF" + b"\0" * 60])
def test_broken_cubin(content: bytes) -> None:
    found = _described(BuiltKernel("symbol", "config", {"ptx": b"// ptx", "cubin": content}))
    assert ((), b"// ptx") == (found.resources, found.files["ptx"])


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x91\x01"])
def test_broken_cache_entry_is_no_entry(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    assert _kept(tmp_path / "key") is None


def test_cache_entry(tmp_path: Path) -> None:
    made = Compilation("sm_80", notes=("note",))
    (tmp_path / "key").write_bytes(msgspec.msgpack.encode(made))
    assert made == _kept(tmp_path / "key")


def test_representative_without_bench_cases() -> None:
    cases = (check(n=4, dtype="float32"), check(n=9, dtype="float32"), check(n=5, dtype="float16"))
    assert {"9-fp32", "5-fp16"} == {case.id for case in representative(cases)}
