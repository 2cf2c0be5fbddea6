"""What a cubin says about its kernels: resources, disassembly, occupancy. Needs cuobjdump and nvdisasm, and no GPU."""

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import msgspec

from kernelci.gpus import Gpu
from kernelci.workbench import elf

TIMEOUT_S = 60.0
_ELF = b"\x7fELF"
_MACHINE_CUDA = 190  # EM_CUDA in the ELF header
_CODE = ".text."
# Attributes of a .nv.info section: format, number, and a value of 16 bits or the length of what follows.
_ATTRIBUTE = struct.Struct("<BBH")
_SIZED, _NUM_BARRIERS = 4, 0x4C  # EIFMT_SVAL, EIATTR_NUM_BARRIERS: of a byte's value
_USAGE = re.compile(r"^\s*Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)(.*)$", re.M)

# Allocation granularities, from cuda_occupancy.h of the CUDA toolkit; the same for every capability from 8.0 to 12.x.
_REGISTERS_PER_WARP_UNIT = 256
_SHARED_UNIT_BYTES = 128
_SUB_PARTITIONS = 4


class BrokenCubin(Exception):
    """The bytes are no cubin, or NVIDIA's tools can't read them."""


class ToolMissing(Exception):
    """cuobjdump or nvdisasm is not installed."""


class KernelResources(msgspec.Struct, frozen=True):
    """One kernel's resources: registers for a thread, the rest in bytes, hardware barriers for a block.

    `stack_bytes` holds spills, local arrays and call frames of a thread; `static_shared_bytes` leaves out what the
    system reserves in each block.
    """

    symbol: str
    registers: int
    stack_bytes: int
    static_shared_bytes: int
    local_bytes: int
    constant_bytes: int
    code_bytes: int
    barriers: int


class Occupancy(msgspec.Struct, frozen=True):
    """How many blocks share an SM, what forbids one more, and the share of the SM's warps that they fill."""

    blocks_per_sm: int
    limiter: str  # registers, shared memory, threads or blocks
    warps_share: float


def resources(cubin: bytes) -> list[KernelResources]:
    """The resources of each kernel in a cubin, in the file's order.

    Raises:
        BrokenCubin: the bytes are no cubin.
        ToolMissing: cuobjdump is not installed.
    """
    parts = {part.name: part for part in _sections(cubin)}
    usage = _tool("cuobjdump", ["-res-usage"], cubin)
    # From capability 9.0 the compiler counts the 1024 bytes that the system reserves in a block as the kernel's own.
    reserved = 1024 if ".nv.shared.reserved.0" in parts else 0
    found = []
    for symbol, registers, stack, shared, local, rest in _USAGE.findall(usage):
        code = parts.get(_CODE + symbol)
        if code is None:
            continue
        constant = sum(int(amount) for amount in re.findall(r"CONSTANT\[\d+\]:(\d+)", rest))
        static = max(0, int(shared) - reserved)
        info = parts.get(f".nv.info.{symbol}")
        barriers = _barriers(info.content if info else b"", code.flags)
        found.append(
            KernelResources(symbol, int(registers), int(stack), static, int(local), constant, code.size, barriers)
        )
    if not found:
        raise BrokenCubin("the cubin holds no kernel")
    return found


def disassemble(cubin: bytes) -> str:
    """The SASS of all kernels in a cubin, with labels, one instruction a line, and where the cubin tells it the source
    line above the instructions that come from it.

    Raises:
        BrokenCubin: the bytes are no cubin.
        ToolMissing: nvdisasm is not installed.
    """
    try:
        return _tool("nvdisasm", ["-c", "-g"], cubin)
    except BrokenCubin:  # perhaps of the lines alone
        return _tool("nvdisasm", ["-c"], cubin)


