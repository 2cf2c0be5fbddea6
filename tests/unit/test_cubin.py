"""Reading cubins: small kernels from Triton's own ptxas, which needs no GPU."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from kernelci import gpus
from kernelci.workbench import cubin

PTX = """
.version 8.0
.target {target}
.address_size 64
.visible .entry sum(.param .u64 out)
.maxntid 256
{{
  .reg .u64 %d<3>; .reg .f32 %f<3>; .reg .u32 %r<3>;
  .shared .align 4 .b8 tile[1024];
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mul.lo.u32 %r2, %r1, 4;
  mov.f32 %f1, 0f3F800000;
  mov.u32 %r1, tile;
  add.u32 %r1, %r1, %r2;
  st.shared.f32 [%r1], %f1;
  bar.sync 0;
  ld.shared.f32 %f2, [tile+16];
  st.global.f32 [%d1], %f2;
  ret;
}}
.visible .entry empty() {{ ret; }}
"""


def assemble(folder: Path, target: str) -> bytes:
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs Triton's ptxas")
    tool = Path(spec.submodule_search_locations[0], "backends", "nvidia", "bin", "ptxas")
    (folder / "k.ptx").write_text(PTX.format(target=target))
    subprocess.run([tool, f"-arch={target}", folder / "k.ptx", "-o", folder / "k.cubin"], check=True)
    return (folder / "k.cubin").read_bytes()


@pytest.fixture(scope="module", params=["sm_80", "sm_90a"])
def binary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble(tmp_path_factory.mktemp("cubin"), request.param)


def kernel(binary: bytes, symbol: str = "sum") -> cubin.KernelResources:
    return next(found for found in cubin.resources(binary) if found.symbol == symbol)


def test_finds_every_kernel(binary: bytes) -> None:
    assert {"sum", "empty"} == {found.symbol for found in cubin.resources(binary)}


def test_static_shared_memory_leaves_out_the_systems(binary: bytes) -> None:
    assert (1024, 0) == (kernel(binary).static_shared_bytes, kernel(binary, "empty").static_shared_bytes)


def test_counts_barriers(binary: bytes) -> None:
    assert (1, 0) == (kernel(binary).barriers, kernel(binary, "empty").barriers)


def test_nothing_is_spilled(binary: bytes) -> None:
    assert (0, 0) == (kernel(binary).stack_bytes, kernel(binary).local_bytes)


def test_code_has_a_size(binary: bytes) -> None:
    assert 0 == kernel(binary).code_bytes % 128


def test_disassembly_shows_instructions(binary: bytes) -> None:
    assert "BAR.SYNC" in cubin.disassemble(binary)


@pytest.mark.parametrize("content", [b"", b"junk", b"\x7fELF" + bytes(100)])
def test_no_cubin_is_a_clear_exception(content: bytes) -> None:
    with pytest.raises(cubin.BrokenCubin, match="not a cubin"):
        cubin.resources(content)


def test_a_truncated_cubin_is_a_clear_exception(binary: bytes) -> None:
    with pytest.raises(cubin.BrokenCubin):
        cubin.resources(binary[: len(binary) // 2])


def test_without_tools_the_message_says_what_to_install(binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubin, "tools", lambda name: [])
    with pytest.raises(cubin.ToolMissing, match=r"cuobjdump not found; install kernelci\[triton\]"):
        cubin.resources(binary)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "expected"),
    [
        (32, 256, 0, (8, "registers")),
        (255, 256, 0, (1, "registers")),
        (255, 1024, 0, (0, "registers")),
        (16, 32, 0, (32, "blocks")),
        (32, 128, 100_000, (2, "shared memory")),
        (16, 512, 0, (4, "threads")),
    ],
)
def test_occupancy(registers: int, threads: int, shared: int, expected: tuple[int, str]) -> None:
    found = cubin.occupancy(
        cubin.KernelResources("k", registers, 0, 0, 0, 0, 128, 0), threads, gpus.for_target("sm_90a"), shared
    )
    assert expected == (found.blocks_per_sm, found.limiter)


def test_occupancy_of_warps() -> None:
    resources = cubin.KernelResources("k", 64, 0, 0, 0, 0, 128, 0)
    assert 0.5 == cubin.occupancy(resources, 256, gpus.for_target("sm_90a")).warps_share


SOURCE = """extern "C" __global__ void twice(float* y) {
  y[threadIdx.x] *= 2.0f;
}
"""


@pytest.fixture(scope="module")
def with_lines() -> bytes:
    """A cubin of NVRTC's with line information, which older tools than NVRTC can't read."""
    core = pytest.importorskip("cuda.core")
    options = core.ProgramOptions(arch="sm_90", name="twice.cu", lineinfo=True)
    code: bytes = core.Program(SOURCE, "c++", options).compile("cubin").code
    return code


def test_resources_of_a_cubin_with_line_information(with_lines: bytes) -> None:
    found = kernel(with_lines, "twice")
    assert (0, True, True) == (found.stack_bytes, found.registers > 0, found.code_bytes > 0)


def test_source_lines_stand_in_the_disassembly(with_lines: bytes) -> None:
    assert 'twice.cu", line 2' in cubin.disassemble(with_lines)
