"""Disturbances: what may differ around a kernel and must not change what it computes (field checks X3 and X4).

A disturbed kernel is called through a stub of ours that lies beside its file in the candidate, so it runs in a process,
sandbox and arena like any other call, and its outputs are judged by the same gates. The stub shares the process with
the kernel, which could undo what it does: this finds honest mistakes; no deception is stopped by it.
"""

from typing import Literal

from msgspec import Struct

from kernelci.workbench.protocol import Source

Device = Literal["cpu", "cuda"]
STUB = "kernelci_disturbed.py"
NOTHING = "Undisturbed"  # the exception's name: such a call was like any other


class Disturbance(Struct, frozen=True):
    """One thing to change. `loose`: a kernel that does not start or compile so is left alone, since it need not;
    `told`: nor need it be right so, and what goes wrong is only told.

    `why` completes «if this changes its result, it …».
    """

    name: str
    title: str
    why: str
    device: Device
    backends: tuple[str, ...]
    tiers: tuple[str, ...] = ("pr", "full")
    loose: bool = False
    told: bool = False


_ALL = ("triton", "tilelang", "cutedsl", "cuda")  # backends: those whose calls can be disturbed from without
_LAUNCH = "counts on one number of warps or stages, or lacks a barrier"
DISTURBANCES = (
    Disturbance(
        "fill",
        "masked loads without other= read NaN",
        "uses what a masked load without other= leaves in its lanes: zeros here, anything on a GPU",
        "cpu",
        ("triton",),
    ),
    Disturbance(
        "order",
        "the last block runs first",
        "has blocks that count on others to have run before them",
        "cpu",
        ("triton",),
    ),
    Disturbance(
        "shared",
        "the shared memory of every SM held NaN before",
        "reads shared memory that it did not write",
        "cuda",
        _ALL,
    ),
    Disturbance(
        "load",
        "another kernel holds half of the SMs",
        "has blocks that count on running at the same time, or in some order",
        "cuda",
        _ALL,
    ),
    Disturbance(
        "delays",
        "some warps sleep at the start and after each barrier",
        "lacks a barrier, or counts on warps or blocks to keep step",
        "cuda",
        ("triton", "tilelang", "cuda"),
        ("full",),
        loose=True,
    ),
    Disturbance(
        "fusion",
        "no multiplication is fused with an addition",
        "counts on the compiler to round once where the source rounds twice",
        "cuda",
        ("triton", "tilelang", "cuda"),
        ("full",),
        loose=True,
        told=True,
    ),
    Disturbance(
        "overflow",
        "built with Triton's assertions, those on overflow among them",
        "computes with integers that do not fit, or breaks an assertion of its own",
        "cuda",
        ("triton",),
        ("full",),
        loose=True,
        told=True,
    ),
    Disturbance("warps-more", "twice num_warps", _LAUNCH, "cuda", ("triton",), ("full",), loose=True),
    Disturbance("warps-fewer", "half of num_warps", _LAUNCH, "cuda", ("triton",), ("full",), loose=True),
    Disturbance("stages-one", "num_stages=1", _LAUNCH, "cuda", ("triton",), ("full",), loose=True),
    Disturbance("stages-more", "one of num_stages more", _LAUNCH, "cuda", ("triton",), ("full",), loose=True),
)


def fitting(backend: str, device: Device, tier: str) -> tuple[Disturbance, ...]:
    """Those that can be made for kernels of a backend on a device, in a tier."""
    return tuple(one for one in DISTURBANCES if backend in one.backends and one.device == device and tier in one.tiers)


def source(kernel: Source, entry: str, name: str) -> Source:
    """The kernel's files with a stub whose `entry` is the kernel's under the disturbance of that name."""
    stub = (
        f'"""{kernel.name}, called under the disturbance {name}."""\n\n'
        "from pathlib import Path\n\n"
        "from kernelci.disturbing.calling import disturbed, kernel\n\n"
        f"_kernel = kernel(Path(__file__).with_name({kernel.name!r}))\n"
        f"{entry} = disturbed(_kernel, {entry!r}, {name!r})\n"
        'if hasattr(_kernel, "prepare"):\n'
        "    prepare = _kernel.prepare\n"
    )
    return Source(kernel.folder, STUB, {**kernel.files, STUB: stub.encode()})
