"""The oracle: float64 for the truth, float32 accumulation for the honest implementation."""

from pathlib import Path

import pytest
import torch

from kernelci.reference import Reference, ReferenceFailed, TensorSpec, load
from kernelci.workbench.oracle import Truth, ask, ask_stacked, widened

TEXT = """
import torch
seen = []
def cases(): return ()
def inputs(case, draw): return {}
def outputs(case): return {}
def reference(x, k):
    seen.append((x.dtype, k))
    return {body}
"""


def _reference(folder: Path, body: str = "x * k") -> Reference:
    path = folder / "scale.py"
    path.write_text(TEXT.replace("{body}", body), encoding="utf-8")
    return load(path)


@pytest.mark.parametrize(
    ("dtype", "honest"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_precision_of_both(tmp_path: Path, dtype: torch.dtype, honest: torch.dtype) -> None:
    reference = _reference(tmp_path)
    ask(reference, {"x": torch.ones(3, dtype=dtype), "k": 2}, {"y": TensorSpec((3,), "float16")})
    assert [(torch.float64, 2), (honest, 2), (honest, 2)] == reference._module.seen


def test_dtypes_of_the_results(tmp_path: Path) -> None:
    truth = ask(_reference(tmp_path), {"x": torch.ones(3), "k": 2}, {"y": TensorSpec((3,), "bfloat16")})
    assert (torch.float64, torch.bfloat16) == (truth.oracle["y"].dtype, truth.honest["y"].dtype)


def test_integers_stay_integers(tmp_path: Path) -> None:
    truth = ask(
        _reference(tmp_path, "x.argmax().reshape(1)"),
        {"x": torch.arange(3.0), "k": 0},
        {"i": TensorSpec((1,), "int64")},
    )
    assert (torch.int64, 2) == (truth.oracle["i"].dtype, int(truth.oracle["i"]))


def test_oracle_keeps_digits_that_float32_loses(tmp_path: Path) -> None:
    x = torch.tensor([1.0, 2.0**-30])
    truth = ask(_reference(tmp_path, "x.sum().reshape(1)"), {"x": x, "k": 0}, {"y": TensorSpec((1,), "float32")})
    assert (1 + 2.0**-30, 1.0) == (float(truth.oracle["y"]), float(truth.honest["y"]))


def test_a_reference_can_not_harm_the_inputs(tmp_path: Path) -> None:
    x = torch.ones(3, dtype=torch.float64)
    ask(_reference(tmp_path, "x.mul_(k)"), {"x": x, "k": 5}, {"y": TensorSpec((3,), "float64")})
    assert [1, 1, 1] == x.tolist()


def test_widened_leaves_integers_and_scalars() -> None:
    found = widened({"i": torch.tensor([3]), "k": 0.5, "x": torch.ones(1)}, torch.float64)
    assert (torch.int64, 0.5, torch.float64) == (found["i"].dtype, found["k"], found["x"].dtype)


@pytest.mark.parametrize("body", ["x[:2]", "x.sum()", "x.reshape(3, 1)"])
def test_another_shape_is_the_references_fault(tmp_path: Path, body: str) -> None:
    with pytest.raises(ReferenceFailed, match=r"gives y of shape .* declared is \(3,\)"):
        ask(_reference(tmp_path, body), {"x": torch.ones(3), "k": 2}, {"y": TensorSpec((3,), "float32")})


SOFTMAX = "torch.softmax(x * k, -1)"
REFUSED = {
    "a value": "x * k if float(x.sum()) > 0 else x + k",
    "a shape that depends on values": "x[x > 0].sum() + x * k",
    "NumPy": "torch.from_numpy(x.numpy() * k)",
}


def _stacked(folder: Path, body: str) -> tuple[Truth, list[Truth]]:
    """The truth of five calls at once, and that of each."""
    reference, x = _reference(folder, body), torch.randn(5, 4, 6, generator=torch.Generator().manual_seed(1))
    outputs = {"y": TensorSpec((4, 6), "bfloat16")}
    each = [ask(reference, {"x": one, "k": 2.0}, outputs) for one in x]
    return ask_stacked(reference, {"x": x, "k": 2.0}, outputs, 5), each


@pytest.mark.parametrize("body", [SOFTMAX, "x.cumsum(-1) * k", *REFUSED.values()])
def test_stacked_is_what_each_call_gives(tmp_path: Path, body: str) -> None:
    found, each = _stacked(tmp_path, body)
    oracle, honest = (torch.stack([getattr(one, side)["y"] for one in each]) for side in ("oracle", "honest"))
    assert (True, True) == (
        torch.allclose(oracle, found.oracle["y"], rtol=1e-12),
        torch.equal(honest, found.honest["y"]),
    )


def test_stacked_asks_once(tmp_path: Path) -> None:
    reference = _reference(tmp_path, SOFTMAX)
    ask_stacked(reference, {"x": torch.ones(5, 4, 6), "k": 2.0}, {"y": TensorSpec((4, 6), "float32")}, 5)
    honest_and_moved = [(torch.float32, 2.0)] * 2
    assert [(torch.float64, 2.0), *honest_and_moved] == reference._module.seen


def test_stacked_without_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "full.py"
    path.write_text(TEXT.replace("seen.append((x.dtype, k))", "").replace("{body}", "torch.full((3,), float(x * k))"))
    found = ask_stacked(load(path), {"x": 2, "k": 3}, {"y": TensorSpec((3,), "float32")}, 2)
    assert [[6.0] * 3] * 2 == found.oracle["y"].tolist()


def test_stacked_raises_what_each_call_raises(tmp_path: Path) -> None:
    with pytest.raises(ReferenceFailed, match="declared is"):
        ask_stacked(
            _reference(tmp_path, "x[:2]"), {"x": torch.ones(5, 3), "k": 1}, {"y": TensorSpec((3,), "float32")}, 5
        )


def test_stacked_integers_stay_integers(tmp_path: Path) -> None:
    x = torch.arange(10).reshape(5, 2)
    found = ask_stacked(_reference(tmp_path), {"x": x, "k": 3}, {"y": TensorSpec((2,), "int64")}, 5)
    assert (torch.int64, (3 * x).tolist()) == (found.honest["y"].dtype, found.oracle["y"].tolist())
