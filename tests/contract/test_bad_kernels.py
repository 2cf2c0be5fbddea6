"""The corpus of bad kernels: each is stopped where its card says, with a message that names the cause, and alone.

A new bad kernel is a new file in tests/bad_kernels with its `[tool.kernelci.expect]` table, and a line in CAUSES.
"""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder, results
from kernelci.card import Expectation, parse
from kernelci.model import KernelReport, Report
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "bad_kernels"
OPTIONS = {
    "interpreter_elements": 2**14,
    "interpreter_timeout_s": 5.0,
    "call_timeout_s": 20.0,
    "memory_bytes": 2 * 2**30,
}
# What the message must say, so that the reader knows the cause.
CAUSES = {
    "compile_error": "total is not defined",
    "does_not_parse": "(line ",
    "eats_memory": "allocate memory",
    "endless_native_call": "no answer within",
    "exits_with_zero": "exit code 0",
    "illegal_access": "illegal memory access",
    "last_k_block_skipped": "times its bound",
    "nan_in_one_element": "1 of 4096 elements",
    "never_returns": "no answer within",
    "no_maximum_subtracted": "output y, draw ",
    "one_element_unwritten": "never written; first at",
    "other_parameters": "softmax(x, y)",
    "raises": "127 columns are no multiple of 16",
    "returns_nothing": "returned no torch.Tensor for y",
    "segfaults": "SIGSEGV",
    "store_past_the_end": "4 bytes after y were overwritten",
    "sys_exit": "exit code 0",
    "tail_off_by_one": "times its bound",
    "too_much_shared_memory": "bytes of shared memory needed",
    "unknown_reference": "'sofmax'; known are matmul, rmsnorm, softmax",
    "writes_an_input": "input x",
    "wrong_dtype": "dtype float32, and float16 is declared",
    "wrong_entry": "'soft_max'; the file defines",
    "wrong_shape": "(4096, 1), and (1, 4096) is declared",
}


def _expected(stem: str) -> Expectation:
    expect = parse((CORPUS / f"{stem}.py").read_text(encoding="utf-8")).expect
    assert expect is not None
    return expect


STEMS = sorted(path.stem for path in CORPUS.glob("*.py"))
BAD = [stem for stem in STEMS if _expected(stem).outcome != Outcome.PASSED]
HONEST = [stem for stem in STEMS if _expected(stem).outcome == Outcome.PASSED]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One climb with the whole corpus; several test processes share it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "corpus"
    root.mkdir(exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return results.read(root / "out") if (root / "out" / "results.json").exists() else _climb(root)


def _climb(root: Path) -> Report:
    """With every kernel of the corpus, the honest ones last."""
    shutil.copytree(ROOT / "references", root / "references", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CORPUS, root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    options = config.load(root, {}, {**OPTIONS, "cache": str(root / "cache")})
    found = catalog.scan(root, options)
    order = sorted(found.kernels, key=lambda kernel: kernel.path.stem in HONEST)
    return ladder.climb(found, options, ladder.Plan(tuple(order), root / "out"))


def _of(report: Report, stem: str) -> KernelReport:
    return next(kernel for kernel in report.kernels if Path(kernel.path).stem == stem)


def _skip_without_gpu(report: Report, stem: str) -> None:
    if _expected(stem).gpu and not report.environment.gpu:
        pytest.skip("only a GPU shows it")


@pytest.mark.parametrize("stem", BAD)
def test_bad_kernel_is_stopped_where_its_card_says(report: Report, stem: str) -> None:
    _skip_without_gpu(report, stem)
    expect, stopped = _expected(stem), _of(report, stem).stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert (expect.rung, expect.outcome, expect.reason) == (stopped.rung, stopped.outcome, stopped.finding.reason)


@pytest.mark.parametrize("stem", BAD)
def test_message_names_the_cause(report: Report, stem: str) -> None:
    _skip_without_gpu(report, stem)
    stopped = _of(report, stem).stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert CAUSES[stem] in stopped.finding.message


@pytest.mark.parametrize("stem", HONEST)
def test_honest_kernel_after_all_bad_ones_passes(report: Report, stem: str) -> None:
    kernel, expect = _of(report, stem), _expected(stem)
    last = kernel.rung(expect.rung)
    assert last is not None
    assert (None, Outcome.PASSED) == (kernel.stopped_at, last.outcome)


def test_every_bad_kernel_has_a_cause() -> None:
    assert set(BAD) == set(CAUSES)


def test_no_bad_kernel_breaks_the_runner(report: Report) -> None:
    assert Outcome.FAILED == report.outcome


def test_a_process_that_is_gone_leaves_its_last_words(report: Report) -> None:
    stopped = _of(report, "sys_exit").stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert "SystemExit: 0" in stopped.finding.log


def test_a_compile_error_names_file_and_line(report: Report) -> None:
    stopped = _of(report, "compile_error").stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    line = (CORPUS / "compile_error.py").read_text(encoding="utf-8").splitlines()[stopped.finding.line - 1]
    assert ("kernels/compile_error.py", True) == (stopped.finding.file, "total" in line)


def test_rungs_above_the_one_that_stopped_are_skipped(report: Report) -> None:
    kernel = _of(report, "raises")
    assert ["FAILED", "SKIPPED"] == [rung.outcome for rung in kernel.rungs if rung.rung in ("run", "correctness")]
