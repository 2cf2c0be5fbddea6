"""Each evaluator over the kernels of a folder, within a budget of seconds: yields the kernels' verdicts as they come.

Each is started as its users start it, in a process group of its own that is killed afterwards. A kernel that crashes
or hangs costs its evaluator that kernel.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
GRACE_S = 20.0  # after an interrupt, to write what there is
BAD = ("FAILED", "INVALID", "BROKEN")


class Verdict(Struct, frozen=True):
    """Whether a kernel passed, the time of a call in ns (0: none was taken), and else why not in a word or two."""

    passed: bool
    ns: float = 0.0
    said: str = ""


class Place(Struct, frozen=True):
    """Where an evaluator works: the project, a folder of its own for caches and logs, and its limits in seconds."""

    root: Path
    folder: Path
    budget_s: float
    deadline_s: float
    lanes: int = 4
    checkout: str = ""

    def environment(self) -> dict[str, str]:
        """An empty cache for each evaluator, so that all compile."""
        paths = [str(ROOT), *([str(Path(self.checkout, "src")), self.checkout] if self.checkout else [])]
        paths.append(os.environ.get("PYTHONPATH", ""))
        caches = {"KERNELCI_CACHE": "kernelci", "TRITON_CACHE_DIR": "triton", "TORCH_EXTENSIONS_DIR": "extensions"}
        return {
            **os.environ,
            **{name: str(self.folder / "cache" / path) for name, path in caches.items()},
            "FIB_CACHE_PATH": str(self.folder / "cache" / "flashinfer"),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "KERNELCI_LANES": str(self.lanes),
        }


Verdicts = Iterator[tuple[str, Verdict]]


def ended(command: list[str], place: Place, seconds: float, log: str, interrupt: bool = False) -> int | None:
    """Run to its end; None where that took longer than `seconds`. Its output goes to a file, which no grandchild that
    is left over can hold us up with."""
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / log).open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=place.root,
            env=place.environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            return process.wait(max(1.0, seconds))
        except subprocess.TimeoutExpired:
            if interrupt:
                _interrupted(process)
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _interrupted(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def kernelci(place: Place) -> Verdicts:
    """One run over all kernels: correctness, times, every timed output checked."""
    out = place.folder / "report"
    command = [sys.executable, "-m", "kernelci", "--root", str(place.root), "run", "--out", str(out)]
    ended([*command, "--rungs", "correctness,benchmark"], place, place.budget_s, "log", interrupt=True)
    report = json.loads((out / "results.json").read_bytes())
    for kernel in report["kernels"]:
        verdict = _judged(kernel)
        if verdict is not None:
            yield kernel["name"].split("/")[1], verdict


def _judged(kernel: dict[str, Any]) -> Verdict | None:
    """None where the run ended before this kernel's last rung."""
    reasons = {rung.get("finding", {}).get("reason", "") for rung in kernel["rungs"]}
    stopped = next((rung for rung in kernel["rungs"] if rung["outcome"] in BAD), None)
    if stopped is not None:
        return Verdict(False, said=f"{stopped['rung']}: {stopped.get('finding', {}).get('reason', '')}")
    if "interrupted" in reasons:
        return None
    rows = [row for rung in kernel["rungs"] if rung["rung"] == "benchmark" for row in rung.get("rows", [])]
    times = [one["value"] for row in rows for one in row.get("metrics", []) if one["tag"] == "time"]
    outcomes = {rung["rung"]: rung["outcome"] for rung in kernel["rungs"]}
    passed = outcomes.get("correctness") == "PASSED"
    return Verdict(passed, float(times[0]) if times else 0.0, "" if passed else "not executed")


def kernelbench(place: Place) -> Verdicts:
    """KernelBench's evaluator, a process for each kernel: it isolates none itself."""
    return _alone("kernelbench", place)


def allclose(place: Place) -> Verdicts:
    """torch.allclose once and do_bench, a process for each kernel."""
    return _alone("allclose", place)


def _alone(peer: str, place: Place) -> Verdicts:
    problem = place.root / "references" / "softmax.py"
    end = time.monotonic() + place.budget_s
    for path in ordered(place.root):
        left = end - time.monotonic()
        if left < 1:
            return
        given = place.folder / f"{path.stem}.json"
        command = [sys.executable, str(HERE / "evaluate.py"), peer, str(problem), str(path), str(given)]
        code = ended(command, place, min(left, place.deadline_s), f"{path.stem}.log")
        if code is None and left < place.deadline_s:
            return
        yield path.stem, _found(given, code)


def _found(given: Path, code: int | None) -> Verdict:
    try:
        return Verdict(**json.loads(given.read_bytes()))
    except (OSError, ValueError, TypeError):
        return Verdict(False, said="hang" if code is None else f"crash ({code})")


def flashinfer(place: Place) -> Verdicts:
    """flashinfer-bench's own command over the dataset: by default one process for all kernels, and again after a
    crash. Each kernel is a definition of its own, since traces are written when a definition is through."""
    command = [sys.executable, "-m", "flashinfer_bench", "run", "--local", str(place.root), "--save-results"]
    command += ["--timeout", str(int(place.deadline_s)), "--log-level", "INFO"]
    ended(command, place, place.budget_s, "log", interrupt=True)
    for path in sorted((place.root / "traces").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield _traced(json.loads(line))


def _traced(trace: dict[str, Any]) -> tuple[str, Verdict]:
    evaluation = trace.get("evaluation") or {}
    status = str(evaluation.get("status", ""))
    latency_ms = float((evaluation.get("performance") or {}).get("latency_ms", 0.0))
    passed = status == "PASSED"
    return str(trace["solution"]), Verdict(passed, latency_ms * 1e6, "" if passed else status.lower().replace("_", " "))


def ordered(root: Path) -> list[Path]:
    """The solutions in the order in which they were chosen, so that what a budget leaves out is no one kind."""
    return [root / "kernels" / "softmax" / f"{name}.py" for name in (root / "order.txt").read_text().split()]


def missing(module: str, checkout: str) -> bool:
    """Whether a peer's package can't be found, neither installed nor in the checkout."""
    if importlib.util.find_spec(module) is not None:
        return False
    return not any(Path(checkout, part, module).is_dir() for part in ("src", ".") if checkout)


def last_line(folder: Path) -> str:
    """What an evaluator wrote last."""
    log = folder / "log"
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A folder for all of a comparison."""
    return tempfile.TemporaryDirectory(prefix="kernelci-peers-", ignore_cleanup_errors=True)
