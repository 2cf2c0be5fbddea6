"""A stand-in GPU: under `gpu(facts)` torch answers as if that GPU were there, and tensors have shapes but no memory.

It lets a kernel's host code run on a machine without a GPU up to the launch, which a backend intercepts. Give the
process `ENVIRONMENT` before it imports torch, so that a GPU which is there is not touched.
"""

import contextlib
import ctypes
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any
from unittest import mock

import torch
import torch._subclasses.fake_tensor as fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from kernelci.gpus import Gpu
from kernelci.workbench import dlpack

ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": ""}
STREAM = 0  # the legacy default stream's handle
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")} | {os.path.dirname(torch.__file__)}
)
_OURS = str(Path(__file__).parent.parent) + os.sep
_STORAGE_ALIGNMENT_BYTES = 512  # what torch's caching allocator gives


class NeedsData(Exception):
    """Host code asked for a tensor's values, which a stand-in has not; `file` and `line` say where."""

    def __init__(self, what: str, file: str = "", line: int = 0) -> None:
        super().__init__(f"host code needs data: {what}" + (f" ({file}:{line})" if file else ""))
        self.what = what
        self.file = file
        self.line = line


class _Mode(FakeTensorMode):  # type: ignore[misc]
    """Fake tensors that never touch a device, although `torch.cuda.is_available()` says that there is one."""

    @property
    def avoid_device_init(self) -> bool:
        return True


class Stream:
    """Stands in for `torch.cuda.Stream`: the default stream, on which nothing ever runs."""

    cuda_stream = STREAM
    stream_id = 0
    device_index = 0
    device_type = 1
    priority = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.device = torch.device("cuda", 0)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which cuda.core takes a foreign stream: (version, handle)."""
        return (0, STREAM)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def query(self) -> bool:
        """Nothing is pending."""
        return True

    def record_event(self, event: "Event | None" = None) -> "Event":
        """An event that has already happened."""
        return event or Event()

    def synchronize(self, *args: object) -> None:
        """Nothing to wait for."""

    wait_stream = wait_event = synchronize


class Event:
    """Stands in for `torch.cuda.Event`."""

    cuda_event = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def query(self) -> bool:
        """It has happened."""
        return True

    def elapsed_time(self, other: "Event") -> float:
        """Milliseconds; an arbitrary positive number, since nothing ran."""
        return 1.0

    def record(self, *args: object) -> None:
        """Nothing to record."""

    synchronize = wait = record


def preload() -> None:
    """Load what the first stand-in needs: a second that a warm process has paid already.

    Entering the mode would count devices, which initialises the CUDA driver; a forked process then crashes in its first
    call to it (seen with NVRTC on a GPU host).
    """
    with (
        mock.patch.object(torch._C, "_ensureCUDADeviceGuardSet", create=True),
        _Mode(allow_non_fake_inputs=True),
    ):
        torch.empty(1)


def properties(facts: Gpu) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` would answer."""
    return SimpleNamespace(
        name=facts.name,
        major=facts.capability[0],
        minor=facts.capability[1],
        multi_processor_count=facts.sm_count,
        total_memory=facts.memory_bytes,
        shared_memory_per_block=facts.shared_memory_per_block_bytes,
        shared_memory_per_block_optin=facts.shared_memory_per_block_optin_bytes,
        shared_memory_per_multiprocessor=facts.shared_memory_per_sm_bytes,
        regs_per_multiprocessor=facts.registers_per_sm,
        max_threads_per_multi_processor=facts.max_threads_per_sm,
        max_threads_per_block=facts.max_threads_per_block,
        warp_size=facts.warp_size,
        L2_cache_size=facts.l2_bytes,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )


@contextlib.contextmanager
def _device_guard() -> Iterator[None]:
    """Give CUDA a device guard that does nothing.

    C++ sets a guard before indexing, `contiguous`, `copy_` and more; a CPU build of torch has none for CUDA and fails.
    torch itself replaces a guard that counts no devices by one that does nothing, so one of another kind is lent first.
    """
    cuda, lazy = 1, 17  # c10::DeviceType; lazy tensors' guard counts no devices
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        registry = (ctypes.c_void_p * 20).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    except (OSError, ValueError):
        registry = (ctypes.c_void_p * 20)()
    before = registry[cuda]
    registry[cuda] = registry[lazy] or before
    torch._C._ensureCUDADeviceGuardSet()
    try:
        yield
    finally:
        registry[cuda] = before


@contextlib.contextmanager
def gpu(facts: Gpu) -> Iterator[None]:
    """Make torch answer as if `facts` were the only GPU; tensors made inside are stand-ins, on whatever device.

    Raises:
        NeedsData: code inside asked for a tensor's values; names the innermost line that is not torch's.
    """
    with contextlib.ExitStack() as stack:
        for owner, name, value in _replacements(facts):
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        stack.enter_context(_device_guard())
        stack.enter_context(_Mode(allow_non_fake_inputs=True))
        try:
            yield
        except NeedsData:
            raise
        except Exception as error:
            if (needs := _needs_data(error)) is not None:
                raise needs from error
            raise


