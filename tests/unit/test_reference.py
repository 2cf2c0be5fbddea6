"""References: their vocabulary, and every fault of theirs as ReferenceFailed."""

from pathlib import Path

import pytest
import torch

from kernelci.reference import Case, Reference, ReferenceFailed, TensorSpec, bench, check, like, load, tensor
from kernelci.workbench.draws import Sketch

GOOD = """
import torch
from kernelci.reference import Cost, bench, check, like, tensor

def cases():
    yield bench("a model", n=64, dtype="float16")
    yield check(n=3, dtype="float32")

def inputs(case, draw):
    return {"k": 2.0, "x": draw.normal(case.n, dtype=case.dtype)}

def outputs(case):
    return {"y": like("x"), "total": tensor(1, dtype=case.dtype)}

def reference(x, k):
    return x * k, x.sum().reshape(1)

def cost(case):
    return case.n
"""


def _load(folder: Path, *changes: tuple[str, str]) -> Reference:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "scale.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


def _use(reference: Reference) -> None:
    """All that a referee asks of a reference."""
    for case in reference.cases():
        given = reference.inputs(case, Sketch())
        outputs = reference.outputs(case, given)
        reference.cost(case, given, outputs)
        values = {name: torch.ones(value.shape) if hasattr(value, "shape") else value for name, value in given.items()}
        reference.truth(values, outputs)
        reference.honest(values, outputs)


def test_good_one(tmp_path: Path) -> None:
    reference = _load(tmp_path)
    _use(reference)
    assert ("scale", ("x", "k")) == (reference.name, reference.parameters())


def test_check_cases_come_first(tmp_path: Path) -> None:
    assert ["check", "bench"] == [case.kind for case in _load(tmp_path).cases()]


def test_inputs_in_the_order_of_the_parameters(tmp_path: Path) -> None:
    reference = _load(tmp_path)
    assert ["x", "k"] == list(reference.inputs(reference.cases()[0], Sketch()))


def test_outputs(tmp_path: Path) -> None:
    reference = _load(tmp_path)
    case = reference.cases()[0]
    expected = {"y": TensorSpec((3,), "float32"), "total": TensorSpec((1,), "float32")}
    assert expected == reference.outputs(case, reference.inputs(case, Sketch()))


def test_cost_counts_bytes_once(tmp_path: Path) -> None:
    reference = _load(tmp_path)
    case = reference.cases()[0]
    given = reference.inputs(case, Sketch())
    cost = reference.cost(case, given, reference.outputs(case, given))
    assert (3.0, 4.0 * (3 + 3 + 1)) == (cost.flops, cost.bytes)


def test_honest_of_its_own(tmp_path: Path) -> None:
    reference = _load(tmp_path, ("def cost", "def honest(x, k):\n    return {'total': x, 'y': -x}\n\ndef cost"))
    values = reference.honest({"x": torch.ones(1), "k": 1.0}, ("y", "total"))
    assert (-1.0, 1.0) == (float(values["y"]), float(values["total"]))


def test_defaults(tmp_path: Path) -> None:
    reference = _load(tmp_path)
    assert (None, False, False) == (reference.precision, reference.repeatable, reference.nan_allowed)


