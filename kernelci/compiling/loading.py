"""Import a kernel file by its path, without changing what else can be imported or writing beside it."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from kernelci import problems
from kernelci.backends import CompileFailed
from kernelci.card import has_card
from kernelci.compiling import extensions
from kernelci.workbench.arena import dtype_of
from kernelci.workbench.raising import told


def load(path: Path, name: str = "kernelci_kernel") -> ModuleType:
    """The module in `path`, imported as `name`; its folder is not on `sys.path`, and no `__pycache__` is written.

    Raises:
        CompileFailed: the file does not parse, or importing it raises; names the line.
    """
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CompileFailed(f"{path.name} is not a Python file", 0, str(path))
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__kernelci__"] = True  # tells a kernel's frames and names from everybody else's
    if extensions.wanted():
        extensions.make_ready()
    quiet, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[name] = module  # dataclasses and pickling look the module up while it is being executed
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise CompileFailed(
            f"{type(error).__name__}: {error.msg}", error.lineno or 0, error.filename or str(path)
        ) from error
    except SystemExit as error:
        said = f"{told(error)}: importing the file ended the process; a script's own end belongs under __main__"
        raise CompileFailed(said, _line_in(error, path), str(path)) from error
    except Exception as error:
        raise CompileFailed(told(error), _line_in(error, path), str(path)) from error
    finally:
        sys.dont_write_bytecode = quiet
    _offer_solution(module, path)
    return module


def _offer_solution(module: ModuleType, path: Path) -> None:
    """A file that has a KernelBench solution and no card gets an entry."""
    solution = getattr(module, problems.SOLUTION, None)
    if isinstance(solution, type) and not has_card(path.read_text(encoding="utf-8")):
        from kernelci.compiling.modelled import offered

        offered(module, problems.ENTRY, problems.SOLUTION)


def _line_in(error: BaseException, path: Path) -> int:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def namespace(case: Mapping[str, Any]) -> SimpleNamespace:
    """The case as a kernel's `prepare` and `compile` see it: sizes and parameters as attributes, a torch dtype."""
    return SimpleNamespace(**{name: dtype_of(value) if name == "dtype" else value for name, value in case.items()})
