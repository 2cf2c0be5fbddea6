"""One kernel through one peer, in this process: prints a JSON line of its verdict and figure.

python benchmarks/peers/evaluate.py kernelbench|allclose PROBLEM SOLUTION
"""

import contextlib
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

CORRECT_TRIALS, TIMED_TRIALS = 5, 100


def kernelbench(problem: Path, solution: Path) -> dict[str, Any]:
    """KernelBench's own evaluator, as its scripts call it."""
    from kernelbench.eval import eval_kernel_against_ref

    result = eval_kernel_against_ref(
        problem.read_text(encoding="utf-8"),
        solution.read_text(encoding="utf-8"),
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=TIMED_TRIALS,
        measure_performance=True,
        backend="triton",
        device=torch.device("cuda:0"),
    )
    passed = bool(result and result.compiled and result.correctness)
    flagged = bool(result and result.metadata.get("excessive_speedup"))
    figure = float(result.runtime) * 1e3 if passed else 0.0  # its unit is given as µs
    return {"passed": passed and not flagged, "ns": figure, "said": str(result.metadata if result else "")[:300]}


def allclose(problem: Path, solution: Path) -> dict[str, Any]:
    """What many scripts do: compare once with torch.allclose, then triton.testing.do_bench."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    theirs, ours = _module(problem), _module(solution)
    torch.manual_seed(0)
    inputs = [one.to(device) if isinstance(one, torch.Tensor) else one for one in theirs.get_inputs()]
    arguments = theirs.get_init_inputs()
    torch.manual_seed(0)
    reference = theirs.Model(*arguments).to(device)
    torch.manual_seed(0)
    model = ours.ModelNew(*arguments).to(device)
    with torch.no_grad():
        passed = bool(torch.allclose(model(*inputs), reference(*inputs), rtol=1e-2, atol=1e-2))
        figure = 0.0
        if passed and device == "cuda":
            from triton.testing import do_bench

            figure = float(do_bench(lambda: model(*inputs), return_mode="median")) * 1e6
    return {"passed": passed, "ns": figure, "said": ""}


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"evaluated_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Evaluate, and print what came of it, whatever that was."""
    peer, problem, solution = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = {"kernelbench": kernelbench, "allclose": allclose}[peer](problem, solution)
    except Exception as error:
        found = {"passed": False, "ns": 0.0, "said": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
