"""Delays and other launch options in what real compilers make; each DSL in its own child, whose state they change."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelci import backends
from kernelci.workbench import toolkit

TRITON = """
import json, sys
from pathlib import Path
from kernelci import backends, gpus
from kernelci.compiling import building
from kernelci.compiling.loading import load
from kernelci.disturbing import compilers, fusing, launching
import contextlib
backend = backends.get("triton")
backend.preload()
path = Path(sys.argv[1], "rows.py")
path.write_text('''
import triton
import triton.language as tl
@triton.jit
def rows(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + at), axis=0))
def total(x, y): rows[(8,)](x, y, 1024)
def eight(x, y): rows[(8,)](x, y, 1024, num_warps=8)
@triton.jit
def line(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * tl.load(y + at) + 1.5)
def lines(x, y): line[(8,)](x, y, y.shape[0], 1024)
''')
module = load(path)
tensor = lambda *shape: building.StandInSpec(shape, "float32", None, 0)
def built(entry, disturb):
    with contextlib.ExitStack() as stack:
        made = disturb(stack)
        tensors = {"x": tensor(8, 1024), "y": tensor(8)}
        (build,) = building.build(module, entry, None, tensors, gpus.for_target("sm_90a"), backend).builds
        return [build.config.rpartition(", num_warps")[2][1:], build.files["ptx"].count(b"nanosleep"), len(made)]
def counted(disturb):
    with contextlib.ExitStack() as stack:
        made = disturb(stack)
        tensors = {"x": tensor(8, 1024), "y": tensor(8, 1024)}
        (build,) = building.build(module, "lines", None, tensors, gpus.for_target("sm_90a"), backend).builds
        ptx = build.files["ptx"]
        return [b"fma.rn" in ptx, b"overflow detected" in ptx or b"__assertfail" in ptx, len(made)]
over = lambda option, change: lambda stack: stack.enter_context(launching.overridden(option, change))
print(json.dumps({
    "plain": built("total", lambda stack: []),
    "delays": built("total", compilers.delayed),
    "plain again": built("total", lambda stack: []),
    "more": built("total", over("num_warps", lambda warps: 2 * warps)),
    "fewer": built("eight", over("num_warps", lambda warps: warps // 2)),
    "stages": built("total", over("num_stages", lambda stages: stages + 1)),
    "fused": counted(lambda stack: []),
    "unfused": counted(fusing.unfused),
    "asserting": counted(over("debug", lambda debug: True)),
}))
"""
CUDA = r'''
import json, sys
from kernelci.disturbing import compilers, fusing
from kernelci.workbench import cudacore
import contextlib, types
import cuda.core
from cuda.core import Program, ProgramOptions
user = types.ModuleType("user"); user.__kernelci__ = True; user.Builder = Program; sys.modules["user"] = user
SOURCE = """template <typename T> __global__ void rows(T* x) {
    __shared__ T y[64];
    y[threadIdx.x] = *x;
    __syncthreads();
    *x = y[9];
}"""
def compiled():
    options = ProgramOptions(arch="sm_90a", std="c++17")
    return user.Builder(SOURCE, "c++", options).compile("cubin", name_expressions=("rows<float>",))
with contextlib.ExitStack() as stack:
    made = compilers.delayed(stack)
    code = compiled()
after = compiled()
LINE = 'extern "C" __global__ void line(float* x) { x[0] = x[1] * x[2] + x[3]; }'
def fused(options):
    program = user.Builder(LINE, "c++", options)
    program.compile("cubin")
    return b"fma.rn" in cudacore.ptx_of(program)
plain = ProgramOptions(arch="sm_90a")
found = [fused(plain)]
with contextlib.ExitStack() as stack:
    unfused = fusing.unfused(stack)
    found += [fused(plain), len(unfused)]
found += [fused(plain), plain.fma]
print(json.dumps({
    "delays": [code.code_type, bytes(code.code).count(b"nanosleep"), len(made)],
    "names": sorted(map(str, code.symbol_mapping)) == sorted(map(str, after.symbol_mapping)),
    "assembled": compilers.assembled(bytes(code.code).decode())[1:4].decode(),
    "fused": found,
    "after": [after.code_type, user.Builder is Program, cuda.core.Program is Program],
}))
'''
TILELANG = r'''
import json
import contextlib
from kernelci import backends
backends.get("tilelang").preload()
from kernelci.disturbing import compilers, fusing
from tilelang.contrib import nvcc
SOURCE = """extern "C" __global__ void rows(float* x) {
    __shared__ float y[64];
    y[threadIdx.x] = *x;
    __syncthreads();
    *x = y[9];
}"""
before = nvcc.compile_cuda
with contextlib.ExitStack() as stack:
    made = compilers.delayed(stack)
    cubin = nvcc.compile_cuda(SOURCE, "cubin", ["-arch=sm_90a"], ["-std=c++17"])
LINE = 'extern "C" __global__ void line(float* x) { x[0] = x[1] * x[2] + x[3]; }'
fused = lambda: b"fma.rn" in bytes(nvcc.compile_cuda(LINE, "ptx", ["-arch=sm_90a"], ["-std=c++17"]))
found = [fused()]
with contextlib.ExitStack() as stack:
    unfused = fusing.unfused(stack)
    found += [fused(), len(unfused)]
print(json.dumps([bytes(cubin[1:4]).decode(), len(made), found, nvcc.compile_cuda is before]))
'''


def _child(tmp_path: Path, backend: str, code: str) -> Any:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **backends.get(backend).environment(tmp_path)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_triton(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    assert {
        "plain": ["4, num_stages=3, num_ctas=1", 0, 0],
        "delays": ["4, num_stages=3, num_ctas=1", 2, 2],
        "plain again": ["4, num_stages=3, num_ctas=1", 0, 0],
        "more": ["8, num_stages=3, num_ctas=1", 0, 1],
        "fewer": ["4, num_stages=3, num_ctas=1", 0, 1],
        "stages": ["4, num_stages=4, num_ctas=1", 0, 1],
        "fused": [True, False, 0],
        "unfused": [False, False, 1],
        "asserting": [True, True, 1],
    } == _child(tmp_path, "triton", TRITON)


@pytest.mark.skipif(toolkit.home("bin/ptxas") is None, reason="no ptxas here")
def test_cuda(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    assert {
        "delays": ["ptx", 2, 2],
        "names": True,
        "assembled": "ELF",
        "fused": [True, False, 1, True, None],
        "after": ["cubin", True, True],
    } == _child(tmp_path, "cuda", CUDA)


@pytest.mark.skipif(toolkit.home("bin/ptxas") is None, reason="no ptxas here")
def test_tilelang(tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    assert ["ELF", 2, [True, False, 1], True] == _child(tmp_path, "tilelang", TILELANG)
