"""Entries that return their outputs, for real: the results lie in the arena, or are copied and that is said."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.errors import Stop
from kernelci.referee import KernelReferee
from kernelci.reference import Case
from kernelci.workbench import sandbox, timing
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead
from kernelci.workbench.contest import Contestant, Course, Kind
from kernelci.workbench.spent import Spent

pytestmark = pytest.mark.gpu

L2 = 50 * 2**20
CALIBRATION = Calibration(4e12, Overhead(3e4, 2e4, 4e4, 1e3), {}, 5e12, {}, L2)
REFERENCE = """
from kernelci.reference import bench, check, tensor
independent = {"n": ("x",)}
library = {"cuBLAS": lambda x, w: (x @ w, x.sum(dim=1, keepdim=True))}
def cases():
    yield check(n=17, k=64, dtype="bfloat16")
    yield bench("under a megabyte", n=256, k=512, dtype="bfloat16")
    yield bench("a few megabytes", n=8192, k=256, dtype="bfloat16")
    yield bench("many megabytes", n=65536, k=512, dtype="bfloat16")
def inputs(case, draw):
    return {"x": draw.normal(case.n, case.k, dtype=case.dtype), "w": draw.normal(case.k, case.k, dtype=case.dtype)}
def outputs(case):
    return {"y": tensor(case.n, case.k, dtype=case.dtype), "sum": tensor(case.n, 1, dtype=case.dtype)}
def reference(x, w):
    return x @ w, x.sum(dim=1, keepdim=True)
def cost(case):
    return 2 * case.n * case.k * case.k
"""
CARD = """# /// script
# [tool.kernelci]
# reference = "both"
# backend = "triton"
# entry = "f"
# ///
import torch
import triton
import triton.language as tl
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
"""
TRITON = """
@triton.jit
def rows(x, y, k: tl.constexpr):
    at = tl.arange(0, k)
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(x + row * k + at).to(tl.float32), axis=0))
def f(x, w):
    total = torch.empty(x.shape[0], 1, dtype=x.dtype, device=x.device)
    rows[(x.shape[0],)](x, total, x.shape[1])
    return x @ w, total
"""
# What stays where it was allocated.
SERVED = {
    "torch's own": "def f(x, w):\n    return x @ w, x.sum(dim=1, keepdim=True)\n",
    "by name": "def f(x, w):\n    return {'sum': x.sum(dim=1, keepdim=True), 'y': x @ w}\n",
    "a kernel of its own": TRITON,
    "temporaries": (
        "def f(x, w):\n    wide = x.float() + 0\n    return x @ w, (wide * 1).sum(dim=1, keepdim=True).to(x.dtype)\n"
    ),
    "another layout": "def f(x, w):\n    return (w.T.contiguous() @ x.T).T, x.sum(dim=1, keepdim=True)\n",
    "a workspace allocated once": (
        "_kept = {}\ndef f(x, w):\n    if x.shape not in _kept:\n        _kept[x.shape] = torch.empty_like(x)\n"
        "    torch.mm(x, w, out=_kept[x.shape])\n    return _kept[x.shape].clone(), x.sum(dim=1, keepdim=True)\n"
    ),
    "something kept from the first call": (
        "_ones = {}\ndef f(x, w):\n    if len(w) not in _ones:\n"
        "        _ones[len(w)] = torch.ones(len(w), 1, device=x.device)\n"
        "    return x @ w, (x.float() @ _ones[len(w)]).to(x.dtype)\n"
    ),
}
# What must be copied.
COPIED = {
    "one tensor for all calls": (
        "_kept = {}\ndef f(x, w):\n    if x.shape not in _kept:\n        _kept[x.shape] = torch.empty_like(x)\n"
        "    return torch.mm(x, w, out=_kept[x.shape]), x.sum(dim=1, keepdim=True)\n"
    ),
    "a part of what it allocates": (
        "def f(x, w):\n    both = torch.cat([x @ w, x], dim=0)\n"
        "    return both[: x.shape[0]], x.sum(dim=1, keepdim=True)\n"
    ),
    "more memory than there is": (
        "def f(x, w):\n    much = torch.empty(2**30, dtype=torch.uint8, device=x.device)\n"
        "    return x @ w, x.sum(dim=1, keepdim=True)\n"
    ),
}
# What no graph takes.
EAGER = "def f(x, w):\n    float(x[0, 0])\n    return x @ w, x.sum(dim=1, keepdim=True)\n"

Opened = Callable[[str], KernelReferee]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A referee of a kernel with this text."""
    contexts = []

    def make(text: str) -> KernelReferee:
        for folder, name, content in (("references", "both", REFERENCE), ("kernels/both", "some", CARD + text)):
            path = tmp_path / folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache")})
        found = catalog.scan(tmp_path, options)
        contexts.append(ladder.opened(found, options, ladder.Plan(found.kernels, tmp_path / "out")))
        return KernelReferee(found.kernels[0], contexts[-1].__enter__(), ())

    yield make
    for context in contexts:
        context.__exit__(None, None, None)


