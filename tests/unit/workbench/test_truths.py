"""Draws shared by the kernels of a run: who asks for one waits for that one alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelci.reference import Reference, ReferenceFailed, load
from kernelci.workbench import truths
from kernelci.workbench.truths import Truths

PATIENCE_S = 30.0
TEXT = """
import threading
from kernelci.reference import check, like
begun, over, calls = threading.Event(), threading.Event(), []
def cases():
    yield check(n=4, dtype="float32")
    yield check(n=8, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    calls.append(len(x))
    if len(x) == 8:
        begun.set()
        assert over.wait(30)
    return x
"""


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    """A reference of which one case lasts until it is told to go on."""
    path = tmp_path / "waits.py"
    path.write_text(TEXT)
    return load(path)


def _flag(reference: Reference, name: str) -> threading.Event:
    found = getattr(reference._module, name)
    assert isinstance(found, threading.Event)
    return found


def test_one_draw_does_not_wait_for_another(reference: Reference) -> None:
    known, (small, large) = Truths("cpu", "ab"), reference.cases()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(known.get, reference, large, "normal:0")
        assert _flag(reference, "begun").wait(PATIENCE_S)
        assert 4 == known.get(reference, small, "normal:0").inputs["x"].numel()
        assert not waiting.done()
        _flag(reference, "over").set()
        assert 8 == waiting.result(PATIENCE_S).inputs["x"].numel()


def test_a_draw_is_made_once_for_all_lanes(reference: Reference) -> None:
    known, large = Truths("cpu", "ab"), reference.cases()[1]
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(known.get, reference, large, "normal:0") for _ in range(3)]
        assert _flag(reference, "begun").wait(PATIENCE_S)
        _flag(reference, "over").set()
        first, *others = [future.result(PATIENCE_S) for future in asked]
    assert [True, True] == [other is first for other in others]


def test_what_was_asked_for_longest_ago_goes_first(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    known, small = Truths("cpu", "ab"), reference.cases()[0]
    first = known.get(reference, small, "normal:0")
    monkeypatch.setitem(truths.KEPT_BYTES, "cpu", 2 * first.bytes)
    second = known.get(reference, small, "normal:1")
    assert known.get(reference, small, "normal:0") is first
    known.get(reference, small, "normal:2")  # one too many
    assert (True, False) == (
        known.get(reference, small, "normal:0") is first,
        known.get(reference, small, "normal:1") is second,
    )


def test_what_was_dropped_is_drawn_again_and_equal(reference: Reference) -> None:
    known, small = Truths("cpu", "ab"), reference.cases()[0]
    first = known.get(reference, small, "normal:0")
    known.drop()
    again = known.get(reference, small, "normal:0")
    assert (False, True) == (again is first, bool((again.inputs["x"] == first.inputs["x"]).all()))


def test_a_reference_that_fails_fails_for_each_who_asks(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    known, small = Truths("cpu", "ab"), reference.cases()[0]
    monkeypatch.setattr(reference._module, "reference", lambda x: 1 // 0)
    for _ in range(2):
        with pytest.raises(ReferenceFailed, match="ZeroDivisionError"):
            known.get(reference, small, "normal:0")
