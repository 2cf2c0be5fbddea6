"""A KernelBench problem as a reference: its cases, inputs and weights, and the bad ones that are recognised."""

import pytest
import torch

from kernelci.reference import ReferenceFailed, TensorSpec
from kernelci.workbench import controls
from kernelci.workbench.drawn import draw_inputs, make, variants

from .conftest import Loaded


def test_the_case_has_the_shapes_that_are_shown(loaded: Loaded) -> None:
    assert ["4x8-fp32", "4x8-fp32"] == [case.id for case in loaded().cases()]


def test_inputs_have_the_names_of_forward(loaded: Loaded) -> None:
    assert ("a", "b") == loaded("torch.rand(3), 2.0", "a * b", names="a, b").parameters()


def test_weights_are_inputs(loaded: Loaded) -> None:
    assert ("x", "ln_weight", "ln_bias") == loaded(init="self.ln = nn.LayerNorm(8)", forward="self.ln(x)").parameters()


def test_a_weight_and_an_input_of_one_name(loaded: Loaded) -> None:
    found = loaded(init="self.x = nn.Parameter(torch.rand(8))", forward="x * self.x")
    assert ("x", "weight_x") == found.parameters()


def test_weights_that_begin_as_constants_are_redrawn(loaded: Loaded) -> None:
    found = loaded(init="self.ln = nn.LayerNorm(8)", forward="self.ln(x)")
    drawn = draw_inputs(found, found.cases()[0], "normal:0", "seed", "cpu")
    assert (True, True) == tuple(len(drawn[name].unique()) == 8 for name in ("ln_weight", "ln_bias"))


def test_weights_keep_the_size_that_they_begin_with(loaded: Loaded) -> None:
    found = loaded(init="self.fc = nn.Linear(400, 3)", inputs="torch.rand(2, 400)", forward="self.fc(x)")
    drawn = draw_inputs(found, found.cases()[0], "normal:0", "seed", "cpu")
    assert bool(drawn["fc_weight"].abs().max() <= 400**-0.5)


def test_what_is_said_of_inputs_and_weights(loaded: Loaded) -> None:
    found = loaded(init="self.ln = nn.LayerNorm(8, bias=False)", forward="self.ln(x)", inputs="torch.rand(2, 8) * 3")
    assert (
        "input x: rand * 3 + 0, (2, 8) float32",
        "weight ln.weight: all 1: redrawn around it, the same on both sides",
    ) == found.notes


def test_values_follow_the_draw(loaded: Loaded) -> None:
    found = loaded()
    first, again, other = (
        draw_inputs(found, found.cases()[0], name, "s", "cpu")["x"] for name in ("normal:0", "normal:0", "large:0")
    )
    assert (True, False) == (torch.equal(first, again), torch.equal(first, other))


def test_inputs_with_a_structure_keep_it(loaded: Loaded) -> None:
    found = loaded("torch.triu(torch.rand(6, 6))")
    one, other = (draw_inputs(found, found.cases()[0], f"normal:{number}", "s", "cpu")["x"] for number in (0, 1))
    assert (0.0, False) == (float(one.tril(-1).abs().sum()), torch.equal(one, other))


def test_inputs_with_a_structure_are_not_poked(loaded: Loaded) -> None:
    found = loaded("torch.triu(torch.rand(6, 6))")
    assert () == variants(found, found.cases()[0])


def test_outputs_are_declared_by_what_forward_gives(loaded: Loaded) -> None:
    found = loaded(forward="(x.sum(1), x.argmax(1))")
    drawn = make(found, found.cases()[0], "normal:0", "s", "cpu")
    assert {"y0": TensorSpec((4,), "float32"), "y1": TensorSpec((4,), "int64")} == drawn.outputs


def test_the_oracle_is_the_module_in_float64(loaded: Loaded) -> None:
    found = loaded(
        init="self.fc = nn.Linear(8, 3); self.register_buffer('b', torch.ones(3))", forward="self.fc(x) + self.b"
    )
    drawn = make(found, found.cases()[0], "normal:0", "s", "cpu")
    x, weight, bias = (drawn.inputs[name].double() for name in ("x", "fc_weight", "fc_bias"))
    assert torch.allclose(x @ weight.T + bias + 1, drawn.truth.oracle["y"], rtol=1e-12)


