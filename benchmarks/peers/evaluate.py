"""One kernel through one peer, in this process: leaves a JSON file of its verdict and figure.

python benchmarks/peers/evaluate.py kernelbench|allclose PROBLEM SOLUTION OUT.json
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

CORRECT_TRIALS, TIMED_TRIALS = 5, 100


def kernelbench(problem: Path, solution: Path) -> dict[str, Any]:
    """KernelBench's own evaluator, as its scripts call it: five correctness trials, a hundred timed ones."""
    from kernelbench.eval import eval_kernel_against_ref

    result = eval_kernel_against_ref(
        problem.read_text(encoding="utf-8"),
        solution.read_text(encoding="utf-8"),
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=TIMED_TRIALS,
        measure_performance=True,
        timing_method="cuda_event",
        backend="triton",
        precision=torch.float32,
        device=torch.device("cuda:0"),
    )
    return kernelbench_verdict(result)


def kernelbench_verdict(result: Any) -> dict[str, Any]:
    """Passed where it is compiled, correct, timed and not flagged. Its `runtime` is in milliseconds, whatever the
    comment beside that field says: `get_timing_stats` takes the mean of milliseconds."""
    if result is None:
        return _refused("no answer")
    if not result.compiled:
        return _refused("does not compile")
    if not result.correctness:
        return _refused("raised" if "runtime_error" in result.metadata else "wrong")
    if result.metadata.get("excessive_speedup"):
        return _refused("flagged: excessive speed-up")
    if result.runtime <= 0:
        return _refused("no time")
    return {"passed": True, "ns": float(result.runtime) * 1e6, "said": ""}


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
        if not torch.allclose(model(*inputs), reference(*inputs), rtol=1e-2, atol=1e-2):
            return _refused("wrong")
        figure = 0.0
        if device == "cuda":
            from triton.testing import do_bench

            figure = float(do_bench(lambda: model(*inputs), return_mode="median")) * 1e6
    return {"passed": True, "ns": figure, "said": ""}


def _refused(said: str) -> dict[str, Any]:
    return {"passed": False, "ns": 0.0, "said": said}


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"evaluated_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Evaluate, and leave what came of it, whatever that was."""
    peer, problem, solution, out = sys.argv[1], *map(Path, sys.argv[2:5])
    try:
        found = {"kernelbench": kernelbench, "allclose": allclose}[peer](problem, solution)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        found = _refused(f"raised {type(error).__name__}")
    out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
