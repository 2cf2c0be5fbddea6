"""torch's compilation of a baseline, made ahead for real: the process that times it compiles nothing more."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.court import Court, compile_ahead, keep_compiled, start_baseline
from kernelci.reference import Reference, load
from kernelci.workbench import baselines, leftovers
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead
from kernelci.workbench.expression import COMPILE, EAGER
from kernelci.workbench.spent import Spent

pytestmark = pytest.mark.gpu

CALIBRATION = Calibration(4e12, Overhead(3e4, 2e4, 4e4, 1e3), {}, 5e12, {}, 50 * 2**20)
REFERENCE = """
from kernelci.reference import bench, like
def cases():
    yield bench("small", rows=256, cols=1024, dtype="bfloat16")
    yield bench("larger", rows=4096, cols=4096, dtype="bfloat16")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return (x * x.float().square().mean(dim=-1, keepdim=True).rsqrt()).to(x.dtype) + 1
"""


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    """A norm and a sum in one expression."""
    for folder in ("references", "kernels"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "references" / "norm.py"
    path.write_text(REFERENCE, encoding="utf-8")
    return load(path)


@pytest.fixture
def court(tmp_path: Path, reference: Reference) -> Iterator[Court]:
    """A run whose baseline has been compiled, and whose process waits."""
    options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache")})
    with ladder.opened(catalog.scan(tmp_path, options), options, ladder.Plan((), tmp_path / "out")) as made:
        made.device.enter()
        assert made.ahead is not None
        compile_ahead(made, reference, reference.cases())
        made.ahead.settle()
        yield made


def test_the_process_that_is_timed_finds_all_compiled_and_chooses(court: Court, reference: Reference) -> None:
    assert court.ahead is not None
    device, opened = court.device.torch_name, partial(start_baseline, court)
    name = f"{reference.name} {court.device.name}"
    said, choices = [], []
    for _ in range(2):  # the second finds choices too
        (kept,) = court.ahead.cache(name)
        found, left = baselines.measure(device, reference, reference.cases(), CALIBRATION, opened, Spent())
        new = leftovers.code(left) - leftovers.code(kept)
        said.append((bool(leftovers.code(kept)), new, {each.name for each in found[reference.cases()[0].id]}))
        choices.append(leftovers.choices(left) - leftovers.choices(kept))
        keep_compiled(court, reference, left)
    assert [(True, set(), {EAGER, COMPILE})] * 2 == said
    assert set() == choices[1]


def test_the_process_that_waits_is_the_one_that_is_timed(court: Court, reference: Reference) -> None:
    waiting = court.waiting[f"{reference.name} {court.device.torch_name}"]
    candidate = waiting._candidate
    arena = Arena(court.device.torch_name, 2**21)
    session = start_baseline(court, arena, reference, COMPILE)
    try:
        session.start()
        assert (True, True, None) == (
            candidate is not None, session._candidate is candidate, waiting._candidate,
        )  # fmt: skip
    finally:
        session.close()
        arena.close()
