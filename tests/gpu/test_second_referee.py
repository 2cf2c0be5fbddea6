"""The second referee on a GPU: a referee in the sandbox owns the arena, candidates in its own sandboxes map it."""

import textwrap
from pathlib import Path

import pytest

from kernelci import confinement, results
from kernelci.confinement import Bounds
from kernelci.reasons import Outcome
from kernelci.workbench import sandbox

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not sandbox.level().sandboxed, reason=f"no sandbox here: {sandbox.level().why}"),
]
FILES = {
    "references/copy.py": """
        from kernelci.reference import check, like
        def cases():
            yield check(n=1000, dtype="float32")
        def inputs(case, draw):
            return {"x": draw.normal(case.n, dtype=case.dtype)}
        def outputs(case):
            return {"y": like("x")}
        def reference(x):
            return x
    """,
    "kernels/copy/mine.py": """
        # /// script
        # [tool.kernelci]
        # reference = "copy"
        # backend = "triton"
        # entry = "copy"
        # ///
        import triton
        import triton.language as tl

        @triton.jit
        def move(x, y, n, SIZE: tl.constexpr):
            at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
            tl.store(y + at, tl.load(x + at, at < n), at < n)

        def copy(x, y):
            move[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), SIZE=64)
    """,
}


def test_a_whole_run_inside_reaches_the_gpu(tmp_path: Path) -> None:
    root = tmp_path / "head"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text).lstrip())
    bounds = Bounds(500.0, confinement.most_memory())
    found, said = confinement.confined(root, (root,), ("run", "--rungs", "correctness"), bounds)
    assert "" == found.why, found.log
    report = results.decode(said)
    (kernel,) = report.kernels
    rung = kernel.rung("correctness")
    assert rung is not None
    assert (True, Outcome.PASSED) == (report.environment.gpu != "", rung.outcome), kernel.stopped_at
    assert report.environment.isolation in found.isolation
