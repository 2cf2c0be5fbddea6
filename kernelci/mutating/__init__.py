"""Mutation of kernels: wrong variants of a kernel's source climb the ladder, and those that survive show how weak the
reference's cases are.

Source is parsed with tree-sitter, whose grammars for Python and CUDA C++ give every token its bytes: a mutant is the
original file with one span replaced, so comments, card and layout stay as they are. mutmut and cosmic-ray, which have
operators for Python, drive a Python test suite in their own processes and know no CUDA C++, so only the idea is theirs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelci.errors import KernelciError
    from kernelci.mutating.mutants import Request
    from kernelci.mutating.outcomes import Result


def select(
    root: Path, name: str, only: tuple[str, ...] = (), limit: int = 0, seed: str = "0", all_draws: bool = False
) -> "Request":
    """The mutants of one kernel that are asked for. Raises ConfigError for an unknown kernel or mutant."""
    from kernelci import catalog, config
    from kernelci.errors import ConfigError
    from kernelci.mutating import mutants

    root = root.resolve()
    (kernel, *_) = catalog.scan(root, config.load(root)).select((name,))
    if kernel.card is None:
        raise ConfigError(f"{kernel.name}: {kernel.error}", code="card")
    found = mutants.mutants(kernel)
    return mutants.Request(kernel, mutants.chosen(found, only, limit, seed), len(found), seed, all_draws)


Say = Callable[[str], None]


def judge(root: Path, request: "Request", budget_s: float = 0.0, say: Say | None = None) -> "Result":
    """Climb with every mutant of the request; `say` hears of each as it ends. Raises KernelciError."""
    from kernelci.errors import KernelciError

    (found,) = judge_all(root, (request,), budget_s, say)
    if isinstance(found, KernelciError):
        raise found
    return found


def judge_all(
    root: Path, requests: "Sequence[Request]", budget_s: float = 0.0, say: Say | None = None
) -> "list[Result | KernelciError]":
    """The same of several kernels together, which share processes, oracles and controls; all have one seed. For each
    its result, or why there is none."""
    from kernelci.mutating import judging, report

    return judging.judge(root, requests, budget_s, (lambda judged: say(report.line(judged))) if say else None)


def listing(request: "Request") -> str:
    """The mutants of a request, one a line."""
    from kernelci.mutating import report

    return report.listing(request.mutants)


def rendered(result: "Result", as_json: bool) -> str:
    """A result for a person, or as JSON."""
    from kernelci.mutating import report

    return report.encode(result).decode() if as_json else report.text(result)