def test_a_call_does_not_change_the_module(loaded: Loaded) -> None:
    found = loaded(
        init="self.bn = nn.BatchNorm1d(8, momentum=0.5).eval()", forward="self.bn.train()(x) + self.bn.running_mean"
    )
    first, again = (make(found, found.cases()[0], "normal:0", "s", "cpu").truth.oracle["y"] for _ in range(2))
    assert torch.equal(first, again)


def test_products_are_counted(loaded: Loaded) -> None:
    found = loaded("torch.rand(4, 8), torch.rand(8, 5)", "a @ b", names="a, b")
    assert 2 * 4 * 8 * 5 == found.cost(found.cases()[0], {}, {}).flops


def test_a_sound_problem(loaded: Loaded) -> None:
    controls.check(loaded(init="self.fc = nn.Linear(8, 3)", forward="self.fc(x).relu()"), "cpu")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"inputs": "torch.zeros(4, 8)"}, "input x is all zeros"),
        ({"inputs": "3.0"}, "gives no tensor"),
        ({"inputs": "torch.rand(2**35)"}, "takes 128 GiB"),
        ({"init": "self.fc = nn.Linear(2**17, 2**18)", "forward": "self.fc(x)"}, "takes 128 GiB"),
        ({"forward": "x[:, :1].expand(4, 2**34)"}, "takes 256 GiB"),
        ({"init": "import urllib.request; urllib.request.urlopen('http://weights.example/w')"}, "needs the network"),
        ({"init": "import socket; socket.create_connection(('192.0.2.1', 80), 1)"}, "needs the network"),
        ({"arguments": "torch.rand(2)"}, "get_init_inputs.. gives a Tensor"),
        ({"forward": "x.nowhere()"}, "forward.. raised AttributeError"),
        ({"forward": "'text'"}, "forward.. gives str"),
        ({"init": "raise ValueError('no')"}, "Model.. raised ValueError: no"),
    ],
)
def test_a_problem_that_can_not_judge(loaded: Loaded, parts: dict[str, str], said: str) -> None:
    with pytest.raises(ReferenceFailed, match=said):
        loaded(**parts)


def test_inputs_whose_code_asks_for_values(loaded: Loaded) -> None:
    found = loaded("torch.rand(int(torch.tensor(3.0).item()), 5)", init="self.size = int(torch.ones(1).sum().item())")
    assert ["3x5-fp32", "input x: rand, (3, 5) float32"] == [found.cases()[0].id, *found.notes]


def test_a_problem_of_random_shapes(loaded: Loaded) -> None:
    with pytest.raises(ReferenceFailed, match="another shape in every call"):
        loaded("torch.rand(int(torch.rand(1).item() * 10000) + 1).softmax(0)")


def test_a_fetch_that_is_caught_is_told_too(loaded: Loaded) -> None:
    fetch = "import contextlib, urllib.request\n        with contextlib.suppress(Exception): urllib.request.urlopen('http://a.example')"
    with pytest.raises(ReferenceFailed, match="needs the network"):
        loaded(init=fetch)


def test_a_problem_that_is_random_by_itself(loaded: Loaded) -> None:
    found = loaded(init="self.drop = nn.Dropout(0.5)", forward="self.drop(x)")
    with pytest.raises(ReferenceFailed, match="random by itself"):
        make(found, found.cases()[0], "normal:0", "s", "cpu")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"forward": "x * 0 + 3"}, "weak-reference"),
        ({"forward": "torch.zeros_like(x)"}, "weak-reference"),
        ({"inputs": "torch.ones(4, 8)"}, "weak-reference"),
        ({"init": "self.w = nn.Parameter(torch.rand(8))"}, "idle-input"),
        ({"inputs": "torch.rand(4), torch.rand(4)", "names": "x, z"}, "idle-input"),
        ({"init": "self.w = nn.Parameter(torch.zeros(8))", "forward": "x + (self.w - self.w)"}, "idle-input"),
    ],
)
def test_a_problem_that_tells_nothing_apart(loaded: Loaded, parts: dict[str, str], reason: str) -> None:
    with pytest.raises(controls.Weak) as raised:
        controls.check(loaded(**parts), "cpu")
    assert reason == raised.value.reason


def test_zero_weights_are_no_hiding_place(loaded: Loaded) -> None:
    found = loaded(init="self.w = nn.Parameter(torch.zeros(8))", forward="x + self.w")
    controls.check(found, "cpu")
