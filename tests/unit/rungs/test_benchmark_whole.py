"""The benchmark rung, whole, on the CPU."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelci import basing, catalog, config, ladder, stats
from kernelci.footprint import Footprint
from kernelci.reasons import Outcome
from kernelci.referee import KernelReferee
from kernelci.reference import Case
from kernelci.rungs import Findings, benchmark
from kernelci.workbench import baselines, duel, timing
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead

CALIBRATION = Calibration(4e12, Overhead(1e5, 0.9e5, 1.1e5, 1e5, spread=1e9), {"float32": 4e14}, 5e12, {}, 2**12)
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "add"
# backend = "triton"
# entry = "f"
# targets = ["sm_80"]
# ///
import torch
def f(x, y):
    torch.add(x, 1, out=y)
"""


class OnTheCpu(KernelReferee):
    """A referee that times bench cases without a GPU."""

    def cases(self) -> tuple[Case, ...]:
        return self.reference.cases()


def _project(root: Path, reference: str, kernel: str) -> catalog.Catalog:
    for place, text in (("references/add.py", reference), ("kernels/add/plain.py", kernel)):
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(text, encoding="utf-8")
    return catalog.scan(root, config.load(root, {}, {}))


def _run(folder: Path, reference: str, head: str, base: str | None = None) -> Findings:
    """The whole rung on the CPU."""
    options = config.load(folder, {}, {"cache": str(folder / "cache")})
    found = _project(folder / "head", reference, head)
    other = None if base is None else basing.Base("main", _project(folder / "base", reference, base), options)
    plan = ladder.Plan(found.kernels, folder / "out", base=other)
    with ladder.opened(found, options, plan) as court:
        court.calibration = CALIBRATION
        referee = OnTheCpu(found.kernels[0], court, ())
        if referee.base is not None:
            referee.base = OnTheCpu(referee.base.kernel, court, (), "base")
        try:
            return benchmark.benchmark(referee)
        finally:
            referee.forget()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block, windows of ten calls, and no compiled baseline. A busy machine is no disturbance, and not noisy."""
    monkeypatch.setattr(timing, "WINDOW_NS", 1e6)
    monkeypatch.setattr(stats, "LOOKS", stats.Looks(at=(1,), deciding=1))
    monkeypatch.setattr(duel, "BLOCKS_ALONE", 1)
    for name in ("DISTURBED", "LEAST_DISTURBED"):
        monkeypatch.setattr(duel, name, float("inf"))
    monkeypatch.setattr("kernelci.workbench.contest.QUIET_NS", float("inf"))
    monkeypatch.setattr("kernelci.workbench.duel.probed_overhead", lambda probed, cost: cost)
    monkeypatch.setattr(baselines, "names", lambda reference: ("eager",))


@pytest.mark.usefixtures("quick")
def test_a_whole_run(tmp_path: Path, adding: str) -> None:
    found = _run(tmp_path, adding, KERNEL)
    said = [any(start in note for note in found.notes) for start in ("no ledger", "seconds: ")]
    rows = [(row.case, any(metric.tag == "time_eager" for metric in row.metrics)) for row in found.rows]
    assert ([("3x17-fp32", True), ("5x17-fp32", True)], [True, True]) == (rows, said)


@pytest.mark.usefixtures("quick")
def test_a_whole_run_against_a_base(tmp_path: Path, adding: str) -> None:
    found = _run(tmp_path, adding, KERNEL, KERNEL.replace("x, 1,", "1, x,"))
    wanted = {"time", "delta", "p", "blocks", "time_base"}
    assert [wanted] * 2 == [wanted & {metric.tag for metric in row.metrics} for row in found.rows]


@pytest.mark.parametrize(
    ("line", "inherits"), [("    # nothing\n", True), ("    y.zero_()\n", False), ("    x = x.clone()\n", False)]
)
def test_machine_code_says_nothing_of_what_other_source_launches_besides(
    tmp_path: Path, adding: str, line: str, inherits: bool
) -> None:
    texts = {"base": KERNEL, "head": KERNEL.replace("    torch.add", f"{line}    torch.add")}
    base, head = (_project(tmp_path / side, adding, text).kernels[0] for side, text in texts.items())
    referee: Any = SimpleNamespace(kernel=head, base=SimpleNamespace(kernel=base))
    said = benchmark._alike(referee, Footprint("sm_80", (), identical=True, same_launches=True))
    assert (benchmark.IDENTICAL if inherits else benchmark.OTHER_HOST) == said


@pytest.mark.usefixtures("quick")
def test_a_whole_run_of_a_kernel_that_is_wrong_when_timed(tmp_path: Path, adding: str) -> None:
    text = KERNEL.replace("x, 1,", "x, 1 if x.shape[0] == 3 else 2,")
    right, wrong = _run(tmp_path, adding, text, KERNEL).rows
    assert (Outcome.PASSED, Outcome.FAILED, "wrong-while-timed") == (
        right.outcome, wrong.outcome, wrong.finding.reason if wrong.finding else ""
    )  # fmt: skip
