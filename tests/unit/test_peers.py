"""benchmarks/peers: what evaluators answer becomes verdicts and a table, and no kernel holds the others up."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("evaluators", "express", "table", "evaluate", "compare")


@pytest.fixture(scope="module")
def peers() -> Iterator[SimpleNamespace]:
    """The scripts of benchmarks/peers as modules, which find each other by their bare names."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    sys.path.remove(str(ROOT / "benchmarks" / "peers"))
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture
def place(peers: SimpleNamespace, tmp_path: Path) -> Any:
    """An evaluator's place."""
    return peers.evaluators.Place(tmp_path, tmp_path / "own", budget_s=30, deadline_s=5)


def _result(**changed: Any) -> SimpleNamespace:
    plain = {"compiled": True, "correctness": True, "metadata": {}, "runtime": 0.0123}
    return SimpleNamespace(**{**plain, **changed})


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (_result(), (True, 12300.0, "")),
        (_result(metadata={"excessive_speedup": True}), (False, 0.0, "flagged: excessive speed-up")),
        (_result(correctness=False), (False, 0.0, "wrong")),
        (_result(correctness=False, metadata={"runtime_error": "x"}), (False, 0.0, "raised")),
        (_result(compiled=False), (False, 0.0, "does not compile")),
        (_result(runtime=-1.0), (False, 0.0, "no time")),
        (None, (False, 0.0, "no answer")),
    ],
)
def test_kernelbench_answers_in_milliseconds(peers: SimpleNamespace, result: Any, expected: object) -> None:
    found = peers.evaluate.kernelbench_verdict(result)
    assert expected == (found["passed"], found["ns"], found["said"])


@pytest.mark.parametrize(
    ("evaluation", "expected"),
    [
        ({"status": "PASSED", "performance": {"latency_ms": 0.5}}, (True, 5e5, "")),
        ({"status": "INCORRECT_NUMERICAL", "performance": None}, (False, 0.0, "incorrect numerical")),
    ],
)
def test_a_trace(peers: SimpleNamespace, evaluation: dict[str, Any], expected: object) -> None:
    name, found = peers.evaluators._traced({"solution": "one", "evaluation": evaluation})
    assert ("one", expected) == (name, (found.passed, found.ns, found.said))


def _kernel(**rungs: Any) -> dict[str, Any]:
    return {"name": "softmax/one", "rungs": [{"rung": rung, **values} for rung, values in rungs.items()]}


TIMED = {"outcome": "PASSED", "rows": [{"metrics": [{"tag": "time", "value": 8000.0}]}]}
WRONG = {"outcome": "FAILED", "finding": {"reason": "wrong"}}


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (_kernel(correctness={"outcome": "PASSED"}, benchmark=TIMED), (True, 8000.0, "")),
        (_kernel(correctness=WRONG, benchmark={"outcome": "SKIPPED"}), (False, 0.0, "correctness: wrong")),
        (_kernel(correctness={"outcome": "SKIPPED"}), (False, 0.0, "not executed")),
    ],
)
def test_a_kernel_of_a_report(peers: SimpleNamespace, kernel: dict[str, Any], expected: object) -> None:
    found = peers.evaluators._judged(kernel)
    assert expected == (found.passed, found.ns, found.said)


def test_an_interrupted_kernel_is_not_reached(peers: SimpleNamespace) -> None:
    late = {"outcome": "SKIPPED", "finding": {"reason": "interrupted"}}
    assert peers.evaluators._judged(_kernel(correctness={"outcome": "PASSED"}, benchmark=late)) is None


def test_a_hang_and_what_it_leaves_behind_end(peers: SimpleNamespace, place: Any) -> None:
    code = "import subprocess, sys; subprocess.run(['sleep', '300'])"
    assert peers.evaluators.ended([sys.executable, "-c", code], place, 1.0, "log") is None


