"""The loop of a host in a process of its own, with made-up GPUs: `driver.py FOLDER`, whose options.json says how.

The GPUs' state is read from gpus.json at each look, so that a test makes them sick while the loop runs.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from kernelci.config import RunnerOptions
from kernelci.errors import KernelciError
from kernelci.runner import broker, host, life
from kernelci.runner.broker import Answer, GitHubAway, Question
from kernelci.runner.hardware import Gpu, Hardware
from kernelci.runner.health import GpuState, Seen
from kernelci.workbench.health import Readings

GPU = Gpu("GPU-11111111-2222-3333-4444-555555555555", "NVIDIA H200", (9, 0))


class Made:
    """One H200 whose readings a test writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "gpus.json"

    def look(self, fresh: bool = False) -> Seen:
        told: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}
        vital = Readings(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in told.pop("vital", {}).items()}
        )
        return Seen(Hardware((GPU,), "570.86.15"), (GpuState(GPU, vital=vital, compute_mode="default", **told),))


def asking(skew_s: float, away: int) -> Any:
    """A broker's answer without a broker, unless the options name one. GitHub is `away` at first, so many times."""
    left = [away]

    def ask(path: Path, question: Question) -> Answer:
        if path.name == "socket":
            return broker.ask(path, question)
        left[0] -= 1
        if left[0] >= 0:
            raise GitHubAway("POST generate-jitconfig: 503")
        return Answer(f"config-of-{question.name}", time.time() + skew_s)

    return ask


def main() -> int:
    folder = Path(sys.argv[1])
    told = json.loads((folder / "options.json").read_text())
    jobs, life.ADMISSION_S = told.pop("jobs"), told.pop("admission_s", 60.0)
    life.TICK_S, host.RELEASE_S, host.SETTLE_S = 0.03, 0.1, 0.1
    ask = asking(told.pop("skew_s", 0.0), told.pop("away", 0))
    try:
        loop = host.Host(msgspec.convert(told, RunnerOptions), Made(folder), ask=ask)
        signal.signal(signal.SIGTERM, lambda *_: loop.stop())
        loop.run(jobs)
    except KernelciError as error:
        print(error.rendered(), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
