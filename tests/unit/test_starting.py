"""`new`: its kernels compile for every target as they are, and are found wrong; it overwrites nothing."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest

from kernelci import starting
from kernelci.climbing import climb
from kernelci.errors import ConfigError
from kernelci.model import KernelReport, Report
from kernelci.reasons import Outcome
from kernelci.results import read

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = sorted(path.stem for path in (ROOT / "references").glob("[!_]*.py"))
# One reference for every target, the others for one: what differs between references is the signature.
TARGETS = {"matmul": ["sm_90a"], "rmsnorm": ["sm_90a"], "softmax": ["sm_100a", "sm_80", "sm_90a"]}
# Appended to each reference: three dtypes would take three times as long and show nothing more.
ONE_DTYPE = """

_all_cases = cases


def cases():
    yield from (case for case in _all_cases() if dict(case.values)["dtype"] == "bfloat16")
"""


def _project(root: Path) -> Path:
    shutil.copytree(ROOT / "references", root / "references", ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One climb with a new kernel for each backend and reference; several test processes share it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "started"
    root.mkdir(exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return read(root / "out") if (root / "out" / "results.json").exists() else _climb(_project(root))


def _climb(root: Path) -> Report:
    for reference in REFERENCES:
        with (root / "references" / f"{reference}.py").open("a", encoding="utf-8") as file:
            file.write(ONE_DTYPE)
        for backend in starting.starters():
            path = root / starting.create(root, f"{reference}/{backend}", backend)[0]
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("# ///\n", f"# targets = {json.dumps(TARGETS[reference])}\n# ///\n"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCI_CACHE", str(root / "cache"))
        return climb(root, ("compile", "correctness"), out=root / "out")[0]


def _of(report: Report, name: str) -> KernelReport:
    return next(kernel for kernel in report.kernels if kernel.name == name)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("backend", starting.starters())
def test_a_new_kernel_compiles(report: Report, reference: str, backend: str) -> None:
    compiled = _of(report, f"{reference}/{backend}").rung("compile")

    assert compiled is not None
    assert (Outcome.PASSED, TARGETS[reference]) == (compiled.outcome, sorted({row.target for row in compiled.rows}))


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_new_kernel_runs_and_is_wrong(report: Report, reference: str) -> None:
    stopped = _of(report, f"{reference}/triton").stopped_at

    assert stopped is not None
    assert stopped.finding is not None
    assert ("correctness", "wrong") == (stopped.rung, stopped.finding.reason)


@pytest.mark.parametrize("backend", starting.starters())
def test_the_paths_of_what_was_written_are_given(tmp_path: Path, backend: str) -> None:
    written = starting.create(_project(tmp_path), "matmul/mine", backend)

    suffixes = [".py", ".cu"] if backend == "cuda" else [".py"]
    assert [Path("kernels", "matmul", f"mine{suffix}") for suffix in suffixes] == written


@pytest.mark.parametrize("there", ["mine.py", "mine.cu"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    path = _project(tmp_path) / "kernels" / "softmax" / there
    path.parent.mkdir(parents=True)
    path.write_text("precious")

    with pytest.raises(ConfigError, match=rf"kernels/softmax/{there} is there already"):
        starting.create(tmp_path, "softmax/mine", "cuda")
    assert ([path], "precious") == (list(path.parent.iterdir()), path.read_text())


@pytest.mark.parametrize(
    ("name", "backend", "message", "hint"),
    [
        ("softmax/mine", "opencl", "no backend 'opencl'", "known: cuda, cutedsl, tilelang, triton"),
        ("softmax", "triton", "'softmax' is not REFERENCE/NAME", "for example softmax/mine"),
        ("softmax/../mine", "triton", "'softmax/../mine' is not REFERENCE/NAME", "for example softmax/mine"),
        ("sofmax/mine", "triton", "no reference 'sofmax'", "known: matmul, rmsnorm, softmax"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, name: str, backend: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        starting.create(_project(tmp_path), name, backend)

    assert (message, hint) == (refused.value.message, refused.value.hint)


def test_a_project_without_references_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        starting.create(tmp_path, "softmax/mine", "triton")

    assert "known: none; write references/softmax.py first" == refused.value.hint


def test_a_broken_reference_is_named(tmp_path: Path) -> None:
    broken = _project(tmp_path) / "references" / "softmax.py"
    text = broken.read_text(encoding="utf-8")
    broken.write_text(text + "\n\ndef cases():\n    raise RuntimeError('out of shapes')\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="out of shapes") as refused:
        starting.create(tmp_path, "softmax/mine", "triton")
    assert "reference" == refused.value.code