def tensor(
    shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None, offset: int = 0
) -> torch.Tensor:
    """A stand-in on cuda:0 of `shape`, with `strides` and storage `offset` in elements; call it under `gpu`."""
    steps = list(strides) if strides is not None else _row_major(shape)
    reach = 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True)) if 0 not in shape else 0
    storage = torch.empty(offset + reach, dtype=dtype, device="cuda:0")
    return storage.as_strided(list(shape), steps, offset)


def where(trace: TracebackType | None) -> tuple[str, int]:
    """File and line of the innermost frame of a kernel file, else of one that is not installed, else ("", 0)."""
    return _innermost(reversed(list(traceback.walk_tb(trace))))


def _innermost(frames: Iterable[tuple[FrameType, int]]) -> tuple[str, int]:
    """Of `frames`, innermost first. Kernel files are marked by the loader, since a DSL may be installed anywhere."""
    places = [(frame.f_code.co_filename, line, "__kernelci__" in frame.f_globals) for frame, line in frames]
    for file, line, _ in [place for place in places if place[2]] or places:
        if _foreign(file):
            return file, line
    return "", 0


def _foreign(file: str) -> bool:
    """Neither installed, nor the standard library's, nor kernelci's, nor compiled (whose names are relative)."""
    return os.path.isabs(file) and not file.startswith((*_LIBRARIES, _OURS))


def _row_major(shape: Sequence[int]) -> list[int]:
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(size, 1))
    return steps[: len(shape)]


def _needs_data(error: Exception) -> NeedsData | None:
    refusals = (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException)
    if not isinstance(error, refusals):
        return None
    file, line = where(error.__traceback__)
    return NeedsData(str(error), file, line)


def _refuse(what: str) -> Callable[..., Any]:
    def refuse(self: torch.Tensor, *args: object, **kwargs: object) -> Any:
        file, line = _innermost(traceback.walk_stack(None))
        raise NeedsData(what, file, line)

    return refuse


def _data_ptr(self: torch.Tensor) -> int:
    """An address that follows the storage offset, so that alignment checks answer as on a GPU."""
    if self.numel() == 0:
        return 0
    base = (1 << 46) + (self.untyped_storage()._cdata % (1 << 30)) * _STORAGE_ALIGNMENT_BYTES
    return int(base + self.storage_offset() * self.element_size())


def _cuda(self: torch.Tensor, device: object = None, non_blocking: bool = False, **kwargs: object) -> torch.Tensor:
    return self.to(device="cuda:0")


def _tensor_methods() -> dict[str, object]:
    return {
        "data_ptr": _data_ptr,
        "cuda": _cuda,
        "pin_memory": lambda self, *args: self,
        "is_pinned": lambda self, *args: False,
        "record_stream": lambda self, *args: None,
        "numpy": _refuse("numpy()"),
        "tolist": _refuse("tolist()"),
        "__array__": _refuse("numpy.asarray()"),
        "__dlpack__": lambda self, **kwargs: dlpack.capsule(self),
        "__dlpack_device__": lambda self: (dlpack.CUDA, 0),
    }


def _replacements(facts: Gpu) -> list[tuple[object, str, object]]:
    cuda = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_capability": lambda device=None: facts.capability,
        "get_device_properties": lambda device=None: properties(facts),
        "get_device_name": lambda device=None: facts.name,
        "get_arch_list": lambda: [facts.target],
        "is_bf16_supported": lambda *args, **kwargs: facts.capability >= (8, 0),
        "mem_get_info": lambda device=None: (facts.memory_bytes, facts.memory_bytes),
        "current_stream": Stream,
        "default_stream": Stream,
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "stream": lambda stream: contextlib.nullcontext(stream),
        "set_stream": lambda stream: None,
        "device": _Device,
        "device_of": _Device,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "is_current_stream_capturing": lambda: False,
    }
    found: list[tuple[object, str, object]] = [(torch.cuda, name, value) for name, value in cuda.items()]
    found += [(FakeTensor, name, value) for name, value in _tensor_methods().items()]
    found += [
        (torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM),
        (torch._C, "_cuda_getDevice", lambda: 0),
        (torch.version, "cuda", torch.version.cuda or "13.0"),
        (fake_tensor, "init_gpu_context", lambda *args: None),
    ]
    return found


class _Device(contextlib.nullcontext[None]):
    """Stands in for `torch.cuda.device` and `device_of`."""

    def __init__(self, device: object = None) -> None:
        super().__init__()
        self.idx = 0
