"""A flashinfer-bench definition as a reference: cases from workloads, inputs of every kind, tolerance."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelci.problems.definitions import Tolerance
from kernelci.problems.flashinfer import outside
from kernelci.reference import Reference, ReferenceFailed, TensorSpec, load
from kernelci.workbench.drawn import draw_inputs, make

Defined = Callable[..., Reference]
DEFINITION = {
    "name": "scale_n8",
    "op_type": "activation",
    "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 8}, "twice": {"type": "expr", "expression": "2*m"}},
    "inputs": {"x": {"shape": ["m", "n"], "dtype": "float32"}, "s": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["twice", "n"], "dtype": "float32"}},
    "reference": "import torch\ndef run(x, s):\n    return torch.cat([x, x]).to(torch.float32) * s",
}
SCALAR = {"type": "scalar", "value": 0.1}


def _workload(m: int = 3, **more: Any) -> dict[str, Any]:
    return {"uuid": f"w{m}", "axes": {"m": m}, "inputs": {"x": {"type": "random"}, "s": SCALAR} | more}


@pytest.fixture
def defined(tmp_path: Path) -> Defined:
    """Write a definition and workloads, and load it."""

    def make_one(*workloads: dict[str, Any], **changed: Any) -> Reference:
        path = tmp_path / "scale.json"
        path.write_text(json.dumps(DEFINITION | changed), encoding="utf-8")
        lines = "\n".join(json.dumps({"definition": "scale_n8", "workload": one}) for one in workloads)
        path.with_suffix(".jsonl").write_text(lines, encoding="utf-8")
        return load(path)

    return make_one


def _drawn(found: Reference, name: str = "normal:0") -> dict[str, Any]:
    return draw_inputs(found, found.cases()[0], name, "seed", "cpu")


def test_the_name_is_the_definitions_own(defined: Defined) -> None:
    assert "scale_n8" == defined(_workload()).name


def test_workloads_are_the_cases(defined: Defined) -> None:
    assert ["3-fp32", "5-fp32"] == [case.id for case in defined(_workload(3), _workload(5)).cases()[:2]]


def test_workloads_of_the_same_sizes_are_told_apart(defined: Defined) -> None:
    found = defined(_workload(3), _workload(3, s={"type": "scalar", "value": 2.0}))
    assert ["3-fp32-workload0", "3-fp32-workload1"] == [case.id for case in found.cases()[:2]]


def test_numbers_are_those_of_the_workload(defined: Defined) -> None:
    assert 0.1 == _drawn(defined(_workload()))["s"]


def test_shapes_may_be_computed(defined: Defined) -> None:
    found = defined(_workload())
    assert {"y": TensorSpec((6, 8), "float32")} == make(found, found.cases()[0], "normal:0", "s", "cpu").outputs


def test_the_oracle_is_in_float64_whatever_the_reference_casts_to(defined: Defined) -> None:
    found = defined(_workload())
    drawn = make(found, found.cases()[0], "normal:0", "s", "cpu")
    assert torch.equal(torch.cat([drawn.inputs["x"].double()] * 2) * 0.1, drawn.truth.oracle["y"])


def test_the_honest_one_is_in_float32(defined: Defined) -> None:
    found = defined(_workload())
    drawn = make(found, found.cases()[0], "normal:0", "s", "cpu")
    assert torch.equal(torch.cat([drawn.inputs["x"]] * 2) * 0.1, drawn.truth.honest["y"])


def test_without_workloads_some_sizes_are_tried(defined: Defined) -> None:
    found = defined(inputs={"x": DEFINITION["inputs"]["x"]}, reference="def run(x): return x")  # type: ignore[index]
    assert ["1-fp32", "2-fp32", "7-fp32", "16-fp32"] == [case.id for case in found.cases() if case.kind == "check"]


def test_custom_inputs_are_made_anew_in_each_draw(defined: Defined) -> None:
    code = "import torch\ndef give(axes, device): return {'x': torch.rand(axes['m'], 8)}\ndef run(x, s): return x"
    found = defined(_workload(x={"type": "custom"}), reference=code, custom_inputs_entrypoint="give")
    assert not torch.equal(_drawn(found)["x"], _drawn(found, "normal:1")["x"])


def test_a_tensor_from_a_file(defined: Defined, tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [1, 8], "data_offsets": [0, 32]}}).encode()
    values = torch.arange(8, dtype=torch.float32)
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + values.numpy().tobytes())
    found = defined(_workload(1, x={"type": "safetensors", "path": "x.safetensors", "tensor_key": "x"}))
    assert torch.equal(values[None], _drawn(found)["x"])


@pytest.mark.parametrize(
    ("content", "key", "said"),
    [
        (None, "x", "no file x.safetensors"),
        (b"version https://git-lfs.github.com/spec/v1\n", "x", "pointer of Git LFS"),
        (b"\x02\0\0\0\0\0\0\0{}", "x", "no tensor 'x'"),
        (b"\xff" * 16, "x", "no safetensors file"),
    ],
)
def test_a_file_that_can_not_be_read(
    defined: Defined, tmp_path: Path, content: bytes | None, key: str, said: str
) -> None:
    if content is not None:
        (tmp_path / "x.safetensors").write_bytes(content)
    found = defined(_workload(1, x={"type": "safetensors", "path": "x.safetensors", "tensor_key": key}))
    with pytest.raises(ReferenceFailed, match=said):
        _drawn(found)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reference": "def go(): ..."}, "no function run"),
        ({"reference": "1 / 0"}, "ZeroDivisionError"),
        ({"reference": "import urllib.request as u\nu.urlopen('http://a.example')"}, "needs the network"),
        ({"outputs": {"y": {"shape": ["m"], "dtype": "float3"}}}, "dtype 'float3' is not supported"),
        ({"axes": {"m": {"type": "odd"}}}, "Invalid enum value"),
    ],
)
def test_a_definition_that_is_broken(defined: Defined, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ReferenceFailed, match=said):
        defined(_workload(), **changed)


def test_numbers_need_a_workload(defined: Defined) -> None:
    with pytest.raises(ReferenceFailed, match="no workloads"):
        defined().cases()


@pytest.mark.parametrize(
    ("error", "share", "expected"),
    [
        (0.5, 0.0, "50.00% of the elements"),
        (0.5, 0.4, [False, True]),
        (0.05, 0.0, "50.00%"),
        (0.05, 0.4, [False, False]),
    ],
)
def test_a_tolerance(error: float, share: float, expected: object) -> None:
    allowed = Tolerance(max_atol=0.01, max_rtol=0.0, required_matched_ratio=share or 0.9)
    found = outside(torch.tensor([1.0, 1.0 + error]).double(), torch.ones(2).double(), allowed)
    assert str(found).startswith(expected) if isinstance(expected, str) else expected == found.tolist()


def test_a_tolerance_with_a_cap_of_its_own() -> None:
    allowed = Tolerance(max_atol=1.0, max_rtol=0.0, max_error_cap=0.1)
    assert [False, True] == outside(torch.tensor([1.0, 1.5]).double(), torch.ones(2).double(), allowed).tolist()
