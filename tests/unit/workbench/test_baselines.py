"""Baselines run for real, on the CPU: eager and by a library (compiled: test_compiled.py); what fails is a note."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelci.model import Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.reference import Reference, load
from kernelci.workbench import baselines
from kernelci.workbench.arena import Arena
from kernelci.workbench.baselines import Baseline, Kept, Opened
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Time
from kernelci.workbench.expression import ENTRY
from kernelci.workbench.process import Zygote
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.spent import Spent

CALIBRATION = Calibration(1e10, Overhead(1e4, 0.0, 2e4, 1e3), {}, 1e10, {}, 2**16)
TEXT = """
import torch
from kernelci.reference import bench, like
library = {"ours": lambda x: torch.softmax(x, -1)}
def cases():
    yield bench("a few", rows=4, cols=64, dtype="bfloat16")
    yield bench("more", rows=8, cols=64, dtype="bfloat16")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)
"""


@pytest.fixture
def reference(tmp_path: Path) -> Callable[[str], Reference]:
    """A reference file with this text."""

    def make(text: str) -> Reference:
        path = tmp_path / "some.py"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return make


@pytest.fixture
def opened(zygote: Zygote) -> Opened:
    """Starts candidates."""

    def start(arena: Arena, reference: Reference, name: str) -> Session:
        source = baselines.source_of(reference, name)
        return Session(zygote, source, ENTRY, "triton", "cpu", Limits(30.0, 30.0, 2**33), arena=arena)

    return start


def _measured(reference: Reference, opened: Opened) -> dict[str, tuple[Baseline, ...]]:
    return baselines.measure("cpu", reference, reference.cases(), CALIBRATION, opened, Spent())[0]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what compiling takes."""
    monkeypatch.setattr(
        baselines, "names", lambda reference: ("eager", *(f"library:{one}" for one in reference.library))
    )


@pytest.mark.usefixtures("quick")
def test_each_case_has_a_time(reference: Callable[[str], Reference], opened: Opened) -> None:
    found = _measured(reference(TEXT), opened)
    times = [one.time is not None and 0 < one.time.ns < math.inf for each in found.values() for one in each]
    assert [True] * 4 == times


@pytest.mark.usefixtures("quick")
def test_a_baseline_that_raises_is_a_note(reference: Callable[[str], Reference], opened: Opened) -> None:
    text = TEXT.replace("torch.softmax(x, -1)", "torch.softmax(x, 7)")
    _, library = _measured(reference(text), opened)["4x64-bf16"]
    assert (None, True) == (library.time, "IndexError" in library.note)


@pytest.mark.usefixtures("quick")
def test_what_is_not_finite_is_a_note(reference: Callable[[str], Reference], opened: Opened) -> None:
    text = TEXT.replace("torch.softmax(x, -1)", "x / 0")
    _, library = _measured(reference(text), opened)["4x64-bf16"]
    assert "output y is not finite" == library.note


@pytest.mark.usefixtures("quick")
def test_less_exact_outputs_are_not_judged(reference: Callable[[str], Reference], opened: Opened) -> None:
    text = TEXT.replace("torch.softmax(x, -1)", "torch.softmax(x, -1) + 1").replace("bfloat16", "float16")
    _, library = _measured(reference(text), opened)["4x64-fp16"]
    assert "" == library.note


@pytest.mark.usefixtures("quick")
def test_outputs_have_the_declared_dtype(reference: Callable[[str], Reference], opened: Opened) -> None:
    text = TEXT.replace("torch.softmax(x, -1)", "torch.full_like(x, float('inf'), dtype=torch.float64)")
    _, library = _measured(reference(text), opened)["4x64-bf16"]
    assert "output y is not finite" == library.note  # so it was written


@pytest.mark.usefixtures("quick")
def test_each_case_is_measured_once_a_run(reference: Callable[[str], Reference], opened: Opened) -> None:
    kept: Kept = {}
    first, second = reference(TEXT).cases()
    said = [
        baselines.measured_once(kept, "cpu", reference(TEXT), cases, CALIBRATION, opened)[1] != ""
        for cases in ([first], [first], [first, second], [second, first])
    ]
    assert [True, False, True, False] == said


def _time(ns: float, spread: float) -> Time:
    return Time(ns, ns - spread, ns + spread, ns, ns, True)


def _row() -> Row:
    time = Metric("time", 100.0, Unit.NANOSECONDS, "time", "", 80.0, 125.0)
    return Row(Outcome.PASSED, "4x64-bf16", metrics=(time,))


def test_speed_up() -> None:
    _, speedup = baselines.metrics(_row(), [Baseline("eager", _time(300.0, 100.0))])
    assert ("speedup_eager", 3.0, 1.6, 5.0) == (speedup.tag, speedup.value, speedup.low, speedup.high)


def test_no_metric_without_a_time() -> None:
    assert [] == list(baselines.metrics(_row(), [Baseline("eager", note="it raised")]))


def test_no_metric_for_a_row_without_a_time() -> None:
    row = Row(Outcome.PASSED, "4x64-bf16")
    assert [] == list(baselines.metrics(row, [Baseline("eager", _time(1.0, 0.0))]))


def test_notes() -> None:
    assert ["baseline compile: no compiler"] == list(baselines.notes([Baseline("compile", note="no compiler")]))


def test_the_reference_lies_beside_its_entry(reference: Callable[[str], Reference]) -> None:
    assert {"kernelci_baseline.py", "some.py"} == set(baselines.source_of(reference(TEXT), "eager").files)


def test_names_of_a_reference(reference: Callable[[str], Reference]) -> None:
    assert ("eager", "compile", "library:ours") == baselines.names(reference(TEXT))
