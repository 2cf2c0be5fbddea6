"""Mutants of a small Triton kernel climb in the interpreter: each kind of fate, by the ladder's own processes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelci import mutating
from kernelci.cli import cli
from kernelci.errors import ConfigError
from kernelci.mutating import judging
from kernelci.mutating.mutants import Request
from kernelci.mutating.outcomes import Fate, Judged, Result

REFERENCE = """\
from kernelci.reference import check, like

def cases():
    yield check(size=1, dtype="float32")
    yield check(size=100, dtype="float32")

def inputs(case, draw):
    return {"x": draw.normal(case.size, dtype=case.dtype)}

def outputs(case):
    return {"y": like("x")}

def reference(x):
    return 2 * x
"""
KERNEL = """\
# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "double"
# backend = "triton"
# entry = "double"
# targets = ["sm_90a"]
# ///
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < size, other=0.0)
    unused = values + 1.0
    zero = tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0) * 0.0
    tl.store(y + at, values * 2.0 + zero, mask=at < size)


@triton.jit
def never_called(x, y):
    tl.store(y, tl.load(x) * 2.0)


def double(x, y):
    if x.numel() < 0:
        never_called[(1,)](x, y)
    doubled[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), 64)
"""
WANTED = {
    "not compiled": ("line 16", "x + at → at"),
    "killed": ("line 19", "2.0 → 2.002"),
    "killed, allclose sees nothing": ("line 19", "→ (y + at, values * 2.0 + zero)"),
    "identical": ("line 17", "1.0 → 2.0"),
    "unreached": ("line 24", "2.0 → 4.0"),
    "survived": ("line 16", "other:"),
    "used": ("line 18", "other:"),
    "launch": ("line 30", "cdiv"),
}


def _project(root: Path, kernel: str = KERNEL) -> Path:
    for name, text in (("references/double.py", REFERENCE), ("kernels/double/triton.py", kernel)):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def _wanted(request: Request) -> tuple[str, ...]:
    ids = []
    for line, part in WANTED.values():
        found = [m.id for m in request.mutants if m.label.endswith(line) and part in m.label]
        assert found, (line, part)
        ids.append(found[0])
    return tuple(ids)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    root = _project(tmp_path_factory.mktemp("double"))
    only = _wanted(mutating.select(root, "double/triton"))
    return mutating.judge(root, mutating.select(root, "double/triton", only))


@pytest.fixture(scope="module")
def fates(result: Result) -> dict[str, Judged]:
    return dict(zip(WANTED, result.mutants, strict=True))


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "fate", "reason"),
    [
        ("not compiled", Fate.NOT_COMPILED, "compile-error"),
        ("killed", Fate.KILLED, "wrong"),
        ("killed, allclose sees nothing", Fate.KILLED, "out-of-bounds"),
        ("identical", Fate.IDENTICAL, ""),
        ("unreached", Fate.UNREACHED, ""),
        ("launch", Fate.KILLED, "unwritten"),
        ("used", Fate.KILLED, "perturbed"),
    ],
)
def test_fate(fates: dict[str, Judged], name: str, fate: Fate, reason: str) -> None:
    assert (fate, reason) == (fates[name].fate, fates[name].reason)


def test_a_missing_other_whose_lanes_nobody_uses_is_no_fault(fates: dict[str, Judged]) -> None:
    assert fates["survived"].fate in (Fate.SURVIVED, Fate.IDENTICAL)


@pytest.mark.parametrize(
    ("name", "passes"),
    [("killed", "passed"), ("killed, allclose sees nothing", "passed"), ("launch", "failed"), ("used", "passed")],
)
def test_allclose_judges_the_same_mutants(fates: dict[str, Judged], name: str, passes: str) -> None:
    assert passes == fates[name].allclose


def test_a_survivor_has_its_diff(fates: dict[str, Judged]) -> None:
    assert "+    values = tl.load(x + at, mask=at < size)\n" in fates["survived"].diff


def test_a_kernel_that_does_not_pass_is_refused(tmp_path: Path) -> None:
    root = _project(tmp_path, KERNEL.replace("values * 2.0 + zero, mask", "values * 3.0 + zero, mask"))
    with pytest.raises(ConfigError, match="itself is stopped at correctness"):
        mutating.judge(root, mutating.select(root, "double/triton", ("1",)))


def test_kernels_judged_together(tmp_path: Path) -> None:
    root = _project(tmp_path)
    for name, factor in (("right", "2.0"), ("wrong", "3.0")):
        text = KERNEL.replace("values * 2.0", f"values * {factor}")
        (root / "kernels" / "double" / f"{name}_triton.py").write_text(text, encoding="utf-8")
    names = ("double/right_triton", "double/wrong_triton")
    only = tuple(m.id.split("#")[1] for m in mutating.select(root, names[0]).mutants if "2.0 → 2.002" in m.label)[:1]
    told: list[str] = []
    right, wrong = mutating.judge_all(root, [mutating.select(root, name, only) for name in names], say=told.append)
    assert isinstance(right, Result)
    assert isinstance(wrong, ConfigError)
    assert (names[0], [Fate.KILLED], len(told)) == (right.kernel, [one.fate for one in right.mutants], 1)
    assert f"{names[1]} itself is stopped at correctness" in wrong.message


def test_list(tmp_path: Path) -> None:
    answer = CliRunner().invoke(
        cli, ["--root", str(_project(tmp_path)), "mutate", "double/triton", "--limit", "1", "--list"]
    )
    assert (0, 1) == (answer.exit_code, len(answer.output.splitlines()))


def test_after_an_interrupt_what_was_judged_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("KERNELCI_LANES", "1")
    root = _project(tmp_path)
    only = _wanted(mutating.select(root, "double/triton"))[:3]
    found = mutating.judge(root, mutating.select(root, "double/triton", only), say=interrupted)
    fates = [each.fate for each in found.mutants]
    assert ([Fate.NOT_COMPILED, Fate.UNJUDGED, Fate.UNJUDGED], 130) == (fates, found.exit_code)


def test_an_interrupt_that_ended_the_originals_process_is_no_fault_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(climb: judging._Climb) -> None:
        climb.error = ConfigError("its process ended")
        raise KeyboardInterrupt

    monkeypatch.setattr(judging._Climb, "look_at_original", ended)
    root = _project(tmp_path)
    found = mutating.judge(root, mutating.select(root, "double/triton", limit=1))
    assert ([Fate.UNJUDGED], 130) == ([each.fate for each in found.mutants], found.exit_code)