def test_no_case_is_no_fault_here(tmp_path: Path) -> None:
    cases = GOOD[GOOD.index("def cases") : GOOD.index("def inputs")]
    assert () == _load(tmp_path, (cases, "def cases():\n    return None\n\n")).cases()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("import torch", "import torch\n1 / 0", "importing it raised ZeroDivisionError"),
        ("import torch", "import no_such_package", "importing it raised ModuleNotFoundError"),
        ("def cost", "def cost(:\n", "importing it raised SyntaxError"),
        ("def reference", "def referenc", "defines no function reference"),
        ("def cases", "cases = 3\ndef other", "defines no function cases"),
        ('    yield check(n=3, dtype="float32")', "    raise OSError('gone')", "cases() raised OSError: gone"),
        ('    yield check(n=3, dtype="float32")', "    yield 3", "cases() must yield"),
        (
            '    yield check(n=3, dtype="float32")',
            "    yield check(n=1)\n    yield check(n=1)",
            "two cases are named 1",
        ),
        (
            "case.n, dtype",
            "case.rows, dtype",
            "inputs() raised AttributeError: the case has no 'rows'; it has n, dtype",
        ),
        ('{"k": 2.0, ', "{", "inputs() must give exactly x, k"),
        ('return {"k"', 'return 3, {"k"', "inputs() must give exactly x, k"),
        ('{"y": like("x"), "total": tensor(1, dtype=case.dtype)}', "{}", "outputs() must give at least one"),
        ('like("x")', '"x"', "outputs() holds 'x'"),
        ('like("x")', 'like("z")', "outputs() holds Like(name='z')"),
        ('like("x")', 'like("k")', "outputs() holds Like(name='k')"),
        ('"float32"', '"float33"', "no dtype 'float33'"),
        ("dtype=case.dtype)}\n\ndef reference", "dtype='float33')}\n\ndef reference", "no dtype 'float33'"),
        ("x * k, x.sum()", "x.nonsense, x.sum()", "reference() raised AttributeError"),
        ("return x * k, x.sum().reshape(1)", "return x * k", "reference() must return y, total"),
        ("return x * k, x.sum().reshape(1)", "return x, x, x", "reference() must return y, total"),
        ("return x * k, x.sum().reshape(1)", "return x, 3.0", "reference() must return y, total, each a tensor"),
        ("return case.n", "return None", "cost() must give FLOPs or a Cost, not NoneType"),
        ("return case.n", "return 1 / 0", "cost() raised ZeroDivisionError: division by zero (line "),
    ],
)
def test_fault(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ReferenceFailed) as caught:
        _use(_load(tmp_path, (old, new)))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (check(rows=17, cols=1000, dtype="bfloat16"), "17x1000-bf16"),
        (check(n=3), "3"),
        (check(n=0, dtype="float32", eps=1e-6), "0-fp32-eps1e-06"),
        (check(n=3, causal=True), "3-causalTrue"),
        (bench("title", dtype="int32"), "int32"),
    ],
)
def test_case_id(case: Case, expected: str) -> None:
    assert expected == case.id


def test_case_attributes() -> None:
    case = check(rows=2, dtype="float16")
    assert (2, torch.float16) == (case.rows, case.dtype)


def test_case_with_other_data() -> None:
    assert "2-fp16" == check(rows=2, dtype="bfloat16").with_dtype("float16").id


def test_tensor_takes_a_torch_dtype() -> None:
    assert TensorSpec((2, 3), "float16") == tensor(2, 3, dtype=torch.float16)


def test_like() -> None:
    assert "x" == like("x").name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mutates = ('z',)", "'z' is no input"),
        ("independent = {'n': ('z',)}", "'z' is no input"),
        ("library = {'cuBLAS': 'linear'}", "library must map names to functions"),
        ("layouts = {'x': ('sideways',)}", "no layout 'sideways'"),
        ("domain = {'n': (1, 2)}", "domain must give sizes"),
        ("budget = 3", "budget must be a Budget"),
        ("precision = 'half'", "precision is full or low"),
    ],
)
def test_a_declaration_that_means_nothing(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ReferenceFailed) as caught:
        _load(tmp_path, ("def cases", f"{line}\n\ndef cases"))
    assert said in str(caught.value)


def test_offset_stands_for_three(tmp_path: Path) -> None:
    found = _load(tmp_path, ("def cases", "layouts = {'x': 'offset'}\n\ndef cases"))
    assert {"x": ("offset1", "offset3", "offset7")} == found.layouts


def test_an_output_that_is_an_input(tmp_path: Path) -> None:
    found = _load(tmp_path, ('"y": like("x")', '"x": alias("x")'), ("import Cost", "import alias, Cost"))
    case = found.cases()[0]
    assert TensorSpec((3,), "float32", alias="x") == found.outputs(case, found.inputs(case, Sketch()))["x"]


def test_an_output_with_an_inputs_name_must_be_an_alias(tmp_path: Path) -> None:
    found = _load(tmp_path, ('"y": like("x")', '"x": like("x")'))
    with pytest.raises(ReferenceFailed, match="x is an input too"):
        _use(found)
