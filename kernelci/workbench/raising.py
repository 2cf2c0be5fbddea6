"""An exception of the kernel's process as a message: which reason it stands for, and which line it came from (the
untrusted side)."""

import errno
import traceback
from pathlib import Path

from kernelci.workbench.namespaces import FILE_BYTES
from kernelci.workbench.protocol import Raised

_PACKAGE = str(Path(__file__).parents[1])


def raised(error: Exception) -> Raised:
    """An exception as a message: a reason's code, what it says, the kernel file's innermost line, the traceback."""
    file, line = _where(error)
    return Raised(_reason(error), _text(error)[:4000], file, line, _log(error)[-6000:])


def told(error: BaseException) -> str:
    """An exception's kind, and what it says if it says anything."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _text(error: Exception) -> str:
    if type(error).__name__ == "CompileFailed":  # ours: it says the compiler's own words, with the name of their kind
        return str(error)
    text = told(error)
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        text += f" (a file of a kernel's, and what it prints, ends at {FILE_BYTES // 2**30} GiB)"
    return text


def _log(error: Exception) -> str:
    """The traceback from the kernel's first line on: how we came there tells its author nothing."""
    cause = error.__cause__ if type(error).__name__ == "CompileFailed" else None
    told = traceback.TracebackException.from_exception(cause or error)
    frames = list(told.stack)
    first = next((index for index, frame in enumerate(frames) if not _ours(frame.filename)), 0)
    told.stack = traceback.StackSummary.from_list(frames[first:])
    return "".join(told.format())


def _ours(file: str) -> bool:
    return file.startswith((_PACKAGE, "<"))


def _reason(error: Exception) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    for reason, names in (
        ("candidate-start", {"NotStarted"}),
        ("compile-error", {"CompileFailed", "CompilationError"}),
        ("shared-memory", {"TooMuchShared", "OutOfResources"}),
        ("needs-data", {"NeedsData"}),
        ("out-of-memory", {"OutOfMemoryError", "MemoryError"}),
    ):
        if kinds & names:
            return reason
    if "DefaultCPUAllocator" in text and "memory" in text:
        return "out-of-memory"
    if "CUDA error" in text or "CUDA_ERROR" in text or "AcceleratorError" in kinds or "illegal memory" in text:
        return "out-of-memory" if "out of memory" in text.lower() else "gpu-fault"
    return "raised"


def _where(error: Exception) -> tuple[str, int]:
    if getattr(error, "line", 0):
        return str(getattr(error, "file", "")), int(getattr(error, "line", 0))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not _ours(frame.filename) and "site-packages" not in frame.filename:
            return frame.filename, frame.lineno or 0
    return "", 0
