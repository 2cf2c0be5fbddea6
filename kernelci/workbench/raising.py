"""An exception of the kernel's process as a message: which reason it stands for, and which line it came from (the
untrusted side)."""

import traceback
from pathlib import Path

from kernelci.workbench.protocol import Raised

_PACKAGE = str(Path(__file__).parents[1])


def raised(error: Exception) -> Raised:
    """An exception as a message: a reason's code, what it says, the kernel file's innermost line, the traceback."""
    file, line = _where(error)
    text = f"{type(error).__name__}: {error}"
    log = "".join(traceback.format_exception(error))[-6000:]
    return Raised(_reason(error), text[:4000], file, line, log)


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
        inside = frame.filename.startswith((_PACKAGE, "<")) or "site-packages" in frame.filename
        if not inside:
            return frame.filename, frame.lineno or 0
    return "", 0