def test_an_interrupted_evaluator_may_write_what_it_has(peers: SimpleNamespace, place: Any) -> None:
    code = (
        "import time\nprint('begun', flush=True)\ntry:\n    time.sleep(300)\n"
        "except KeyboardInterrupt:\n    open('there', 'w').write('some')\n"
    )
    peers.evaluators.ended([sys.executable, "-c", code], place, 2.0, "log", interrupt=True)
    assert "some" == (place.root / "there").read_text(encoding="utf-8")


@pytest.mark.parametrize(("code", "said"), [(None, "hang"), (-11, "crash (-11)")])
def test_no_answer(peers: SimpleNamespace, tmp_path: Path, code: int | None, said: str) -> None:
    assert said == peers.evaluators._found(tmp_path / "none.json", code).said


@pytest.fixture(scope="module")
def kernels(peers: SimpleNamespace) -> list[Any]:
    """Those that a comparison takes."""
    found: list[Any] = peers.express.kernels(ROOT / "kernels" / "softmax", ROOT / "tests" / "bad_kernels")
    return list(peers.express.chosen(found, 30))


def test_a_third_is_honest(kernels: list[Any]) -> None:
    assert (30, 10) == (len(kernels), sum(one.honest for one in kernels))


def test_kinds_are_mixed(kernels: list[Any]) -> None:
    assert [3, 3] == [sum(one.honest for one in kernels[begin : begin + 9]) for begin in (0, 9)]


def test_both_forms_hold_all(peers: SimpleNamespace, kernels: list[Any], tmp_path: Path) -> None:
    peers.express.kernelbench(kernels, tmp_path / "a")
    peers.express.dataset(kernels, tmp_path / "b")
    names = [path.stem for path in peers.evaluators.ordered(tmp_path / "a")]
    solutions = sorted(path.stem for path in (tmp_path / "b" / "solutions").rglob("*.json"))
    assert ([one.name for one in kernels], sorted(names)) == (names, solutions)


def test_kernelci_reads_both(peers: SimpleNamespace, kernels: list[Any], tmp_path: Path) -> None:
    from kernelci import catalog, config

    peers.express.kernelbench(kernels, tmp_path)
    found = catalog.scan(tmp_path, config.load(tmp_path, {}, {}))
    assert (30, []) == (len(found.kernels), [one.error for one in found.kernels if one.error])


def test_the_table(peers: SimpleNamespace) -> None:
    verdict, kernel = peers.evaluators.Verdict, peers.express.Kernel
    kernels = [kernel("right", "", "f", True, True), kernel("wrong", "", "f", True, False)]
    own = {"right": verdict(True, 8123.0), "wrong": verdict(False, said="correctness: wrong")}
    found = [
        peers.table.Result("kernelci", own, 4.0),
        peers.table.Result("KernelBench", {"right": verdict(True, 9e3)}, 6.0),
        peers.table.Result("flashinfer-bench", {}, 0.0, "flashinfer_bench is not installed"),
    ]
    expected = """\
| evaluator | kernels | s | s a kernel | honest passed | others let through |
| :-- | --: | --: | --: | --: | --: |
| kernelci | 2 of 2 | 4.0 | 2.00 | 1 of 1 | 0 of 1 |
| KernelBench | 1 of 2 | 6.0 | 6.00 | 1 of 1 | 0 of 0 |
| flashinfer-bench | flashinfer_bench is not installed |  |  |  |  |

kernelci's throughput is 3.0 times that of KernelBench.

| kernel | kernelci | KernelBench |
| :-- | :-- | :-- |
| right | passed, 8.12 µs | passed, 9.00 µs |
| wrong (bad) | refused: correctness: wrong | not reached |
"""
    assert expected == peers.table.table(kernels, found)


def test_a_section_takes_its_own_place(peers: SimpleNamespace) -> None:
    page = peers.compare.sections.spliced("# Page\n", "peers", "one")
    again = peers.compare.sections.spliced(f"{page}\nmore\n", "peers", "two")
    assert "# Page\n\n<!-- peers -->\ntwo\n<!-- end of peers -->\n\nmore\n" == again


def test_an_unknown_evaluator_is_refused(peers: SimpleNamespace) -> None:
    with pytest.raises(Exception, match="known are kernelci, KernelBench"):
        peers.compare._names("kernelci,other")
