"""The perturb rung's judgement; that it stops kernels is shown by the corpus (X3, X4)."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelci import disturbing
from kernelci.errors import Stop
from kernelci.reference import Case, load
from kernelci.rungs import perturb
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.trial import Trial

KINDS = {one.name: one for one in disturbing.DISTURBANCES}
REFERENCE = """
from kernelci.reference import check, like
def cases(): yield check(n=64, dtype="float32")
def inputs(case, draw): return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case): return {"y": like("x")}
def reference(x): return 2 * x
def cost(case): return case.n
"""
X = torch.linspace(-1, 1, 64)
RIGHT, WRONG = 2 * X, torch.zeros(64)
NEAR = torch.nextafter(RIGHT, torch.full((64,), 9.0))


class Referee:
    """Gives what a candidate would."""

    def __init__(self, path: Any, found: torch.Tensor | Stop) -> None:
        path.write_text(REFERENCE)
        self.reference: Any = load(path)
        self.found = found

    def drawn(self, case: Case, draw: str) -> Drawn:
        oracle = {"y": (2 * X).double()}
        return Drawn(case, {"x": X}, {}, Truth(oracle, {"y": RIGHT}))

    def disturbed(self, case: Case, draw: str, name: str) -> Trial:
        if isinstance(self.found, Stop):
            raise self.found
        return Trial({"y": self.found})


def _told(tmp_path: Any, kind: str, found: torch.Tensor | Stop, repeatable: bool = False) -> str:
    referee = Referee(tmp_path / "double.py", found)
    if repeatable:
        (tmp_path / "double.py").write_text(REFERENCE + "repeatable = True\n")
        referee.reference = load(tmp_path / "double.py")
    case = referee.reference.cases()[0]
    try:
        return perturb._told(referee, case, KINDS[kind], Trial({"y": RIGHT}))  # type: ignore[arg-type]
    except Stop as stop:
        return f"{stop.reason}: {stop.message}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits(tmp_path: Any, kind: str) -> None:
    assert "the same bits" == _told(tmp_path, kind, RIGHT)


@pytest.mark.parametrize("kind", KINDS)
def test_other_bits_that_are_right_are_said(tmp_path: Any, kind: str) -> None:
    assert "right, with other bits" == _told(tmp_path, kind, NEAR)


@pytest.mark.parametrize(("kind", "stopped"), [("shared", True), ("order", True), ("warps-more", False)])
def test_other_bits_of_what_must_be_repeatable(tmp_path: Any, kind: str, stopped: bool) -> None:
    assert stopped == _told(tmp_path, kind, NEAR, repeatable=True).startswith("perturbed: ")


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.told])
def test_what_nobody_must_withstand_is_told(tmp_path: Any, kind: str) -> None:
    told = _told(tmp_path, kind, WRONG)
    assert told.startswith("output y: 64 of 64 elements")
    assert told.endswith(f": it {KINDS[kind].why}")


def test_an_assertion_is_told_as_the_device_said_it(tmp_path: Any) -> None:
    said = "kernel.py:9: unknown: Assertion `int32 overflow detected for operation mul` failed."
    log = f"block: [0,0,0]\n{said}\nterminated"
    told = _told(tmp_path, "overflow", Stop("gpu-fault", "device-side assert triggered", log=log))
    assert f"{said}: it {KINDS['overflow'].why}" == told


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.told])
def test_what_is_wrong_then_is_a_finding_that_names_the_disturbance(tmp_path: Any, kind: str) -> None:
    lines = _told(tmp_path, kind, WRONG).splitlines()
    assert f"perturbed: {KINDS[kind].title}, and then: output y: 64 of 64 elements" == lines[0][: lines[0].find(" (")]
    assert f"Undisturbed it is right, so it {KINDS[kind].why}." == lines[-1]


@pytest.mark.parametrize("reason", ["raised", "compile-error", "shared-memory", "hang"])
def test_other_launches_may_not_work(tmp_path: Any, reason: str) -> None:
    told = _told(tmp_path, "stages-more", Stop(reason, "no"))
    assert f"left alone, since it ends as {reason} (no)" == told


@pytest.mark.parametrize("reason", ["gpu-fault", "unwritten", "out-of-bounds"])
def test_other_launches_may_not_do_damage(tmp_path: Any, reason: str) -> None:
    assert _told(tmp_path, "warps-more", Stop(reason, "no")).startswith("perturbed: twice num_warps, and then: no")


def test_dirty_memory_excuses_nothing(tmp_path: Any) -> None:
    assert _told(tmp_path, "shared", Stop("hang", "no answer")).startswith("perturbed: ")


def test_a_call_that_nothing_was_changed_for(tmp_path: Any) -> None:
    assert "not made, since the call has nothing" == _told(
        tmp_path, "shared", Stop("raised", "Undisturbed: the call has nothing")
    )


def test_a_broken_reference_is_not_the_kernels_fault(tmp_path: Any) -> None:
    referee = Referee(tmp_path / "double.py", RIGHT)
    referee.reference = SimpleNamespace(repeatable=False)
    referee.drawn = lambda case, draw: (_ for _ in ()).throw(Stop("reference", "gone"))  # type: ignore[method-assign]
    with pytest.raises(Stop) as caught:
        perturb._told(referee, Case("check", ()), KINDS["shared"], Trial({"y": RIGHT}))  # type: ignore[arg-type]
    assert "reference" == caught.value.reason
