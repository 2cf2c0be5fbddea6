"""torch.compile for real, on the CPU: what was compiled ahead is not compiled again by the process that is timed."""

import io
import json
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernelci.reference import Reference
from kernelci.workbench import ahead, baselines, leftovers
from kernelci.workbench.ahead import Ahead
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead
from kernelci.workbench.expression import COMPILE, ENTRY
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session

CALIBRATION = Calibration(1e10, Overhead(1e4, 0.0, 2e4, 1e3), {}, 1e10, {}, 2**16)
TEXT = """
library = {"ours": lambda x: torch.softmax(x, -1)}
def cases():
    yield bench("a few", rows=4, cols=64, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return (x + 1).square()
"""
# The folder of a baseline's own processes; without vector code, whose support the compiler would be asked for.
BEFORE = b"""
import os, sys
from pathlib import Path
from kernelci.workbench import expression
cache = Path(os.environ["KERNELCI_PRIVATE"], "cache")
os.environ |= expression.environment(cache) | {"TORCHINDUCTOR_VEC_ISA_OK": "0"}
ran = []
sys.addaudithook(lambda event, of: ran.append([str(one) for one in of[1]]) if event == "subprocess.Popen" else None)
"""
# What torch counted, and the compilers that were run, go where the process leaves what it compiled.
AFTER = b"""
class Counting:
    def __init__(self, own):
        self.own, self.__signature__ = own, own.__signature__
    def __call__(self, **inputs):
        import json
        from torch._dynamo.utils import counters
        result = self.own(**inputs)
        cache.mkdir(exist_ok=True)
        counted = {kind: dict(each) for kind, each in counters.items() if kind in ("inductor", "aot_autograd")}
        compilers = [one for one in ran if "-o" in one]
        (cache / "counted.json").write_text(json.dumps({**counted, "compilers": len(compilers)}))
        return result
baseline = Counting(baseline)
"""


NO_COMPILER = b'os.environ["CXX"] = "/nowhere/g++"\n'


def _opened(
    zygote: Zygote,
    caches: tuple[bytes, ...],
    arena: Arena,
    reference: Reference,
    name: str,
    more: bytes = b"",
) -> Session:
    source = baselines.source_of(reference, name)
    own = BEFORE + more + source.files[source.name] + (AFTER if name == COMPILE else b"")
    files = {**source.files, source.name: own}
    where = (Source(source.folder, source.name, files), ENTRY, "triton", "cpu")
    return Session(zygote, *where, Limits(30.0, 120.0, 2**34), caches, arena=arena)


def _counted(packed: bytes) -> dict[str, Any]:
    """What a process that compiles counted in all."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        file = archive.extractfile("./counted.json")
        assert file is not None
        found = json.loads(file.read())
    inductor, graphs = found["inductor"], found["aot_autograd"]
    return {
        "compilers": found["compilers"] > 0,
        "compiled": inductor.get("fxgraph_cache_miss", 0),
        "found": inductor.get("fxgraph_cache_hit", 0),
        "graphs": (graphs.get("autograd_cache_miss", 0), graphs.get("autograd_cache_hit", 0)),
    }


@pytest.mark.slow
def test_the_process_that_is_timed_compiles_nothing(
    written: Callable[[str], Reference], zygote: Zygote, tmp_path: Path
) -> None:
    reference, left = written(TEXT), list[bytes]()
    cases = reference.cases()

    def compiling(arena: Arena) -> Session:
        return _opened(zygote, (), arena, reference, COMPILE)

    def keep(packed: bytes) -> str:
        left.append(packed)
        return one.keep("a", packed)

    one = Ahead(tmp_path / "kept")
    ids = [case.id for case in cases]
    one.compile("a", "key", ids, lambda missing, loaded: ahead.compiled("cpu", reference, cases, compiling))
    one.settle()
    (first,) = one.cache("a")
    opened = partial(_opened, zygote, (first,))
    found, note = baselines.measured_once({}, "cpu", reference, cases, CALIBRATION, opened, keep)
    one.close()
    assert {"compilers": True, "compiled": 1, "found": 0, "graphs": (1, 0)} == _counted(first)
    assert {"compilers": False, "compiled": 0, "found": 1, "graphs": (0, 1)} == _counted(left[0])
    assert (True, leftovers.code(first)) == (bool(leftovers.code(first)), leftovers.code(left[0]))
    assert ([("eager", ""), ("compile", ""), ("library:ours", "")], False) == (
        [(each.name, each.note) for each in found["4x64-fp32"]], "only then" in note,
    )  # fmt: skip


@pytest.mark.slow
def test_without_a_compiler_it_is_a_note_and_the_others_stand(
    written: Callable[[str], Reference], zygote: Zygote
) -> None:
    reference = written(TEXT)
    opened = partial(_opened, zygote, (), more=NO_COMPILER)
    found, _ = baselines.measured_once({}, "cpu", reference, reference.cases(), CALIBRATION, opened)
    eager, compiled, library = found["4x64-fp32"]
    assert (True, None, True) == (eager.time is not None, compiled.time, library.time is not None)
    assert "No working C++ compiler found" in compiled.note
