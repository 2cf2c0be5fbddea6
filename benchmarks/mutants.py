"""Mutants of the Triton, TileLang and CUDA C++ kernels: how many the correctness rung kills, how many allclose would.

    python benchmarks/mutants.py --limit 20 --budget 900 --json mutants.json [KERNELS…]

Prints a Markdown table, then every survivor with its diff. On a machine without a GPU only Triton's mutants are judged;
the others are compiled.
"""

import argparse
import os
import sys
from pathlib import Path

from kernelci import catalog, config, mutating
from kernelci.errors import KernelciError
from kernelci.mutating import report
from kernelci.mutating.mutants import Request
from kernelci.mutating.outcomes import Fate, Result

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("triton", "tilelang", "cuda")
GPU_LANES = 8  # most of a mutant's time is compiling for its first calls, on the host


def main() -> int:
    """Judge them all together; after the budget, or an interrupt, no other one begins, and what is done is printed and
    written."""
    options = _options()
    os.environ.setdefault("KERNELCI_LANES", str(min(GPU_LANES, os.cpu_count() or 1)))
    requests = [request for name in _kernels(options.kernels) for request in _requests(name, options)]
    judged = mutating.judge_all(ROOT, requests, options.budget, _say) if requests else []
    results = [found for found in judged if not isinstance(found, KernelciError)]
    for error in (found for found in judged if isinstance(found, KernelciError)):
        print(error.rendered(), file=sys.stderr)
    if options.json:
        options.json.write_bytes(report.encode(results))
    _show(results)
    return 3 if not results else 130 if results[0].interrupted else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="names or wildcards; all of the three backends without one")
    parser.add_argument("--limit", type=int, default=20, help="mutants per kernel; 0: all (default: 20)")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds in all; 0: no end (default: 1200)")
    parser.add_argument("--seed", default="0", help="chooses the mutants and the draws (default: 0)")
    parser.add_argument("--all-draws", action="store_true", help="try survivors of the interpreter under every draw")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args()


def _kernels(patterns: list[str]) -> list[str]:
    found = catalog.scan(ROOT, config.load(ROOT)).select(patterns)
    return [kernel.name for kernel in found if patterns or kernel.backend in BACKENDS]


def _requests(name: str, options: argparse.Namespace) -> list[Request]:
    """A kernel's mutants; none, and why, where they can't be made."""
    try:
        return [mutating.select(ROOT, name, limit=options.limit, seed=options.seed, all_draws=options.all_draws)]
    except KernelciError as error:
        print(error.rendered(), file=sys.stderr)
        return []


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(results: list[Result]) -> None:
    print("\n".join((*report.HEAD, *map(report.markdown, results), report.total(results))))
    for judged in (judged for result in results for judged in result.mutants if judged.fate is Fate.SURVIVED):
        print(f"\n{judged.label} ({judged.function})\n\n```diff\n{judged.diff}```")


if __name__ == "__main__":
    sys.exit(main())
