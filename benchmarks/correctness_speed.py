"""Where the correctness rung's time goes, kernel by kernel: drawing and the oracle, the candidate's calls, comparing.

    python benchmarks/correctness_speed.py [--cases N] [KERNELS…]

Up to N cases of each kernel, every draw, one kernel after the other with nothing beside it; the device is waited for at
the end of each part. What a kernel compiles by itself at its first call with other types or sizes is part of its calls.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from kernelci import catalog, config, ladder
from kernelci.errors import Verdict
from kernelci.referee import KernelReferee
from kernelci.reference import Case
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.judging import judge_all

ROOT = Path(__file__).resolve().parents[1]


class Spent(NamedTuple):
    """Seconds of one kernel."""

    kernel: str
    cases: int
    draws: int
    drawing: float
    calls: float
    comparing: float

    def line(self) -> str:
        """For the table."""
        total = self.drawing + self.calls + self.comparing
        figures = f"{self.drawing:.2f} | {self.calls:.2f} | {self.comparing:.2f} | {total:.2f}"
        return f"| {self.kernel} | {self.cases} | {self.draws} | {figures} |"


def now() -> float:
    """Seconds, when the device has done all that it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(referee: KernelReferee, most: int) -> Spent:
    """Draw, call and compare case by case, as the rung does."""
    cases = [case for case in (*referee.cases(), *referee.hidden()) if referee.why_not(case) is None][:most]
    referee.trial(cases[0], referee.draws(cases[0])[0])  # the process, its import and its context
    marks, draws = [0.0, 0.0, 0.0], 0
    for case in cases:
        wanted = referee.draws(case)
        times = [now()]
        drawn = {draw: referee.drawn(case, draw) for draw in wanted}
        times.append(now())
        referee.start_trials(*((case, draw) for draw in wanted))
        times.append(now())
        judge_all(referee.reference, tuple(answered(referee, case, drawn)))
        times.append(now())
        marks = [mark + end - begin for mark, begin, end in zip(marks, times, times[1:], strict=False)]
        draws += len(wanted)
        referee.release(case)
    return Spent(referee.kernel.name, len(cases), draws, *marks)


def answered(
    referee: KernelReferee, case: Case, drawn: dict[str, Drawn]
) -> Iterator[tuple[Drawn, dict[str, torch.Tensor]]]:
    """What came of each draw, for those that gave an answer."""
    for draw, one in drawn.items():
        try:
            yield one, referee.trial(case, draw).outputs
        except Verdict:
            continue


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--cases", type=int, default=20)
    options = parser.parse_args()
    settings = config.load(ROOT, {}, {})
    found = catalog.scan(ROOT, settings)
    kernels = found.select(tuple(options.kernels))
    print("| kernel | cases | draws | drawing and oracle, s | calls, s | comparing, s | together, s |")
    print("| :-- | --: | --: | --: | --: | --: | --: |")
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        plan = ladder.Plan(kernels, Path(folder) / "out", rungs=("correctness",))
        with ladder.opened(found, settings, plan) as court:
            for kernel in kernels:
                referee = KernelReferee(kernel, court, (court.device.target,) if court.device.is_gpu else ())
                referee.start_compiling()
                court.truths.drop()  # each kernel draws for itself
                with referee.on(court):
                    spent.append(measure(referee, options.cases))
                print(spent[-1].line(), flush=True)
    print(f"\nMedian of the whole: {statistics.median(one.drawing + one.calls + one.comparing for one in spent):.2f} s")


if __name__ == "__main__":
    main()
