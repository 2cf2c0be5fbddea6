"""What leaves its judging beside a base: cases, targets, whole kernels; at the end of a climb, and in every report."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kernelci import basing, catalog, config, ladder, losing, results
from kernelci.model import Finding, LostRow, Report, RungResult
from kernelci.reasons import Outcome
from kernelci.reporters import Context, console, github, html, json_, markdown
from kernelci.workbench.device import Device

REFERENCE = """
from kernelci.reference import check, like
def cases(): yield from (check(n=n, dtype="float32") for n in (5, 70))
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
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, 2 * tl.load(x + place, mask=place < n, other=0.0), mask=place < n)


def double(x, y):
    doubled[(1,)](x, y, x.numel(), 128)
"""
Climb = Callable[..., Report]


@pytest.fixture
def climb(tmp_path: Path) -> Climb:
    """Climb to a rung beside a base: what head and base have otherwise than the project above, by the file."""

    def project(side: str, reference: str = REFERENCE, kernel: str = KERNEL, options: str = "") -> Path:
        files = {"references/double.py": reference, "kernels/double/plain.py": kernel, "kernelci.toml": options}
        for place, text in files.items():
            (tmp_path / side / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / side / place).write_text(text, encoding="utf-8")
        return tmp_path / side

    def run(rung: str, head: dict[str, str], base: dict[str, str] | None = None, case: str = "") -> Report:
        root, other = project("head", **head), project("base", **(base or {}))
        options = config.load(root, {}, {"cache": str(tmp_path / "cache")})
        found = catalog.scan(root, options)
        plan = ladder.Plan(found.kernels, root / "out", (rung,), case=case, base=basing.in_folder(other))
        return ladder.climb(found, options, plan)

    return run


def _lost(report: Report) -> tuple[LostRow, ...]:
    return report.kernels[0].lost


def test_nothing_is_lost_where_nothing_differs(climb: Climb) -> None:
    assert () == _lost(climb("run", {}))


FEWER = REFERENCE.replace("(5, 70)", "(5,)")


def test_a_case_that_is_gone(climb: Climb) -> None:
    assert (LostRow("70-fp32", "removed"),) == _lost(climb("precheck", {"reference": FEWER}))


def test_a_case_that_is_new_is_not_lost(climb: Climb) -> None:
    assert () == _lost(climb("precheck", {}, {"reference": FEWER}))


def test_where_one_case_is_asked_for_no_other_is_lost(climb: Climb) -> None:
    assert () == _lost(climb("run", {"reference": FEWER}, case="5-fp32"))


CAP = "interpreter_elements = 100\n"


def test_a_case_that_is_above_the_cap_now(climb: Climb) -> None:
    (found,) = _lost(climb("run", {"options": CAP}))
    assert ("70-fp32", "skipped", True) == (found.case, found.how, "the cap is 100" in found.why)


def test_a_case_that_was_above_the_cap_before_is_not_lost(climb: Climb) -> None:
    assert () == _lost(climb("run", {"options": CAP, "reference": REFERENCE + "\n"}, {"options": CAP}))


def test_a_card_that_asks_for_what_nobody_has_takes_its_kernel_out(climb: Climb) -> None:
    (found,) = _lost(climb("run", {"kernel": KERNEL.replace("[]", '["kernelci-none>=9"]')}))
    assert ("every case", "skipped", True) == (found.case, found.how, "kernelci-none" in found.why)


def test_what_base_asked_for_in_vain_is_not_lost(climb: Climb) -> None:
    kernel = KERNEL.replace("[]", '["kernelci-none>=9"]')
    assert () == _lost(climb("run", {"kernel": kernel}, {"kernel": kernel}))


@pytest.mark.parametrize(("backend", "lost"), [("triton", True), ("cuda", False)])
def test_a_backend_without_an_interpreter_takes_its_kernel_out_here(backend: str, lost: bool) -> None:
    referee: Any = SimpleNamespace(
        base=SimpleNamespace(card=SimpleNamespace(backend=backend)), device=Device("cpu"), card=None
    )
    finding = Finding("no-interpreter", "no GPU on this machine, and cuda has no interpreter")
    found = losing._all_of_it(referee, {"run": RungResult("run", Outcome.SKIPPED, finding=finding)})
    assert ((LostRow("every case", "skipped", "", finding.message),) if lost else ()) == found


NEEDS_DATA = KERNEL.replace("x.numel(), 128", "int(x.sum()) and x.numel(), 128")


def test_a_target_that_base_compiles_for_and_head_no_longer_does(climb: Climb) -> None:
    (found,) = _lost(climb("compile", {"kernel": NEEDS_DATA}))
    assert ("every case", "skipped", "sm_80") == (found.case, found.how, found.target)


def test_a_target_that_neither_compiles_for_is_not_lost(climb: Climb) -> None:
    assert () == _lost(climb("compile", {"kernel": NEEDS_DATA}, {"kernel": NEEDS_DATA}))


def test_a_base_whose_reference_is_broken_measured_nothing(climb: Climb) -> None:
    assert () == _lost(climb("precheck", {}, {"reference": "def cases(): raise ValueError('no')\n" + REFERENCE}))


def test_a_dropped_target_a_removed_case_and_a_skipped_one_show_everywhere(climb: Climb, reports: ModuleType) -> None:
    two = KERNEL.replace('["sm_80"]', '["sm_80", "sm_90a"]')
    more = REFERENCE.replace("(5, 70)", "(5, 70, 80)")
    report = climb("run", {"options": CAP}, {"kernel": two, "reference": more})
    said = {"every case": "removed", "70-fp32": "skipped", "80-fp32": "removed"}
    assert said == {row.case: row.how for row in _lost(report)}
    assert report == results.decode(json_.render(report, Context()))
    for render in (markdown.render, console.render, github.render, html.render):
        page = render(report, Context())
        text = page if isinstance(page, str) else page.decode()
        assert {True} == {case in text for case in said}, render.__module__
