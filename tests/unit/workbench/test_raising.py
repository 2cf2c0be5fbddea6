"""What an exception of the kernel's process becomes: its own words, its own lines, and the limit that it met."""

import errno
import types
from pathlib import Path

import pytest

from kernelci.backends import CompileFailed
from kernelci.compiling import loading
from kernelci.workbench.raising import raised


def _failure(tmp_path: Path, text: str) -> CompileFailed:
    path = tmp_path / "kernel.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CompileFailed) as caught:
        loading.load(path)
    return caught.value


def test_a_refusal_says_the_compilers_words_alone(tmp_path: Path) -> None:
    answer = raised(_failure(tmp_path, "import not_there\n"))

    assert "ModuleNotFoundError: No module named 'not_there'" == answer.message
    assert ("compile-error", "kernel.py", 1) == (answer.reason, Path(answer.file).name, answer.line)


def test_the_log_begins_at_the_kernels_line(tmp_path: Path) -> None:
    log = raised(_failure(tmp_path, "def f():\n    return 1 / 0\n\n\nf()\n")).log.splitlines()

    assert ("Traceback (most recent call last):", True) == (log[0], "kernel.py" in log[1] and "line 5" in log[1])
    assert ("ZeroDivisionError: division by zero", False) == (log[-1], any("kernelci/" in line for line in log))


def test_the_log_of_an_error_of_ours_keeps_its_lines() -> None:
    try:
        loading.namespace(None)  # type: ignore[arg-type]
    except AttributeError as error:
        ours = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)

    assert "loading.py" in raised(ours).log


def test_a_script_that_ends_itself_names_its_line(tmp_path: Path) -> None:
    answer = raised(_failure(tmp_path, "import sys\n\nsys.exit(0)\n"))

    assert ("compile-error", True, 3) == (answer.reason, answer.message.startswith("SystemExit: 0: "), answer.line)


def test_an_exception_that_says_nothing_has_no_colon() -> None:
    assert "MemoryError" == raised(MemoryError()).message


def test_a_file_that_grew_too_large_names_the_limit() -> None:
    answer = raised(OSError(errno.EFBIG, "File too large"))

    assert "OSError: [Errno 27] File too large (a file of a kernel's, and what it prints, ends at 1 GiB)" == (
        answer.message
    )


def test_memory_that_ends_while_compiling_is_no_refusal() -> None:
    from kernelci import backends, gpus
    from kernelci.compiling import building

    def entry(x: object) -> None:
        raise MemoryError

    module = types.ModuleType("kernel")
    module.__dict__["entry"] = entry
    with pytest.raises(MemoryError) as caught:
        building.build(module, "entry", object(), {"x": 1}, gpus.for_target("sm_90a"), backends.get("triton"))

    assert "out-of-memory" == raised(caught.value).reason
