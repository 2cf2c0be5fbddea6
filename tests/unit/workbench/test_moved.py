"""Inputs off by an ulp: what they show of an answer, and what they must not excuse."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelci.reference import Reference, load
from kernelci.workbench.drawn import make
from kernelci.workbench.judging import judge
from kernelci.workbench.moved import moved

EPS = 2.0**-23
LAYER_NORM = '''
"""Layer norm."""
import torch
from kernelci.reference import check, tensor

def cases():
    yield check(rows=8, cols=503, dtype="float32")

def inputs(case, draw):
    size = (case.cols,)
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "w": draw.normal(*size, dtype=case.dtype)}

def outputs(case):
    return {"y": tensor(case.rows, case.cols, dtype=case.dtype)}

def reference(x, w):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], w, w, 1e-5)
'''
ROUNDS = LAYER_NORM.replace(
    "torch.nn.functional.layer_norm(x, x.shape[-1:], w, w, 1e-5)", "(x / (1.5 * w.abs().amax())).round() + 0 * w"
)


@given(st.lists(st.integers(0, 7), max_size=3), st.sampled_from([torch.float32, torch.float64]))
def test_no_element_moves_by_more_than_two_eps_or_away_from_zero(shape: list[int], dtype: torch.dtype) -> None:
    values = torch.randn(shape, dtype=dtype)
    after = moved({"x": values})["x"]
    eps = torch.finfo(dtype).eps
    inside = (after.abs() <= values.abs()) & ((values - after).abs() <= 2.5 * eps * values.abs())
    assert (values.shape, True) == (after.shape, bool(inside.all()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_element_is_moved_by_its_own_share_and_its_stretch(dtype: torch.dtype) -> None:
    steps = (1 - moved({"x": torch.ones(64, 256, dtype=dtype)})["x"]) / torch.finfo(dtype).eps
    tally = [float((steps.round() == count).float().mean()) for count in (0, 1, 2)]
    assert [0.25, 0.5, 0.25] == pytest.approx(tally, abs=0.05)


def test_stretches_of_a_row_are_moved_as_one() -> None:
    steps = ((1 - moved({"x": torch.ones(64, 1600)})["x"]) / EPS).view(64, 16, 100).mean(dim=2)
    assert 0.8 < float(steps.std() / 0.5) < 1.2  # a coin's deviation, of which own shares alone would leave a tenth


def test_parts_of_a_large_tensor_are_moved_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(7, 300).T
    whole = moved({"x": values})["x"]
    monkeypatch.setattr("kernelci.workbench.moved.AT_ONCE", 64)
    assert torch.equal(whole, moved({"x": values})["x"])


def test_neighbours_are_moved_apart() -> None:
    pairs = moved({"x": torch.ones(64, 2)})["x"]
    assert 0.3 < float((pairs[:, 0] != pairs[:, 1]).float().mean()) < 0.9


@pytest.mark.parametrize("value", [3, 0.5, torch.arange(4), torch.ones(3, dtype=torch.bool), torch.ones(2).half()])
def test_all_else_is_left(value: object) -> None:
    assert moved({"k": value})["k"] is value


def test_zeros_stay_zeros() -> None:
    zeros = torch.tensor([0.0, -0.0])
    assert torch.equal(zeros.view(torch.int32), moved({"x": zeros})["x"].view(torch.int32))


def _reference(folder: Path, text: str) -> Reference:
    path = folder / "op.py"
    path.write_text(text)
    return load(path)


def _by_lanes(values: torch.Tensor) -> torch.Tensor:
    """The mean of each row, by 32 lanes that add one after another, and then in a tree."""
    lanes = torch.nn.functional.pad(values, (0, -values.shape[-1] % 32)).view(len(values), -1, 32)
    total = torch.zeros(len(values), 32)
    for step in range(lanes.shape[1]):
        total = total + lanes[:, step]
    while total.shape[1] > 1:
        total = total[:, ::2] + total[:, 1::2]
    return total / values.shape[-1]


def _layer_norm(x: torch.Tensor, w: torch.Tensor, mean: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    centred = x - mean(x)
    return centred * torch.rsqrt(mean(centred**2) + 1e-5) * w + w


def _worst(reference: Reference, draw: str, mean: Callable[[torch.Tensor], torch.Tensor], seeds: int = 5) -> float:
    case = next(iter(reference.cases()))
    drawn = [make(reference, case, draw, str(seed), "cpu") for seed in range(seeds)]
    found = [judge(reference, one, {"y": _layer_norm(**one.inputs, mean=mean)})[0] for one in drawn]
    return max(max(one.worst_ratio, one.rmse_ratio) for one in found)


@pytest.mark.parametrize("draw", ["constant-rows:0", "constant:0", "normal:0", "offset:0", "cancelling:0"])
def test_another_order_of_summation_passes_where_the_variance_is_nothing(tmp_path: Path, draw: str) -> None:
    assert _worst(_reference(tmp_path, LAYER_NORM), draw, _by_lanes) <= 1.0


def test_a_mean_in_half_precision_is_still_refused(tmp_path: Path) -> None:
    careless = _worst(_reference(tmp_path, LAYER_NORM), "normal:0", lambda x: x.mean(-1, keepdim=True).half().float())
    assert careless > 4.0


def test_an_answer_that_jumps_excuses_no_jump(tmp_path: Path) -> None:
    reference = _reference(tmp_path, ROUNDS)
    drawn = make(reference, next(iter(reference.cases())), "ties:0", "s", "cpu")
    found = judge(reference, drawn, {"y": drawn.truth.honest["y"] + 1})
    assert (False, True) == (found[0].passed, judge(reference, drawn, drawn.truth.honest)[0].passed)
