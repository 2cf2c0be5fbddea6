"""Facts about GPUs, from `gpus.toml`: one table per GPU. A user's configuration may add tables or override one."""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_TABLES = Path(__file__).with_name("gpus.toml")
_NONE: Mapping[str, object] = {}


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the hardware is, as NVIDIA documents it; `source` names the documents.

    `peak_flops_per_s` maps a dtype (float64, float32, tf32, float16, bfloat16, float8, float4, int8) to the dense peak
    of the fastest unit that computes it, tensor cores included. `match` holds words that a device's name contains.
    """

    name: str
    match: tuple[str, ...]
    target: str
    capability: tuple[int, int]
    sm_count: int
    shared_memory_per_block_optin_bytes: int
    shared_memory_per_sm_bytes: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    l2_bytes: int
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    peak_flops_per_s: dict[str, float]
    source: tuple[str, ...]
    max_threads_per_block: int = 1024
    shared_memory_per_block_bytes: int = 49_152
    reserved_shared_memory_per_block_bytes: int = 1024
    registers_per_block: int = 65_536
    max_registers_per_thread: int = 255
    warp_size: int = 32

    @property
    def capability_number(self) -> int:
        """The capability as one number: 90 for (9, 0)."""
        return self.capability[0] * 10 + self.capability[1]

    def peak(self, dtype: str) -> float:
        """FLOP/s of the fastest unit that may compute this dtype of torch: float32 also on tensor cores, in pieces; all
        fp8 alike. 0 where none is known."""
        units = ("float32", "tf32") if dtype == "float32" else (dtype, dtype.partition("_")[0])
        return max(self.peak_flops_per_s.get(unit, 0.0) for unit in units)


@functools.cache
def _shipped() -> dict[str, object]:
    return tomllib.loads(_TABLES.read_text(encoding="utf-8"))


def gpus(extra: Mapping[str, object] = _NONE) -> dict[str, Gpu]:
    """All known GPUs by key; `extra` adds tables of the same form, and wins over ours.

    Raises:
        msgspec.ValidationError: a table lacks a field, has an unknown one, or one of the wrong type.
    """
    return msgspec.convert({**_shipped(), **extra}, dict[str, Gpu])


def types() -> tuple[str, ...]:
    """The data types that some GPU of the table computes."""
    return tuple(sorted({name for gpu in gpus().values() for name in gpu.peak_flops_per_s}))


def unknown(targets: Iterable[str]) -> str:
    """What is wrong with the first target that no table has; empty where all are known."""
    for target in targets:
        try:
            for_target(target)
        except KeyError as error:
            return str(error.args[0])
    return ""


def for_target(target: str, extra: Mapping[str, object] = _NONE) -> Gpu:
    """The representative GPU of a target such as `sm_90a`: a user's own first, else the first table of that target.

    Suffixes don't matter where there is no exact match: `sm_90` finds the same GPU as `sm_90a`.

    Raises:
        KeyError: no table has this target.
    """
    ours = gpus(extra)
    ordered = [ours[key] for key in extra] + list(ours.values())
    for same in (lambda known: known == target, lambda known: _number(known) == _number(target)):
        for gpu in ordered:
            if same(gpu.target):
                return gpu
    known = ", ".join(sorted({gpu.target for gpu in ordered}))
    raise KeyError(f"no GPU in gpus.toml has the target {target!r}; known: {known}")


def by_name(device_name: str, extra: Mapping[str, object] = _NONE) -> Gpu | None:
    """The GPU whose words occur in the driver's name for it, such as `NVIDIA H100 80GB HBM3`; the longest word wins."""
    found = [(len(word), gpu) for gpu in gpus(extra).values() for word in gpu.match if _has_word(device_name, word)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])", text, re.IGNORECASE) is not None


def _number(target: str) -> str:
    return re.sub(r"[a-z]$", "", target)
