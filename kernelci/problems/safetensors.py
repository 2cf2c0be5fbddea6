"""One tensor of a safetensors file: eight bytes of length, a JSON header, then the data as it lies in memory."""

import json
from pathlib import Path

import torch

from kernelci.problems.definitions import Malformed

MAX_HEADER_BYTES = 100 * 2**20
_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def read(path: Path, key: str) -> torch.Tensor:
    """The tensor of this name. Raises Malformed."""
    with path.open("rb") as file:
        first = file.read(8)
        if first.startswith(b"version "):
            raise Malformed(f"{path.name} is a pointer of Git LFS: `git lfs pull` brings the file")
        size = int.from_bytes(first, "little")
        if size > MAX_HEADER_BYTES:
            raise Malformed(f"{path.name} is no safetensors file")
        try:
            entry = json.loads(file.read(size))[key]
            dtype, shape, (begin, end) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        except (ValueError, KeyError, TypeError) as error:
            raise Malformed(f"{path.name} has no tensor {key!r} that can be read: {error}") from error
        file.seek(8 + size + begin)
        data = bytearray(file.read(end - begin))
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)
