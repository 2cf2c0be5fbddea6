"""A trial with a real candidate: what it finds without an oracle, for floats and integers."""

import textwrap
from collections.abc import Callable

import pytest
import torch

from kernelci.errors import Stop
from kernelci.reference import TensorSpec, check
from kernelci.workbench.poison import bits, poisoned, repoisoned
from kernelci.workbench.session import Session
from kernelci.workbench.trial import Trial, run

MakeSession = Callable[..., Session]
DTYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int8", "uint8", "bool", "float8_e5m2"]
TRITON = """
import triton
import triton.language as tl

@triton.jit
def add_one(x, y, size, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < size, other=0) + 1, mask=at < limit)

def f(x, y):
    add_one[(triton.cdiv(x.numel() + 1, 64),)](x, y, x.numel(), x.numel() + {more}, 64)
"""


def _try(session: Session, x: torch.Tensor, **outputs: TensorSpec) -> Trial:
    return run(session, check(n=1), {"x": x}, outputs or {"y": TensorSpec(tuple(x.shape), "float32")})


def _stop(session: Session, x: torch.Tensor, **outputs: TensorSpec) -> Stop:
    with pytest.raises(Stop) as caught:
        _try(session, x, **outputs)
    return caught.value


X = torch.arange(100.0)


def test_triton_in_the_interpreter(session: MakeSession) -> None:
    found = _try(session(TRITON.format(more=0)), X)
    assert (True, True) == (torch.equal(X + 1, found.outputs["y"]), found.repeated)


def test_triton_stores_past_the_end(session: MakeSession) -> None:
    stop = _stop(session(TRITON.format(more=1)), X)
    assert ("out-of-bounds", True) == (stop.reason, "4 bytes after y" in stop.message)


def test_triton_leaves_the_last_one_out(session: MakeSession) -> None:
    stop = _stop(session(TRITON.format(more=-1)), X)
    assert ("unwritten", True) == (stop.reason, "first at [99]" in stop.message)


def _host(body: str, signature: str = "x, y") -> str:
    return f"import torch\ndef f({signature}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"


@pytest.mark.parametrize(
    ("write", "said"),
    [
        ("torch.as_strided(y, (1,), (1,), 100).fill_(7)", "after y"),
        ("torch.as_strided(y, (1,), (1,), 600).fill_(7)", "2000 bytes away"),
        ("import ctypes; ctypes.memset(x.data_ptr() - 3, 0, 1)", "before x"),
        ("import ctypes; ctypes.memset(x.data_ptr() + 400, 0, 1)", "after x"),
        ("import ctypes; ctypes.memset(y.data_ptr() - 1, 0, 1)", "before y"),
    ],
)
def test_guard(session: MakeSession, write: str, said: str) -> None:
    text = (
        "import torch\ndef f(x, y):\n    y.copy_(x)\n    y = torch.frombuffer(whole(y), dtype=torch.float32)\n"
        + f"    {write}\n"
    )
    reach = """
import ctypes
def whole(y):
    return (ctypes.c_char * 4000).from_address(y.data_ptr())
"""
    stop = _stop(session(text + reach), X)
    assert ("out-of-bounds", True) == (stop.reason, said in stop.message)


def test_input_changed(session: MakeSession) -> None:
    stop = _stop(session(_host("y.copy_(x)\nx[3] = -x[3]")), X)
    assert ("input-changed", True) == (stop.reason, "input x: 1 of 100" in stop.message)


def test_input_whose_sign_of_zero_changed(session: MakeSession) -> None:
    assert "input-changed" == _stop(session(_host("y.copy_(x)\nx[0] = -0.0")), X).reason


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_unwritten(session: MakeSession, dtype: str) -> None:
    text = _host("values = torch.ones_like(y)\nkeep = y[42].clone()\ny.copy_(values)\ny[42] = keep")
    stop = _stop(session(text), X, y=TensorSpec((100,), dtype))
    assert ("unwritten", True) == (stop.reason, "1 of 100" in stop.message and "[42]" in stop.message)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_everything_written(session: MakeSession, dtype: str, value: int) -> None:
    spec = TensorSpec((4000,), dtype)
    found = _try(session(_host(f"y.copy_(torch.full_like(y, {value}))")), X, y=spec)
    assert {value} == set(found.outputs["y"].double().tolist())


def test_every_element_unwritten(session: MakeSession) -> None:
    assert "everything is bad" in _stop(session(_host("pass")), X).message


def test_nan_in_every_element_is_written(session: MakeSession) -> None:
    assert bool(torch.isnan(_try(session(_host("y.fill_(float('nan'))")), X).outputs["y"]).all())


def test_two_calls_that_differ(session: MakeSession) -> None:
    assert not _try(session("n = 0\n" + _host("global n\nn += 1\ny.fill_(n)")), X).repeated


@pytest.mark.parametrize(
    ("result", "reason", "said"),
    [
        ("None", "not-returned", "no torch.Tensor for y"),
        ("x.tolist()", "not-returned", "for y"),
        ("x[:99]", "shape", "(99,), and (100,) is declared"),
        ("x.double()", "dtype", "float64, and float32 is declared"),
        ("{'z': x}", "not-returned", "for y"),
    ],
)
def test_returned(session: MakeSession, result: str, reason: str, said: str) -> None:
    stop = _stop(session(_host(f"return {result}", "x")), X)
    assert (reason, True) == (stop.reason, said in stop.message)


@pytest.mark.parametrize("result", ["x + 1", "(x + 1,)", "{'y': x + 1}", "(x + 1).reshape(2, 50).T.T.reshape(100)"])
def test_returned_well(session: MakeSession, result: str) -> None:
    assert torch.equal(X + 1, _try(session(_host(f"return {result}", "x")), X).outputs["y"])


def test_two_outputs_by_order(session: MakeSession) -> None:
    spec = TensorSpec((100,), "float32")
    found = _try(session(_host("return x + 1, x + 2", "x")), X, y=spec, z=spec)
    assert [torch.equal(X + 1, found.outputs["y"]), torch.equal(X + 2, found.outputs["z"])] == [True, True]


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_empty(session: MakeSession, shape: tuple[int, ...]) -> None:
    found = _try(session(_host("y.copy_(x)")), torch.empty(shape))
    assert shape == tuple(found.outputs["y"].shape)


def test_arena_grows_with_the_case(session: MakeSession) -> None:
    made = session(_host("y.copy_(x)"))
    _try(made, X)
    before = made.arena.size
    x = torch.ones(before // 4)
    assert (True, True) == (torch.equal(x, _try(made, x).outputs["y"]), made.arena.size > before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_value_is_both_poisons(dtype: str) -> None:
    first = poisoned(TensorSpec((4096,), dtype), "cpu")
    assert not bool((bits(first) == bits(repoisoned(first))).any())


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_first_poison_is_nan_of_many_patterns(dtype: str) -> None:
    values = poisoned(TensorSpec((1000,), dtype), "cpu")
    assert (True, True) == (bool(torch.isnan(values).all()), len(bits(values).unique()) > 10)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_second_poison_is_plausible(dtype: str) -> None:
    assert bool(torch.isfinite(repoisoned(poisoned(TensorSpec((1000,), dtype), "cpu"))).all())
