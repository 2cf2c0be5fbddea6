"""The gates: an honest result passes in any dtype, careless arithmetic and wrong elements fail; metrics by formula."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from kernelci.workbench.compare import Comparison, compare, precision_of, ulp_at
from kernelci.workbench.gates import Equal

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
EQUAL: tuple[Equal, ...] = ("few", "many", "all")
Damage = Callable[[torch.Tensor], torch.Tensor]


def _inputs(dtype: torch.dtype, m: int = 64, n: int = 48, k: int = 512) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    return tuple(torch.randn(shape, generator=generator).to(dtype) for shape in ((m, k), (n, k)))  # type: ignore[return-value]


def _truth(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The product in float64, and the honest one: float32 accumulation, rounded once."""
    return a.double() @ b.double().T, (a.float() @ b.float().T).to(a.dtype)


def _in_blocks(
    a: torch.Tensor, b: torch.Tensor, step: int = 32, accumulator: torch.dtype = torch.float32
) -> torch.Tensor:
    """The product as a tiled kernel makes it: blocks along k, added up in the accumulator's dtype."""
    total = torch.zeros(len(a), len(b), dtype=accumulator)
    for begin in range(0, a.shape[1], step):
        part = a[:, begin : begin + step].float() @ b[:, begin : begin + step].float().T
        total = (total.float() + part).to(accumulator)
    return total.to(a.dtype)


