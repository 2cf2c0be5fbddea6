"""Where the correctness rung's time goes, kernel by kernel: drawing and the oracle, the candidate's calls, comparing.

    python benchmarks/correctness_speed.py [--cases N] [KERNELS…]

Up to N cases of each kernel, every draw, one kernel after the other with nothing beside it; the device is waited for
at the end of each part. All of it is done twice in the same process, since a kernel compiles by itself at its first
call with other types, sizes or alignments: how much longer the first calls took has a column of its own, and no part in
the sum.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from kernelci import catalog, config, ladder
from kernelci.errors import Stop
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
    first: float
    drawing: float
    calls: float
    comparing: float

    def line(self) -> str:
        """For the table."""
        seconds = (self.first, self.drawing, self.calls, self.comparing, self.together)
        return " | ".join((f"| {self.kernel} | {self.cases} | {self.draws}", *(f"{one:.2f}" for one in seconds))) + " |"

    @property
    def together(self) -> float:
        """Seconds, the first calls apart."""
        return self.drawing + self.calls + self.comparing


def now() -> float:
    """Seconds, when the device has done all that it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(referee: KernelReferee, most: int) -> Spent:
    """Draw, call and compare case by case, as the rung does: twice."""
    cases = [case for case in (*referee.cases(), *referee.hidden()) if referee.why_not(case) is None][:most]
    with contextlib.suppress(Stop):  # the process, its import and its context
        referee.trial(cases[0], referee.draws(cases[0])[0])
    referee.release(cases[0])
    _, (_, first, _) = once(referee, cases)
    draws, (drawing, calls, comparing) = once(referee, cases)
    return Spent(referee.kernel.name, len(cases), draws, first - calls, drawing, calls, comparing)


def once(referee: KernelReferee, cases: list[Case]) -> tuple[int, tuple[float, float, float]]:
    """How many draws, and the seconds of drawing with the oracle, calls and comparing."""
    referee.court.truths.drop()
    drawing, calls, comparing, draws = 0.0, 0.0, 0.0, 0
    for case in cases:
        wanted, began = referee.draws(case), now()
        drawn = {draw: referee.drawn(case, draw) for draw in wanted}
        drew = now()
        referee.start_trials(*((case, draw) for draw in wanted))
        called = now()
        judge_all(referee.reference, tuple(answered(referee, case, drawn)))
        ended = now()
        drawing, calls, comparing = drawing + drew - began, calls + called - drew, comparing + ended - called
        draws += len(wanted)
        referee.release(case)
    return draws, (drawing, calls, comparing)


def answered(
    referee: KernelReferee, case: Case, drawn: dict[str, Drawn]
) -> Iterator[tuple[Drawn, dict[str, torch.Tensor]]]:
    """What came of each draw, for those that gave an answer."""
    for draw, one in drawn.items():
        try:
            yield one, referee.trial(case, draw).outputs
        except Stop:
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
    print("| kernel | cases | draws | compiling, s | drawing and oracle, s | calls, s | comparing, s | together, s |")
    print("| :-- | --: | --: | --: | --: | --: | --: | --: |")
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        plan = ladder.Plan(kernels, Path(folder) / "out", rungs=("correctness",))
        with ladder.opened(found, settings, plan) as court:
            targets = (court.device.target,) if court.device.is_gpu else ()
            referees = [KernelReferee(kernel, court, targets) for kernel in kernels]
            for referee in referees:
                referee.start_compiling()
            for referee in referees:
                with referee.on(court):
                    spent.append(measure(referee, options.cases))
                print(spent[-1].line(), flush=True)
    print(f"\nMedian of the whole: {statistics.median(one.together for one in spent):.2f} s")


if __name__ == "__main__":
    main()
