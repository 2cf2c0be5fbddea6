"""The same kernels through kernelci, KernelBench's evaluator, flashinfer-bench's, and do_bench with allclose.

python benchmarks/peers/compare.py [--kernelbench CHECKOUT] [--limit N] [--out TABLE.md]

Needs one GPU that nobody else uses. The peers are installed from their packages or imported from a checkout; one that
can't be imported is left out and named. Each kernel has a process of its own in every evaluator but kernelci's and
flashinfer-bench's, which isolate kernels themselves. A dishonest kernel should not pass: «let through» counts those.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import express
from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 300.0
Verdicts = dict[str, tuple[bool, float]]


class Result(Struct):
    """What one evaluator made of the kernels: by name whether it passed and its time; seconds for all."""

    peer: str
    verdicts: Verdicts
    seconds: float
    missing: str = ""


def timed(peer: str, evaluate: Callable[[], Verdicts]) -> Result:
    """Evaluate, and take the time."""
    began = time.monotonic()
    verdicts = evaluate()
    return Result(peer, verdicts, time.monotonic() - began)


def by_kernelci(root: Path) -> Verdicts:
    """One run over all kernels: correctness, every timed output checked, times."""
    command = [
        sys.executable,
        "-m",
        "kernelci",
        "--root",
        str(root),
        "run",
        "--rungs",
        "correctness,benchmark",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    report = json.loads(done.stdout)
    return {kernel["name"].split("/")[1]: _judged(kernel) for kernel in report["kernels"]}


def _judged(kernel: dict[str, Any]) -> tuple[bool, float]:
    outcomes = {rung["rung"]: rung["outcome"] for rung in kernel["rungs"]}
    bad = {"FAILED", "INVALID", "BROKEN"} & set(outcomes.values())
    rows = [row for rung in kernel["rungs"] if rung["rung"] == "benchmark" for row in rung.get("rows", [])]
    times = [one["value"] for row in rows for one in row.get("metrics", []) if one["tag"] == "time"]
    return not bad and outcomes.get("correctness") == "PASSED", float(times[0]) if times else 0.0


def by_process(peer: str, root: Path, checkout: str) -> Verdicts:
    """Each kernel in a process of its own."""
    problem = root / "references" / "softmax.py"
    return {path.stem: _alone(peer, problem, path, checkout) for path in sorted((root / "kernels").rglob("*.py"))}


def _alone(peer: str, problem: Path, solution: Path, checkout: str) -> tuple[bool, float]:
    command = [sys.executable, str(Path(__file__).with_name("evaluate.py")), peer, str(problem), str(solution)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=_environment(checkout)
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return False, 0.0
    return bool(found["passed"]), float(found["ns"])


def by_flashinfer(root: Path) -> Verdicts:
    """Its own command over the dataset; its traces say what came of each solution."""
    subprocess.run(["flashinfer-bench", "run", "--local", str(root), "--save-results"], check=False)
    found: Verdicts = {}
    for path in sorted((root / "traces").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            trace = json.loads(line)
            evaluation = trace.get("evaluation") or {}
            if trace.get("solution"):
                performance = evaluation.get("performance") or {}
                found[trace["solution"]] = (
                    evaluation.get("status") == "PASSED",
                    float(performance.get("latency_ms", 0.0)) * 1e6,
                )
    return found


def _environment(checkout: str = "") -> dict[str, str]:
    paths = [str(ROOT), *([str(Path(checkout, "src"))] if checkout else []), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def results(kernels: list[express.Kernel], folder: Path, checkout: str) -> Iterator[Result]:
    """Every evaluator that is there."""
    express.kernelbench(kernels, folder / "kernelbench")
    express.dataset(kernels, folder / "flashinfer")
    yield timed("kernelci", lambda: by_kernelci(folder / "kernelbench"))
    if checkout or importlib.util.find_spec("kernelbench"):
        yield timed("KernelBench", lambda: by_process("kernelbench", folder / "kernelbench", checkout))
    else:
        yield Result("KernelBench", {}, 0.0, "not installed; --kernelbench names a checkout")
    if shutil.which("flashinfer-bench"):
        yield timed("flashinfer-bench", lambda: by_flashinfer(folder / "flashinfer"))
    else:
        yield Result("flashinfer-bench", {}, 0.0, "not installed")
    yield timed("allclose and do_bench", lambda: by_process("allclose", folder / "kernelbench", ""))


def table(kernels: list[express.Kernel], found: list[Result]) -> str:
    """Markdown: throughput and verdicts of each evaluator, then each kernel."""
    honest = {kernel.name for kernel in kernels if kernel.honest}
    lines = [
        "| evaluator | s a kernel | honest passed | dishonest let through |",
        "| :-- | --: | --: | --: |",
    ]
    for one in found:
        if one.missing:
            lines.append(f"| {one.peer} | {one.missing} | | |")
            continue
        passed = {name for name, (right, _) in one.verdicts.items() if right}
        others = len(kernels) - len(honest)
        lines.append(
            f"| {one.peer} | {one.seconds / len(kernels):.2f} | {len(passed & honest)} of {len(honest)} "
            f"| {len(passed - honest)} of {others} |"
        )
    there = [one for one in found if not one.missing]
    lines += ["", f"| kernel | {' | '.join(one.peer for one in there)} |", f"| :-- |{' :-- |' * len(there)}"]
    for kernel in kernels:
        cells = [_cell(one.verdicts.get(kernel.name)) for one in there]
        lines.append(f"| {kernel.name} {'' if kernel.honest else '(dishonest)'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: tuple[bool, float] | None) -> str:
    if found is None:
        return "no answer"
    return f"passed, {found[1] / 1e3:.2f} µs" if found[0] else "refused"


def main() -> None:
    """Run all, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernelbench", default="", metavar="CHECKOUT")
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("peers.md"))
    options = parser.parse_args()
    kernels = express.kernels(ROOT / "kernels" / "softmax", ROOT / "tests" / "bad_kernels")
    kernels = kernels[:: max(1, len(kernels) // options.limit)][: options.limit]
    with tempfile.TemporaryDirectory(prefix="kernelci-peers-") as folder:
        found = list(results(kernels, Path(folder), options.kernelbench))
    text = table(kernels, found)
    options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
