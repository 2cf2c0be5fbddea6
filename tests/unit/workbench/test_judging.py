"""The verdict on many calls at once is that on each alone."""

from pathlib import Path

import msgspec
import pytest
import torch

from kernelci.reference import Reference, ReferenceFailed, check, load
from kernelci.workbench.compare import Comparison
from kernelci.workbench.drawn import Drawn, make
from kernelci.workbench.judging import in_one, judge, judge_all

TEXT = """
import torch
from kernelci.reference import check, like
def cases():
    yield check(n=64, dtype="float16")
def inputs(case, draw):
    return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x * 2
"""
CASE = check(n=64, dtype="float16")
DRAWS = ("normal:0", "normal:1", "tail:0", "zeros:0")


def _reference(folder: Path, more: str = "", text: str = TEXT) -> Reference:
    path = folder / "some.py"
    path.write_text(text + more, encoding="utf-8")
    return load(path)


def _only(folder: Path, text: str, draw: str) -> tuple[Reference, Drawn]:
    """The reference with this text, and a draw of its only case."""
    reference = _reference(folder, text=text)
    (case,) = reference.cases()
    return reference, make(reference, case, draw, "s", "cpu")


def _one_by_one(terms: torch.Tensor, accumulator: torch.dtype) -> torch.Tensor:
    """The sum of each row as one thread makes it: (rows, 1)."""
    total = torch.zeros(len(terms), 1, dtype=accumulator)
    for term in terms.split(1, dim=1):
        total = (total.float() + term).to(accumulator)
    return total.float()


def _calls(reference: Reference) -> list[tuple[Drawn, dict[str, torch.Tensor]]]:
    """An answer per draw, the second of them wrong in one element."""
    calls = [(one, dict(one.truth.honest)) for one in (make(reference, CASE, draw, "s", "cpu") for draw in DRAWS)]
    calls[1][1]["y"] = calls[1][1]["y"].clone()
    calls[1][1]["y"][7] += 9
    return calls


def _told(found: list[Comparison]) -> list[dict[str, object]]:
    """All that the comparisons say; where elements are bad, as a list."""
    return [msgspec.structs.asdict(one) | {"bad": one.bad.tolist()} for one in found]


OWN = {
    "the usual gates": "",
    "a tensor": "def compare(name, actual, oracle, inputs):\n    return (actual.double() - oracle).abs() > 1\n",
    "a text": "def compare(name, actual, oracle, inputs):\n    return 'no' if bool((actual != oracle).any()) else ''\n",
}


@pytest.mark.parametrize("own", OWN)
def test_as_each_alone(tmp_path: Path, own: str) -> None:
    reference = _reference(tmp_path, OWN[own])
    calls = _calls(reference)
    together = [found for found in judge_all(reference, calls) if not isinstance(found, ReferenceFailed)]
    assert [_told(judge(reference, *call)) for call in calls] == [_told(found) for found in together]
    assert [True, False, True, True] == [found[0].passed for found in together]


def test_a_reference_that_answers_wrongly_spoils_one_call(tmp_path: Path) -> None:
    own = "asked = []\ndef compare(name, *rest):\n    asked.append(name)\n    return 7 if len(asked) == 3 else None\n"
    reference = _reference(tmp_path, own)
    assert [False, False, True, False] == [
        isinstance(found, ReferenceFailed) for found in judge_all(reference, _calls(reference))
    ]


def test_of_no_calls(tmp_path: Path) -> None:
    assert [] == judge_all(_reference(tmp_path), [])


@pytest.mark.parametrize(
    ("shapes", "terms"),
    [
        ([(64, 512), (32, 512)], 512),  # a product along the last axes
        ([(512, 64), (512, 32)], 512),  # along the first
        ([(2, 256, 8, 8), (512, 256, 3, 3)], 256 * 8 * 8),  # a filter's 2304, and a norm over all but the batch
        ([(64, 3, 16, 16)], 64 * 16 * 16),  # a norm over all but the channels
        ([(), (0, 4)], 4),
        ([], 0),
    ],
)
def test_terms_in_one_accumulator(shapes: list[tuple[int, ...]], terms: int) -> None:
    assert terms == in_one(shapes)


SUMS = """
import torch
from kernelci.reference import check, like, tensor
def cases():
    yield check(n=4096, cols=32, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.n, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": tensor(case.cols, dtype=case.dtype)}
def reference(x):
    return x.sum(0)
"""


