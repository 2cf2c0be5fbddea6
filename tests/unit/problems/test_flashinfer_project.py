"""Ten definitions with solutions in flashinfer-bench's form, in the folders of its datasets."""

import json
import shutil
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.model import KernelReport, Report

PROJECT = Path(__file__).parents[2] / "problems" / "flashinfer_bench"
NAMES = sorted(path.stem for path in (PROJECT / "definitions").rglob("*.json"))


def _climb(root: Path) -> Report:
    options = config.load(root, {}, {"cache": str(root / "cache"), "targets": ("sm_90a",)})
    found = catalog.scan(root, options)
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("correctness",)))


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """The climbs of all solutions by name."""
    root = tmp_path_factory.mktemp("flashinfer") / "project"
    shutil.copytree(PROJECT, root)
    return {kernel.name: kernel for kernel in _climb(root).kernels}


def test_there_are_ten() -> None:
    assert 10 == len(NAMES)


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


DOUBLE = {
    "name": "double",
    "axes": {"n": {"type": "var"}},
    "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
    "reference": "def run(x):\n    return 2 * x",
}
WORKLOAD = {"uuid": "one", "axes": {"n": 77}, "inputs": {"x": {"type": "random"}}}
BY_TVM_FFI = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include "factor.h"

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = FACTOR * from[i];
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""


@pytest.mark.slow
def test_solutions_that_tvm_ffi_builds(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "kernelci.toml", tmp_path)
    written = {"definitions/double.json": DOUBLE, "workloads/double.jsonl": WORKLOAD}
    for name, factor in (("right", 2), ("wrong", 3)):
        sources = {"src/main.cpp": BY_TVM_FFI, "src/factor.h": f"#define FACTOR {factor}"}
        written[f"solutions/double/{name}.json"] = {
            "name": name,
            "definition": "double",
            "spec": {"language": "cpp", "entry_point": "src/main.cpp::run"},
            "sources": [{"path": path, "content": content} for path, content in sources.items()],
        }
    for path, values in written.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(values), encoding="utf-8")
    found = {kernel.name: kernel.stopped_at for kernel in _climb(tmp_path).kernels}
    wrong = found.pop("double/wrong")
    assert wrong is not None
    assert ({"double/right": None}, "correctness") == (found, wrong.rung)