def occupancy(kernel: KernelResources, block_threads: int, gpu: Gpu, dynamic_shared_bytes: int = 0) -> Occupancy:
    """Blocks of `block_threads` threads that fit on one SM at the same time.

    The formula is that of cuda_occupancy.h: registers go to warps in units of 256 within four sub-partitions, shared
    memory to blocks in units of 128 bytes, 1024 reserved ones included. Barriers and carve-outs are left out.
    """
    warps = -(-block_threads // gpu.warp_size)
    shared = kernel.static_shared_bytes + dynamic_shared_bytes + gpu.reserved_shared_memory_per_block_bytes
    fits = {
        "registers": _blocks_by_registers(kernel.registers, warps, gpu),
        "shared memory": gpu.shared_memory_per_sm_bytes // _round_up(shared, _SHARED_UNIT_BYTES),
        "threads": gpu.max_threads_per_sm // (warps * gpu.warp_size),
        "blocks": gpu.max_blocks_per_sm,
    }
    limiter = min(fits, key=lambda name: fits[name])
    blocks = fits[limiter]
    return Occupancy(blocks, limiter, blocks * warps * gpu.warp_size / gpu.max_threads_per_sm)


def _blocks_by_registers(registers: int, warps: int, gpu: Gpu) -> int:
    per_warp = _round_up(max(registers, 1) * gpu.warp_size, _REGISTERS_PER_WARP_UNIT)
    if per_warp * _round_up(warps, _SUB_PARTITIONS) > gpu.registers_per_block:
        return 0
    per_partition = gpu.registers_per_sm // _SUB_PARTITIONS // per_warp
    return per_partition * _SUB_PARTITIONS // warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _sections(cubin: bytes) -> tuple[elf.Section, ...]:
    """Read here and not by cuobjdump, which gives up where it meets line information of a later compiler."""
    try:
        return elf.sections(cubin)
    except elf.BrokenElf as error:
        raise BrokenCubin(f"not a cubin: {error}") from error


def _barriers(info: bytes, flags: int) -> int:
    """ABI 8 has an attribute in the kernel's .nv.info section; ABI 7 has bits 20 to 26 of the code section's flags."""
    at = 0
    while at + _ATTRIBUTE.size <= len(info):
        form, number, value = _ATTRIBUTE.unpack_from(info, at)
        if number == _NUM_BARRIERS and form != _SIZED:
            return int(value & 0xFF)
        at += _ATTRIBUTE.size + (value if form == _SIZED else 0)
    return flags >> 20 & 0x7F


def tools(name: str) -> list[str]:
    """Paths of a tool of NVIDIA's in order of preference: Triton's package, CUDA_HOME, PATH."""
    found = []
    triton = importlib.util.find_spec("triton")
    for place in triton.submodule_search_locations or [] if triton else []:
        found.append(str(Path(place, "backends", "nvidia", "bin", name)))
    if home := os.environ.get("CUDA_HOME"):
        found.append(str(Path(home, "bin", name)))
    found.append(shutil.which(name) or "")
    return list(dict.fromkeys(path for path in found if path and os.access(path, os.X_OK)))


def _tool(name: str, options: list[str], cubin: bytes) -> str:
    """Run a tool on the cubin; an older tool may not know a newer file, so each one there is tried in turn."""
    if cubin[:4] != _ELF or int.from_bytes(cubin[18:20], "little") != _MACHINE_CUDA:
        raise BrokenCubin(f"not a cubin: {len(cubin)} bytes without CUDA's ELF header")
    paths = tools(name)
    if not paths:
        raise ToolMissing(f"{name} not found; install kernelci[triton]")
    complaint = ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        for path in paths:
            try:
                done = subprocess.run([path, *options, str(file)], capture_output=True, text=True, timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                complaint = f"{name} did not answer within {TIMEOUT_S:.0f} s"
                continue
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout
            complaint = (done.stderr or done.stdout).strip() or f"{name} ended with {done.returncode}"
    raise BrokenCubin(complaint.replace(str(file), "the cubin"))