def _tf32(values: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits of mantissa, as tensor cores take float32."""
    bits = values.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _judged(actual: torch.Tensor, dtype: torch.dtype) -> Comparison:
    return compare("c", actual, *_truth(*_inputs(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_honest_one_passes(dtype: torch.dtype) -> None:
    assert _judged(_truth(*_inputs(dtype))[1], dtype).passed


@pytest.mark.parametrize("step", [16, 64, 128])
@pytest.mark.parametrize("dtype", FLOATS)
def test_another_order_of_summation_passes(dtype: torch.dtype, step: int) -> None:
    assert _judged(_in_blocks(*_inputs(dtype), step=step), dtype).passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_best_possible_passes(dtype: torch.dtype) -> None:
    oracle, _ = _truth(*_inputs(dtype))
    assert _judged(oracle.to(dtype), dtype).passed


def test_tf32_for_float32_fails() -> None:
    a, b = _inputs(torch.float32)
    assert not _judged(_tf32(a) @ _tf32(b).T, torch.float32).passed


@pytest.mark.parametrize("careless", [_tf32, lambda x: x.half().float(), lambda x: x.bfloat16().float()])
@pytest.mark.parametrize("terms", [2**18, 2**20, 2**24, 2**31])
def test_a_long_axis_allows_no_narrow_type(careless: Damage, terms: int) -> None:
    x = torch.randn(2**14, generator=torch.Generator().manual_seed(3))
    honest, moved = x * 1.7, x * (1 - 2**-23) * 1.7
    found = [
        compare("y", actual, x.double() * 1.7, honest, terms=terms, moved=(moved - x.double() * 1.7).abs()).passed
        for actual in (honest, moved, careless(x) * 1.7)
    ]
    assert [True, True, False] == found


def test_a_million_equal_terms_by_256_threads_pass() -> None:
    x = torch.rand(16, 1, generator=torch.Generator().manual_seed(3)) + 0.5
    thread = np.cumsum(x.expand(-1, 2**12).numpy(), axis=1, dtype=np.float32)[:, -1]  # one addition after another
    actual = torch.from_numpy(thread) / 2**12
    assert compare("mean", actual, x.double()[:, 0], x[:, 0].clone(), terms=2**20).passed


def _one_by_one(terms: torch.Tensor, accumulator: torch.dtype) -> torch.Tensor:
    """Sums along the last axis, in one accumulator."""
    total = torch.zeros(terms.shape[:-1], dtype=accumulator)
    for term in terms.double().unbind(-1):
        total = (total.double() + term).to(accumulator)
    return total


@pytest.mark.parametrize("count", [256, 2048, 8192])
@pytest.mark.parametrize(("accumulator", "passed"), [(torch.float32, True), (torch.float16, False)])
def test_equal_terms_in_one_accumulator(accumulator: torch.dtype, passed: bool, count: int) -> None:
    x = (torch.rand(64, 1, generator=torch.Generator().manual_seed(3)) / 8 + 0.5) / 2**6
    actual, oracle = _one_by_one(x.expand(-1, count), accumulator).float(), x.double()[:, 0] * count
    found = [
        compare("c", one, truth, truth.float(), terms=count, equal="all", in_one=count).passed
        for one, truth in zip(actual.unsqueeze(1), oracle.unsqueeze(1), strict=True)
    ]
    assert passed == all(found)


def _softmax_one_by_one(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / _one_by_one(powers, torch.float32).unsqueeze(-1)


@pytest.mark.parametrize(("equal", "passed"), [("few", False), ("many", True)])
def test_a_softmax_of_mostly_zeros_by_one_thread(equal: Equal, passed: bool) -> None:
    """exp makes equal terms of equal elements, and the whole row has the error of their sum."""
    generator = torch.Generator().manual_seed(3)
    x = torch.where(torch.rand(1, 8192, generator=generator) < 0.9, 0.0, torch.randn(1, 8192, generator=generator))
    oracle, honest = torch.softmax(x.double(), -1), torch.softmax(x, -1)
    found = compare("y", _softmax_one_by_one(x), oracle, honest, terms=8192, equal=equal, in_one=8192)
    assert passed == found.passed


def _layer_norm(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """As a kernel makes it of a mean in float32: what that is off by stays, over √eps."""
    centred = x - mean.unsqueeze(-1)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bias", [0.0, 0.25])
def test_a_layer_norm_of_equal_elements_has_no_digits_but_is_finite(dtype: torch.dtype, bias: float) -> None:
    x = torch.full((8, 1000), 1.1).to(dtype).float()
    moved = x * (1 - 2.0**-23 * (torch.rand(x.shape, generator=torch.Generator().manual_seed(3)) < 0.5))
    oracle = torch.zeros_like(x).double() + bias
    off_by_ulps = x[:, 0] * (1 + 3 * 2.0**-23)
    found = [
        compare(
            "y",
            (_layer_norm(x, mean) + bias).to(dtype),
            oracle,
            oracle.to(dtype),
            moved=(_layer_norm(moved, moved.mean(-1)) + bias - oracle).abs(),
            equal="all",
            in_one=1000,
        ).passed
        for mean in (x[:, 0], off_by_ulps, off_by_ulps * torch.nan)
    ]
    assert [True, True, False] == found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_accumulator_that_stops_growing_fails_in_equal_terms(dtype: torch.dtype) -> None:
    x = torch.full((1, 4096), 1.1)
    oracle, stopped = x.double().sum(-1), _one_by_one(x, dtype).to(dtype)
    moved = (oracle - (x * (1 - 2.0**-23)).double().sum(-1)).abs()
    assert not compare("y", stopped, oracle, oracle.to(dtype), moved=moved, equal="all", in_one=4096).passed


def test_what_shares_one_rounding_may_be_rounded_the_other_way() -> None:
    oracle = torch.full((64, 64), 1 + 0.3 * 2**-7, dtype=torch.float64)
    low, high = (torch.full((64, 64), value, dtype=torch.bfloat16) for value in (1.0, 1 + 2**-7))
    found = [compare("c", high, oracle, low, equal=equal).passed for equal in EQUAL]
    assert [False, False, True] == found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_accumulation_fails(dtype: torch.dtype) -> None:
    assert not _judged(_in_blocks(*_inputs(dtype), accumulator=dtype), dtype).passed


def test_float16_accumulation_for_float32_fails() -> None:
    assert not _judged(_in_blocks(*_inputs(torch.float32), accumulator=torch.float16), torch.float32).passed


def test_truncation_instead_of_rounding_fails() -> None:
    a, b = _inputs(torch.bfloat16)
    exact = (a.float() @ b.float().T).view(torch.int32)
    assert not _judged((exact & ~0xFFFF).view(torch.float32).to(torch.bfloat16), torch.bfloat16).passed


def _one_wrong(values: torch.Tensor) -> torch.Tensor:
    values[17, 5] += 0.05 * values.float().square().mean().sqrt().to(values.dtype) + values[17, 5].abs() * 0.05
    return values


def _tile_missing(values: torch.Tensor) -> torch.Tensor:
    values[48:, 32:] = 0
    return values


DAMAGES: dict[str, Damage] = {
    "one element": _one_wrong,
    "a missing tile": _tile_missing,
    "zeros": torch.zeros_like,
    "a constant": lambda values: torch.full_like(values, float(values.float().mean())),
    "the negative": lambda values: -values,
    "rows swapped": lambda values: values.flip(0),
    "a factor": lambda values: values * 1.02,
    "NaN": lambda values: values.index_fill(1, torch.tensor([3]), torch.nan),
    "infinity": lambda values: values.index_fill(0, torch.tensor([3]), torch.inf),
    "NaN everywhere": lambda values: torch.full_like(values, torch.nan),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_damage_fails(dtype: torch.dtype, damage: str) -> None:
    assert not _judged(DAMAGES[damage](_truth(*_inputs(dtype))[1].clone()), dtype).passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_wrong_element_is_found(dtype: torch.dtype) -> None:
    found = _judged(_one_wrong(_truth(*_inputs(dtype))[1].clone()), dtype)
    assert [[17, 5]] == found.bad.nonzero().tolist()


def _special(*values: float) -> torch.Tensor:
    return torch.tensor([[1.0, 2.0, *values]])


@pytest.mark.parametrize(
    ("actual", "oracle", "nan_allowed", "misplaced"),
    [
        (torch.nan, 3.0, False, 1),
        (torch.nan, 3.0, True, 1),
        (3.0, torch.nan, True, 1),
        (torch.nan, torch.nan, False, 1),
        (torch.nan, torch.nan, True, 0),
        (torch.inf, torch.inf, False, 0),
        (-torch.inf, torch.inf, False, 1),
        (torch.inf, 3.0, False, 1),
        (3.0, -torch.inf, False, 1),
        (torch.nan, torch.inf, True, 1),
    ],
)
def test_nan_and_infinity_must_match(actual: float, oracle: float, nan_allowed: bool, misplaced: int) -> None:
    truth = _special(oracle)
    found = compare("y", _special(actual), truth.double(), truth, nan_allowed=nan_allowed)
    assert (misplaced, misplaced == 0) == (found.misplaced, found.passed)


def test_overflow_of_the_output_dtype_is_an_infinity() -> None:
    oracle = torch.tensor([[1.0, 1e6]], dtype=torch.float64)
    assert compare("y", oracle.to(torch.float16), oracle, oracle.to(torch.float16)).passed


@pytest.mark.parametrize(
    ("actual", "oracle", "passed"),
    [
        (math.inf, 65515.0, True),  # rounds to 65504, but 65520 rounds to infinity
        (65504.0, 65525.0, True),
        (math.inf, 65440.0, False),
        (-math.inf, 65515.0, False),
        (60000.0, 65525.0, False),
        (60000.0, 65515.0, False),
        (math.nan, 65515.0, False),
        (65504.0, 65700.0, False),
        (-math.inf, -65525.0, True),
    ],
)
def test_at_the_edge_of_a_dtype_a_sum_may_end_on_either_side(actual: float, oracle: float, passed: bool) -> None:
    """Seen on an H200: of a million sums of large terms, 20 lay within their errors of where fp16 overflows."""
    truth = torch.tensor([[1.0, 2.0, oracle]], dtype=torch.float64)
    found = compare("y", torch.tensor([[1.0, 2.0, actual]]).half(), truth, truth.half())
    assert (passed, True) == (found.passed, found.steady)


def test_an_honest_one_at_the_edge_grants_its_neighbours_nothing() -> None:
    oracle = torch.tensor([[65515.0, 100.0]], dtype=torch.float64)
    honest, actual = torch.tensor([[math.inf, 100.0]]).half(), torch.tensor([[65504.0, 120.0]]).half()
    found = compare("y", actual, oracle, honest)
    assert ([[0, 1]], False) == (found.bad.nonzero().tolist(), found.passed)


@pytest.mark.parametrize("shape", [(0,), (0, 128), (5, 0)])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
def test_empty(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    empty = torch.empty(shape, dtype=dtype)
    assert compare("y", empty, empty.double(), empty).passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_scalar(dtype: torch.dtype) -> None:
    value = torch.tensor(1.5, dtype=dtype)
    assert (True, False) == tuple(compare("y", got, value.double(), value).passed for got in (value, value * 2))


@pytest.mark.parametrize("dtype", FLOATS)
def test_all_zero_is_steady_and_passes(dtype: torch.dtype) -> None:
    zeros = torch.zeros(4, 64, dtype=dtype)
    found = compare("y", zeros, zeros.double(), zeros)
    assert (True, True) == (found.passed, found.steady)


def test_honest_that_lost_its_digits_is_not_steady() -> None:
    oracle = torch.full((4, 8), 1e-12, dtype=torch.float64)
    assert not compare("y", torch.zeros(4, 8), oracle, torch.full((4, 8), 1e-6)).steady


def test_integers_must_be_equal() -> None:
    truth = torch.arange(12).reshape(3, 4)
    wrong = truth.clone()
    wrong[2, 1] += 1
    assert (True, False) == tuple(compare("i", got, truth, truth).passed for got in (truth, wrong))


def test_booleans_must_be_equal() -> None:
    truth = torch.tensor([True, False])
    assert (True, False) == tuple(compare("b", got, truth, truth).passed for got in (truth, ~truth))


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        (torch.float64, "full"),
        (torch.float32, "full"),
        (torch.bfloat16, "low"),
        (torch.int8, "exact"),
        (torch.bool, "exact"),
    ],
)
def test_precision_of(dtype: torch.dtype, precision: str) -> None:
    assert precision == precision_of(dtype)


@pytest.mark.parametrize(
    ("value", "ulp"),
    [(1.0, 2.0**-10), (1.99, 2.0**-10), (2.0, 2.0**-9), (-1024, 1.0), (0.0, 2.0**-24), (1e-9, 2.0**-24)],
)
def test_ulp(value: float, ulp: float) -> None:
    assert ulp == float(ulp_at(torch.tensor(value, dtype=torch.float64), torch.float16))


def _by_formula(actual: np.ndarray, oracle: np.ndarray, eps: float) -> dict[str, float]:
    """The seven errors in NumPy, as docs and design define them."""
    error = np.abs(actual - oracle)
    scale = np.maximum(np.abs(oracle), np.sqrt(np.mean(oracle**2)) * eps)
    mse = np.mean(error**2)
    return {
        "max_abs": error.max(),
        "max_rel": (error / scale).max(),
        "mae": error.mean(),
        "mse": mse,
        "rmse": np.sqrt(mse),
        "psnr": 20 * np.log10(np.abs(oracle).max() / np.sqrt(mse)),
        "cosine": np.sum(actual * oracle) / np.sqrt(np.sum(actual**2) * np.sum(oracle**2)),
    }


@pytest.mark.parametrize("dtype", FLOATS)
def test_metrics_by_formula(dtype: torch.dtype) -> None:
    oracle, honest = _truth(*_inputs(dtype))
    expected = _by_formula(honest.double().numpy(), oracle.numpy(), torch.finfo(dtype).eps)
    metrics = {metric.tag.removesuffix(":c"): metric.value for metric in compare("c", honest, oracle, honest).metrics()}
    assert {tag: pytest.approx(value, rel=1e-9) for tag, value in expected.items()} == {
        tag: metrics[tag] for tag in expected
    }


def test_metrics_of_an_exact_result_can_be_written() -> None:
    ones = torch.ones(3, 4)
    metrics = {metric.tag: metric.value for metric in compare("y", ones, ones.double(), ones).metrics()}
    assert ("inf", 1.0, 0.0) == (metrics["psnr:y"], metrics["cosine:y"], metrics["rmse:y"])


def test_ratio_says_how_far_beyond_the_bound() -> None:
    oracle = torch.ones(1, 64, dtype=torch.float64)
    actual = torch.ones(1, 64, dtype=torch.bfloat16)
    actual[0, 3] = 1 + 4 * 2.0**-7  # four ulps, and the bound is 4 times half an ulp
    assert math.isclose(2.0, compare("y", actual, oracle, oracle.to(torch.bfloat16)).worst_ratio)


def test_an_honest_implementation_that_overflows_is_no_crash() -> None:
    oracle = torch.tensor([[40000.0, 1.0]], dtype=torch.float64)
    actual, honest = torch.tensor([[40000.0, 1.0]]).half(), torch.tensor([[math.inf, 1.0]]).half()

    found = compare("y", actual, oracle, honest, "low")

    assert (-math.inf, True) == (found.honest.psnr_db, found.passed)
