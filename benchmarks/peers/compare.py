"""The same kernels through kernelci, KernelBench's evaluator, flashinfer-bench's, and do_bench with allclose.

    python benchmarks/peers/compare.py [--kernelbench CHECKOUT] [--flashinfer CHECKOUT] [--budget S] [--out TABLE.md]

Needs one GPU that nobody else uses. The peers are installed from their packages or imported from a checkout; one that
can't be imported is left out and named. A kernel has --deadline seconds in each; an evaluator that has used its budget
is stopped, and its remaining kernels are «not reached». The table is written whenever there is something new.
"""

import argparse
import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import evaluators
import express
from evaluators import ROOT, Place, Verdicts
from table import Result, table

sys.path.insert(0, str(ROOT / "benchmarks"))

import sections

EVALUATORS: dict[str, tuple[Callable[[Place], Verdicts], str, str]] = {
    "kernelci": (evaluators.kernelci, "kernelbench", ""),
    "KernelBench": (evaluators.kernelbench, "kernelbench", "kernelbench"),
    "flashinfer-bench": (evaluators.flashinfer, "flashinfer", "flashinfer_bench"),
    "allclose + do_bench": (evaluators.allclose, "kernelbench", ""),
}
"""By name: what runs it, the form that it takes the kernels in, the module that it needs."""
INTRODUCTION = """## The same kernels through other evaluators

{date}, {gpu}, `python benchmarks/peers/compare.py`: softmax of {rows} × {cols} float32 by kernels of this
repository and of tests/bad_kernels, empty caches, seconds with each evaluator's own start. kernelci: {lanes} lanes,
rungs to correctness and benchmark, each kernel in processes of its own, every output of the timed windows checked.
KernelBench: 5 correctness and 100 timed trials, a process for each kernel by this script. flashinfer-bench: its
defaults, one process for all kernels. Last: `torch.allclose` once and `triton.testing.do_bench`, a process for each.
"""


def measured(name: str, folder: Path, options: argparse.Namespace) -> Iterator[Result]:
    """One evaluator's result as it grows. Its own failure is told in its line."""
    run, form, module = EVALUATORS[name]
    checkout = {"kernelbench": options.kernelbench, "flashinfer_bench": options.flashinfer}.get(module, "")
    result = Result(name)
    if module and evaluators.missing(module, checkout):
        result.missing = f"{module} is not installed"
        yield result
        return
    own = options.logs / name.replace(" ", "") if options.logs else folder / name
    place = Place(folder / form, own.resolve(), options.budget, options.deadline, options.lanes, checkout)
    began = time.monotonic()
    try:
        for kernel, verdict in run(place):
            result.verdicts[kernel], result.seconds = verdict, time.monotonic() - began
            yield result
    except (OSError, ValueError, KeyError) as error:
        if not result.verdicts:
            result.missing = f"ended with {type(error).__name__}: {evaluators.last_line(own) or error}"
    if not result.verdicts and not result.missing:
        result.missing = f"no verdict: {evaluators.last_line(own)}"
    yield result


def compared(kernels: Sequence[express.Kernel], options: argparse.Namespace) -> None:
    """All evaluators, the section with the table written after every verdict."""
    found: dict[str, Result] = {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    size = {"rows": express.ROWS, "cols": express.COLS, "lanes": options.lanes}
    introduction = INTRODUCTION.format(date=today, gpu=_asked("name") or "no GPU", **size)
    with evaluators.scratch() as scratch:
        folder = Path(scratch)
        express.kernelbench(kernels, folder / "kernelbench", target=_target(), deadline_s=options.deadline)
        express.dataset(kernels, folder / "flashinfer")
        for name in options.only:
            for result in measured(name, folder, options):
                found[name] = result
                options.out.write_text(f"{introduction}\n{table(kernels, list(found.values()))}", encoding="utf-8")
            print(f"{name}: {len(found[name].verdicts)} kernels in {found[name].seconds:.1f} s", flush=True)


def _asked(what: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def _target() -> str:
    """The one GPU's target, for no evaluator but kernelci compiles for others."""
    major, _, minor = _asked("compute_cap").partition(".")
    return f"sm_{major}{minor}{'a' if int(major) >= 9 else ''}" if major.isdecimal() else "sm_90a"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", default="", metavar="CHECKOUT")
    parser.add_argument("--flashinfer", default="", metavar="CHECKOUT")
    parser.add_argument("--limit", type=int, default=30, help="kernels, a third of them honest")
    parser.add_argument("--budget", type=float, default=300.0, metavar="S", help="seconds of each evaluator")
    parser.add_argument("--deadline", type=float, default=60.0, metavar="S", help="seconds of one kernel")
    parser.add_argument("--lanes", type=int, default=min(12, max(2, (os.cpu_count() or 4) - 2)), help="of kernelci")
    parser.add_argument("--only", default=",".join(EVALUATORS), type=_names, help="evaluators")
    parser.add_argument("--out", type=Path, default=Path("peers.md"))
    parser.add_argument("--logs", type=Path, help="folder that keeps what the evaluators printed, and their reports")
    parser.add_argument("--write", action="store_true", help=f"put it into {sections.PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if not names or set(names) - set(EVALUATORS):
        raise argparse.ArgumentTypeError(f"known are {', '.join(EVALUATORS)}")
    return names


def main() -> int:
    """Run all, print the table."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kernels = express.chosen(
        express.kernels(ROOT / "kernels" / "softmax", ROOT / "tests" / "bad_kernels"), options.limit
    )
    code = 0
    try:
        compared(kernels, options)
    except KeyboardInterrupt:
        code = 130
    if options.out.is_file():
        text = options.out.read_text(encoding="utf-8")
        print(text)
        if options.write:
            sections.write("peers", text)
    return code


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
