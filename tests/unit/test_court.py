"""What a run's referees share."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelci import catalog, ladder
from kernelci.config import Config
from kernelci.court import Court, compile_ahead, keep_compiled, load_limit_s, start_baseline
from kernelci.ladder import Plan
from kernelci.reference import Case, Reference, load
from kernelci.workbench import baselines, expression, slots, waiting
from kernelci.workbench.ahead import Ahead
from kernelci.workbench.arena import Arena
from kernelci.workbench.expression import COMPILE, EAGER
from kernelci.workbench.protocol import Source


@pytest.mark.parametrize(("backend", "limit_s"), [("triton", 60.0), ("torch", 120.0)])
def test_importing_may_take_as_long_as_compiling_where_it_builds(backend: str, limit_s: float) -> None:
    assert limit_s == load_limit_s(Config(load_timeout_s=60.0, compile_timeout_s=120.0), backend)


REFERENCE = """
from kernelci.reference import bench, check, like
def cases():
    yield bench("a few", rows=3, cols=17, dtype="float32")
    yield bench("more", rows=5, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""
# Stands for torch.compile: leaves in its cache what it has not found there, and what it has chosen.
KEEPING = b"""
import os
from pathlib import Path
def baseline(x):
    kept = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    kept.mkdir(parents=True, exist_ok=True)
    for name in (f"{len(x)}.py", f"{len(x)}.best_config"):
        if not (kept / name).exists():
            (kept / name).write_bytes(os.urandom(8))
"""


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    """Adds one."""
    for folder in ("references", "kernels"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "references" / "add.py"
    path.write_text(REFERENCE, encoding="utf-8")
    return load(path)


@pytest.fixture
def court(tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch) -> Iterator[Court]:
    """A run's, on the CPU, whose baselines do as KEEPING does."""
    config = Config(cache=str(tmp_path / "cache"))
    own = Source("baseline", "kernel.py", {"kernel.py": KEEPING})
    monkeypatch.setattr(baselines, "source_of", lambda reference, name: own)
    with ladder.opened(catalog.scan(tmp_path, config), config, Plan((), tmp_path / "out")) as made:
        yield made


def _left(court: Court, reference: Reference, name: str) -> dict[str, bytes]:
    """The files that a baseline is loaded with."""
    arena = Arena("cpu", 2**12)
    session = start_baseline(court, arena, reference, name)
    try:
        session.start()
        packed = session.packed()
    finally:
        session.close()
        arena.close()
    if not packed:
        return {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive.getmembers())
        return {name: file.read() for name, file in files if file is not None}


def test_a_baseline_finds_what_was_compiled_ahead(
    court: Court, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    monkeypatch.setattr(waiting.Waiting, "prepare", lambda self, memory_bytes: waited.append("imports"))
    assert court.ahead is not None
    for _ in range(2):  # another kernel of the same reference
        compile_ahead(court, reference, reference.cases())
    court.ahead.settle()
    assert ({"./inductor/3.py", "./inductor/5.py"}, {}, ["imports"]) == (
        {*_left(court, reference, COMPILE)}, _left(court, reference, EAGER), waited,
    )  # fmt: skip


def test_a_later_run_compiles_only_what_is_new_and_finds_what_was_chosen(
    court: Court, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting.Waiting, "prepare", lambda self, memory_bytes: None)
    assert court.ahead is not None
    few, more = reference.cases()
    compile_ahead(court, reference, [few])
    court.ahead.settle()
    said = keep_compiled(court, reference, _timed(court, reference, few))
    first = _left(court, reference, COMPILE)
    court.ahead.close()
    court.ahead = Ahead(Path(court.config.cache) / "baselines")
    court.waiting.clear()
    compile_ahead(court, reference, [few, more])
    court.ahead.settle()
    second = _left(court, reference, COMPILE)
    assert ("", {"./inductor/3.py", "./inductor/3.best_config"}) == (said, {*first})
    assert {**first, "./inductor/5.py": second["./inductor/5.py"]} == second


def _timed(court: Court, reference: Reference, case: Case) -> bytes:
    """What the process that is timed has in its cache when it was called."""
    arena = Arena("cpu", 2**16)
    session = start_baseline(court, arena, reference, COMPILE)
    try:
        session.call(slots.layout(reference, case).call(case))
        return session.packed()
    finally:
        session.close()
        arena.close()


def test_without_bench_cases_nothing_is_compiled_ahead(court: Court, reference: Reference) -> None:
    compile_ahead(court, reference, ())
    assert {} == court.waiting


def test_only_baselines_keep_what_torch_compiles(tmp_path: Path) -> None:
    assert str(tmp_path / "inductor") == expression.environment(tmp_path)["TORCHINDUCTOR_CACHE_DIR"]
