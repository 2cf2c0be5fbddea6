"""Compiling runs kernel code too: what it tries there is contained like anywhere else."""

from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.reasons import Outcome
from kernelci.workbench import sandbox

REFERENCE = """
from kernelci.reference import check, like
def cases(): yield check(n=5, dtype="float32")
def inputs(case, draw): return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case): return {"y": like("x")}
def reference(x): return 2 * x
def cost(case): return case.n
"""
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "double"
# backend = "triton"
# entry = "double"
# targets = ["sm_80"]
# ///
import os, pathlib, socket
import triton
import triton.language as tl
@IMPORT@

@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, 2 * tl.load(x + place, mask=place < n, other=0.0), mask=place < n)


def double(x, y):
    @CALL@
    doubled[(1,)](x, y, x.numel(), 128)
"""
ATTACKS = {
    "reference": "pathlib.Path('@ROOT@/references/double.py').read_text()",
    "secret": "os.environ['GITHUB_TOKEN']",
    "network": "socket.create_connection(('10.0.0.1', 80), 1)",
    "write": "pathlib.Path('@ROOT@/kernels/left').write_text('x')",
}
SAID = {
    "reference": "No such file|Permission denied",
    "secret": "KeyError: 'GITHUB_TOKEN'",
    "network": "Network is unreachable|Permission denied",
    "write": "No such file|Permission denied|Read-only",
}


@pytest.mark.skipif(not sandbox.level().sandboxed, reason="no sandbox here")
@pytest.mark.parametrize("place", ["@IMPORT@", "@CALL@"])
def test_each_attack_is_refused_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ours")
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "double.py").write_text(REFERENCE)
    (tmp_path / "kernels" / "double").mkdir(parents=True)
    for name, attack in ATTACKS.items():
        text = KERNEL.replace(place, attack.replace("@ROOT@", str(tmp_path)))
        text = text.replace("@IMPORT@", "").replace("@CALL@", "pass")
        (tmp_path / "kernels" / "double" / f"{name}.py").write_text(text)
    options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache")})
    found = catalog.scan(tmp_path, options)
    report = ladder.climb(found, options, ladder.Plan(found.kernels, tmp_path / "out", ("compile",)))
    for kernel in report.kernels:
        stopped = kernel.stopped_at
        assert stopped is not None, kernel.name
        assert stopped.finding is not None
        assert ("compile", Outcome.FAILED) == (stopped.rung, stopped.outcome)
        expected = SAID[kernel.name.partition("/")[2]].split("|")
        assert [True] == list({any(part in stopped.finding.message for part in expected)}), stopped.finding.message
    assert not (tmp_path / "kernels" / "left").exists()