@pytest.mark.parametrize("draw", ["normal:0", "constant:0", "constant-rows:0", "ties:0", "zeros:0"])
def test_a_sum_over_the_first_axis_in_one_accumulator_passes(tmp_path: Path, draw: str) -> None:
    reference, drawn = _only(tmp_path, SUMS, draw)
    y = _one_by_one(drawn.inputs["x"].T, torch.float32)[:, 0]
    assert [True] == [found.passed for found in judge(reference, drawn, {"y": y})]


CONVOLUTION = """
import torch
from kernelci.reference import check, tensor
def cases():
    yield check(channels=512, dtype="float32")
def inputs(case, draw):
    return {
        "x": draw.normal(1, case.channels, 8, 8, dtype=case.dtype),
        "w": draw.normal(4, case.channels, 3, 3, dtype=case.dtype),
    }
def outputs(case):
    return {"y": tensor(1, 4, 8, 8, dtype=case.dtype)}
def reference(x, w):
    return torch.nn.functional.conv2d(x, w, padding=1)
"""


@pytest.mark.parametrize(("accumulator", "passed"), [(torch.float32, True), (torch.bfloat16, False)])
def test_a_convolution_in_one_accumulator(tmp_path: Path, accumulator: torch.dtype, passed: bool) -> None:
    """The large terms of `tail` are one in each row, and a convolution adds up many rows, here tap after tap."""
    reference, drawn = _only(tmp_path, CONVOLUTION, "tail:0")
    patches = torch.nn.functional.unfold(drawn.inputs["x"], 3, padding=1)[0].T.reshape(1, 64, 512, 9)
    terms = (drawn.inputs["w"].view(4, 1, 512, 9) * patches).transpose(2, 3).reshape(4 * 64, -1)
    found = judge(reference, drawn, {"y": _one_by_one(terms, accumulator).view(1, 4, 8, 8)})
    assert [passed] == [one.passed for one in found]


BACKWARD = """
import torch
from kernelci.reference import check, like
def cases():
    yield check(rows=32, cols=256, dtype="float16")
def inputs(case, draw):
    names = ("x", "dy")
    return {name: draw.normal(case.rows, case.cols, dtype=case.dtype) for name in names} | {"eps": 1e-6}
def outputs(case):
    return {"dx": like("x")}
def reference(x, dy, eps):
    scale = 1 / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
    return (dy - x * scale * (dy * x * scale).mean(-1, keepdim=True)) * scale
"""


@pytest.mark.parametrize(("accumulator", "passed"), [(torch.float32, True), (torch.bfloat16, False)])
def test_a_backward_pass_of_constant_rows(tmp_path: Path, accumulator: torch.dtype, passed: bool) -> None:
    """dx is what is left where a row's dy and its mean cancel, far below an ulp of fp16 at its terms."""
    reference, drawn = _only(tmp_path, BACKWARD, "constant-rows:0")
    x, dy = (drawn.inputs[name].float() for name in ("x", "dy"))
    scale = torch.rsqrt(_one_by_one(x * x, accumulator) / 256 + 1e-6)
    dx = (dy - x * scale * (_one_by_one(dy * x * scale, accumulator) / 256)) * scale
    assert [passed] == [one.passed for one in judge(reference, drawn, {"dx": dx.half()})]


GROUP_NORM = """
import torch
from kernelci.reference import check, like
def cases():
    yield check(channels=128, dtype="float32")
def inputs(case, draw):
    x = draw.normal(1, case.channels, 8, 8, dtype=case.dtype)
    return {"x": x, **{name: draw.normal(case.channels, dtype=case.dtype) for name in ("weight", "bias")}}
def outputs(case):
    return {"y": like("x")}
def reference(x, weight, bias):
    return torch.nn.functional.group_norm(x, 2, weight, bias)
"""


def test_a_group_norm_in_one_accumulator(tmp_path: Path) -> None:
    """Of many equal elements the mean is off by hundreds of ulp, and all that follows from it."""
    reference, drawn = _only(tmp_path, GROUP_NORM, "ties:0")
    x = drawn.inputs["x"].view(2, -1)
    centred = x - _one_by_one(x, torch.float32) / x.shape[1]
    variance = _one_by_one(centred**2, torch.float32) / x.shape[1]
    y = (centred * (variance + 1e-5).rsqrt()).view(1, 128, 8, 8)
    weight, bias = (drawn.inputs[name][:, None, None] for name in ("weight", "bias"))
    assert [True] == [one.passed for one in judge(reference, drawn, {"y": y * weight + bias})]