def _bench(referee: KernelReferee) -> tuple[Case, ...]:
    return tuple(case for case in referee.reference.cases() if case.kind == "bench")


def _measured(referee: KernelReferee, returns: bool = True) -> tuple[list[Course], list[bool]]:
    """All windows of all cases by one process, prepared first and then run twice; and whether each stayed in place."""
    reference, cases = referee.reference, _bench(referee)
    arena, _ = timing.arena_for(referee.device.torch_name, reference, cases, CALIBRATION, returns)
    session = referee.open(arena)
    one, spent, stayed = Contestant("head", session), Spent(), []
    try:
        courses = [timing.course(arena, reference, case, 2e4, CALIBRATION, "s") for case in cases]
        steps = [(course, kind, number) for number, (course, kind) in enumerate(_kinds(courses))]
        for course, kind, number in steps:
            course.bank.deal()
            one.prepare(number, course, kind, None)
        for course, kind, number in [*steps, *reversed(steps)]:
            one.go(number, course, kind, spent)
            stayed.append(bool(session.spots(number)))
    except Stop as stop:
        pytest.fail(f"{stop.reason}: {stop.message}\n{stop.log}")
    finally:
        session.close()
        arena.close()
    return courses, stayed


def _kinds(courses: list[Course]) -> list[tuple[Course, Kind]]:
    return [(course, kind) for course in courses for kind in course.calls]


@pytest.mark.parametrize("kind", SERVED)
def test_results_stay_where_they_are(opened: Opened, kind: str) -> None:
    courses, stayed = _measured(opened(SERVED[kind]))
    told = [(course.copied, course.why_eager) for course in courses]
    assert ([({}, "")] * 3, {True}) == (told, set(stayed))


@pytest.mark.parametrize("kind", COPIED)
def test_copied_results_are_told(opened: Opened, kind: str) -> None:
    courses, stayed = _measured(opened(COPIED[kind]))
    assert ([True] * 3, False) == ([bool(course.copied.get("head")) for course in courses], stayed[0])


def test_without_a_graph(opened: Opened) -> None:
    courses, stayed = _measured(opened(EAGER))
    assert ({"eager"}, [{}] * 3, {True}) == (
        {course.mode for course in courses},
        [course.copied for course in courses],
        set(stayed),
    )


def test_an_arena_that_serves_nothing(opened: Opened) -> None:
    courses, stayed = _measured(opened(SERVED["torch's own"]), returns=False)
    assert ([{}] * 3, {False}) == ([course.copied for course in courses], set(stayed))


def test_baselines(opened: Opened) -> None:
    referee = opened(SERVED["torch's own"])
    found, _ = referee.baselines(_bench(referee), CALIBRATION)
    named = [("eager", True, ""), ("compile", True, ""), ("library:cuBLAS", True, "")]
    assert [named] * 3 == [[(one.name, one.time is not None, one.note) for one in each] for each in found.values()]


@pytest.mark.skipif(not sandbox.level().sandboxed, reason="no sandbox here")
def test_no_kernel_sees_a_baseline(opened: Opened) -> None:
    """The process of a kernel, after the baselines have run, finds no file of the reference."""
    text = (
        "import pathlib\ndef f(x, w, y, sum):\n"
        "    found = [str(one) for top in ('/private', '/tmp') for one in pathlib.Path(top).rglob('*both*')]\n"
        "    assert not [one for one in found if one.endswith('both.py')], found\n"
        "    y.copy_(x @ w)\n    sum.copy_(x.sum(dim=1, keepdim=True))\n"
    )
    referee = opened(text)
    referee.baselines(_bench(referee)[:1], CALIBRATION)
    courses, _ = _measured(referee)
    assert {} == courses[0].copied
