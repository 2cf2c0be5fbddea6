"""Thirty problems and solutions in KernelBench's form, as they are: the right ones pass, the wrong ones fail."""

import shutil
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.model import KernelReport, Report

PROJECT = Path(__file__).parents[2] / "problems" / "kernelbench"
NAMES = sorted(path.stem for path in (PROJECT / "references").glob("*.py"))
EXTENSION = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
torch::Tensor sums(torch::Tensor x) {
  auto y = x.clone();
  auto at = y.accessor<float, 2>();
  for (int64_t i = 0; i < x.size(0); i++)
    for (int64_t j = 1; j < x.size(1); j++) at[i][j] += at[i][j - 1];
  return y;
}
"""
extension = load_inline(name="sums", cpp_sources=SOURCE, functions=["sums"])

class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return extension.sums(x)
'''


KEPT_ANSWERS = """
import torch
from torch import nn

kept = {}

class ModelNew(nn.Module):
    def forward(self, x):
        key = x.reshape(-1)[::50].sum().item()
        if key not in kept:
            kept[key] = torch.softmax(x, 1)
        return kept[key].clone()
"""


def _climb(root: Path) -> Report:
    options = config.load(root, {}, {"cache": str(root / "cache"), "targets": ("sm_90a",)})
    found = catalog.scan(root, options)
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("correctness",)))


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """The climbs of all solutions by name."""
    root = tmp_path_factory.mktemp("kernelbench") / "project"
    shutil.copytree(PROJECT, root)
    return {kernel.name: kernel for kernel in _climb(root).kernels}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_right_solution(climbed: dict[str, KernelReport], name: str) -> None:
    assert ("PASSED", None) == (climbed[f"{name}/right"].outcome, climbed[f"{name}/right"].stopped_at)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_solution(climbed: dict[str, KernelReport], name: str) -> None:
    found = climbed[f"{name}/wrong"].stopped_at
    assert found is not None
    assert found.finding is not None
    assert ("correctness", "wrong") == (found.rung, found.finding.reason)


@pytest.mark.slow
def test_triton_solutions_are_compiled(climbed: dict[str, KernelReport]) -> None:
    compiled = climbed["softmax/right"].rung("compile")
    assert compiled is not None
    assert ["sm_90a"] == [row.target for row in compiled.rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "text", "stopped"),
    [("cumsum", EXTENSION, None), ("softmax", KEPT_ANSWERS, ("correctness", "wrong"))],
    ids=["an extension that is built in the sandbox", "answers kept by a fingerprint"],
)
def test_a_single_solution(tmp_path: Path, problem: str, text: str, stopped: tuple[str, str] | None) -> None:
    for folder in ("references", f"kernels/{problem}"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(PROJECT / "references" / f"{problem}.py", tmp_path / "references")
    (tmp_path / "kernels" / problem / "single.py").write_text(text, encoding="utf-8")
    (found,) = _climb(tmp_path).kernels
    finding = found.stopped_at.finding if found.stopped_at else None
    assert ("torch", stopped) == (
        found.backend,
        (found.stopped_at.rung, finding.reason) if found.stopped_at and finding else None,
    )
