"""Launches that no GPU takes, and blocks that wait for others which can't run: from grids, blocks and occupancy alone.

Limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; they have been
the same for every capability since 3.0.
"""

import math
import re
from collections.abc import Iterator, Sequence

from kernelci.dumps.specimen import Record
from kernelci.gpus import Gpu

GRID = (2**31 - 1, 65_535, 65_535)
BLOCK = (1024, 1024, 64)
# What a barrier of the whole grid consists of: something that other blocks see, and a look that must not be kept.
_SIGNALS = re.compile(r"\b(?:atom|red)\.(?:[\w:]+\.)*(?:global|gpu)")
_WAITS = re.compile(r"\bld\.(?:acquire|relaxed)\.(?:gpu|sys)|\bld\.volatile\.global|\bld\.global\.acquire")


def refused(grid: Sequence[int] | None, block: Sequence[int] | None, gpu: Gpu, wraps: bool = False) -> str:
    """What of a launch is beyond every GPU of this kind; empty for nothing, or where it is not known.

    `wraps`: its launcher multiplies the grid's sizes in 32 bits, and takes what is not positive for nothing to do
    (Triton's).
    """
    product = math.prod(grid or ())
    if wraps and product and (product + 2**31) % 2**32 - 2**31 <= 0:
        return f"the grid's {product:,} blocks wrap in the launcher's 32 bits to none: nothing would be launched"
    for what, sizes, limits in (("grid", grid, GRID), ("block", block, BLOCK)):
        for axis, size, limit in zip("xyz", sizes or (), limits, strict=False):
            if size > limit:
                return f"the {what} has {size:,} along {axis}, and {limit:,} are the most"
    threads, most = math.prod(block or ()), gpu.max_threads_per_block
    return f"a block has {threads:,} threads, and {most:,} are the most" if block and threads > most else ""


def remarks(record: Record, gpu: Gpu, ptx: str) -> Iterator[str]:
    """What is worth a note: blocks that wait for each other, and can't all run at once."""
    if record.grid is None or not record.block or not record.occupancy or not waits_for_others(ptx):
        return
    blocks, threads = math.prod(record.grid), math.prod(record.block)
    room = gpu.sm_count * round(record.occupancy * gpu.max_threads_per_sm / threads)
    if blocks > room:
        yield f"blocks wait for each other, and of {blocks:,} only {room:,} run at once on {gpu.sm_count} SMs: may hang"


def waits_for_others(ptx: str) -> bool:
    """Whether blocks may wait for each other: they tell each other something through global memory, and look for it by
    loads that are made again. A sign, no proof."""
    return bool(_SIGNALS.search(ptx)) and bool(_WAITS.search(ptx))
