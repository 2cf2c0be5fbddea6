"""Draws: the same seed gives the same values, each family does what it says, and sketches have shapes only."""

import pytest
import torch

from kernelci.workbench.draws import FAMILIES, STRESS, Draw, Sketch, equal, names

SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4), (0, 5), (5, 0), (4, 1)]


def _drawn(name: str, seed: str = "s", shape: tuple[int, ...] = (64, 256)) -> torch.Tensor:
    return Draw(name, seed, "cpu").normal(*shape, dtype=torch.float32)


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_values(family: str) -> None:
    assert torch.equal(_drawn(f"{family}:0"), _drawn(f"{family}:0"))


@pytest.mark.parametrize("family", FAMILIES)
def test_other_seed_other_values(family: str) -> None:
    assert not torch.equal(_drawn(f"{family}:0", "s"), _drawn(f"{family}:0", "t"))


@pytest.mark.parametrize("family", FAMILIES)
def test_other_number_other_values(family: str) -> None:
    assert not torch.equal(_drawn(f"{family}:0"), _drawn(f"{family}:1"))


def test_two_inputs_of_one_draw_differ() -> None:
    draw = Draw("normal:0", "s", "cpu")
    assert not torch.equal(draw.normal(9, dtype=torch.float32), draw.normal(9, dtype=torch.float32))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_shape_and_dtype(family: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    values = Draw(f"{family}:0", "s", "cpu").normal(*shape, dtype=dtype)
    assert (shape, dtype) == (tuple(values.shape), values.dtype)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_finite_in_half_precision(family: str) -> None:
    values = Draw(f"{family}:0", "s", "cpu").normal(64, 256, dtype=torch.float16)
    assert bool(torch.isfinite(values).all())


def test_normal() -> None:
    values = _drawn("normal:0")
    assert (True, True) == (abs(float(values.mean())) < 0.05, abs(float(values.std()) - 1) < 0.05)


def test_mean_and_scale() -> None:
    values = Draw("normal:0", "s", "cpu").normal(64, 256, dtype=torch.float32, mean=10, scale=0.1)
    assert (True, True) == (abs(float(values.mean()) - 10) < 0.01, abs(float(values.std()) - 0.1) < 0.01)


@pytest.mark.parametrize(("family", "low", "high"), [("large", 50, 80), ("tiny", 5e-4, 2e-3), ("offset", 7.9, 8.1)])
def test_size_of_a_family(family: str, low: float, high: float) -> None:
    assert low < float(_drawn(f"{family}:0").square().mean().sqrt()) < high


def test_constant_rows() -> None:
    values = _drawn("constant-rows:0")
    assert (0.0, True) == (float((values - values[:, :1]).abs().amax()), len(values[:, 0].unique()) > 60)


def test_ties() -> None:
    values = _drawn("ties:0")
    assert (True, True) == (torch.equal(values, values.round()), len(values.unique()) < 15)


def test_zeros_of_both_signs() -> None:
    values = _drawn("zeros:0")
    zeros = values[values == 0]
    assert 0.8 < len(zeros) / values.numel() < 1
    assert {False, True} == set(torch.signbit(zeros).tolist())


def test_cancelling_sums_are_small_beside_their_terms() -> None:
    values = _drawn("cancelling:0")
    assert float(values.sum(dim=1).abs().mean()) < 0.02 * float(values.abs().sum(dim=1).mean())


def test_outliers_sit_in_a_few_channels() -> None:
    sizes = _drawn("outliers:0", shape=(64, 4096)).square().mean(dim=0).sqrt()
    assert 0 < int((sizes > 30).sum()) < 200


def test_uniform_is_the_same_in_every_family() -> None:
    values = [Draw(f"{family}:0", "s", "cpu").uniform(1000, dtype=torch.float32, low=2, high=3) for family in FAMILIES]
    assert all(bool(((value >= 2) & (value < 3)).all()) for value in values)


def test_integers() -> None:
    values = Draw("large:0", "s", "cpu").integers(1000, low=3, high=6)
    assert ({3, 4, 5}, torch.int64) == (set(values.tolist()), values.dtype)


def test_unknown_family() -> None:
    with pytest.raises(KeyError):
        Draw("surprise:0", "s", "cpu")


def test_names() -> None:
    assert ("normal:0", "normal:1", *(f"{family}:0" for family in STRESS)) == names(2)


@pytest.mark.parametrize("shape", SHAPES)
def test_sketch_has_a_shape_and_no_values(shape: tuple[int, ...]) -> None:
    sketch = Sketch()
    made = (
        sketch.normal(*shape, dtype=torch.float16),
        sketch.uniform(*shape, dtype=torch.float16),
        sketch.integers(*shape, low=0, high=2, dtype=torch.float16),
    )
    assert {(shape, "meta", torch.float16)} == {(tuple(one.shape), one.device.type, one.dtype) for one in made}


@pytest.mark.parametrize(
    ("name", "axes", "expected"),
    [
        ("constant:0", 1, "all"),
        ("ties:0", 2, "many"),
        ("normal:0", 4, "few"),
        ("tail:0", 2, "few"),
        ("tail:1", 3, "many"),
    ],
)
def test_how_many_are_equal(name: str, axes: int, expected: str) -> None:
    assert expected == equal(name, axes)


def test_a_mean_in_16_bits_has_many_equal_elements() -> None:
    assert ["few", "many"] == [equal("offset:0", 2, narrow) for narrow in (False, True)]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_swinging_sum_comes_back_along_each_axis(axis: int) -> None:
    values = Draw("swinging:0", "s", "cpu").normal(64, 64, 64, dtype=torch.float32)
    assert (values.sum(axis).abs().mean() < values.abs().sum(axis).mean() / 4).item()
