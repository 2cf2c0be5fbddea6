"""What the rung `run` tries together."""

from pathlib import Path

from kernelci import catalog, config, ladder, rungs
from kernelci.model import RungResult

REFERENCE = """
from kernelci.reference import check, like
def cases():
    for n in (4, 8, 2**19, 2**19 + 1):
        yield check(n=n, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x
"""
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "copy"
# backend = "triton"
# entry = "copy"
# targets = ["sm_80"]
# ///
def copy(x, y):
    y.copy_(x)
    assert x.numel() != 0
"""
OWN = """
from kernelci.rungs import Findings, rung
from kernelci.rungs.run import _start_small
@rung("own")
def own(referee):
    _start_small(referee, referee.cases()[1:])
    found = [f"{name} {type(trial).__name__}" for (name, _), trial in referee._trials.items()]
    return Findings(notes=sorted(found))
"""


def _own(root: Path, kernel: str = KERNEL) -> RungResult:
    for place, text in (("references/copy.py", REFERENCE), ("kernels/copy/plain.py", kernel), ("rungs/own.py", OWN)):
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(text, encoding="utf-8")
    rungs.ladder()  # ours register once, when they are imported: what is kept must hold them
    known = dict(rungs._REGISTRY)
    try:
        options = config.load(root, {}, {"cache": str(root / "cache"), "interpreter_elements": 2**22})
        found = catalog.scan(root, options)
        report = ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("own",)))
    finally:
        rungs._REGISTRY.clear()
        rungs._REGISTRY.update(known)
    own = report.kernels[0].rung("own")
    assert own is not None
    return own


def test_small_cases_but_the_first_are_tried_together(tmp_path: Path) -> None:
    assert ("check 524288-fp32 Trial", "check 8-fp32 Trial") == _own(tmp_path).notes


def test_a_fault_is_left_to_its_case(tmp_path: Path) -> None:
    faulty = KERNEL.replace("!= 0", "!= 8")
    assert "check 8-fp32 Stop" in _own(tmp_path, faulty).notes


def test_a_reference_that_fails_is_left_to_its_case(tmp_path: Path) -> None:
    kernel = KERNEL.replace('reference = "copy"', 'reference = "none"')
    assert "unknown-reference" == getattr(_own(tmp_path, kernel).finding, "reason", "")
