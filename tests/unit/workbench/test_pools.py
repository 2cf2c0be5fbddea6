"""Pools: each slot has its own values, the first those of the draw; what is no plain draw is drawn for each slot."""

from collections.abc import Callable
from random import Random

import pytest
import torch

from kernelci.reference import Case, Reference
from kernelci.workbench import pools
from kernelci.workbench.pools import Pool

Written = Callable[[str], Reference]
COUNT = 5
TEXT = """
def cases():
    yield bench("a few", rows=3, cols=8, dtype="{dtype}")
def inputs(case, draw):
    return {inputs}
def outputs(case):
    return {{"y": like("x")}}
def reference({names}):
    return x
"""


def _reference(
    written: Written, x: str = "draw.normal(case.rows, case.cols, dtype=case.dtype)", **more: str
) -> Reference:
    inputs = {"x": x} | {name: value for name, value in more.items() if name != "dtype"}
    text = "{" + ", ".join(f"{name!r}: {value}" for name, value in inputs.items()) + "}"
    return written(TEXT.format(inputs=text, names=", ".join(inputs), dtype=more.get("dtype", "float32")))


def _drawn(reference: Reference, seed: str = "s") -> dict[str, Pool]:
    (case,) = reference.cases()
    return pools.draw(reference, case, "normal:0", seed, "cpu", COUNT, Random(seed))


def _case(reference: Reference) -> Case:
    return reference.cases()[0]


def test_a_slot_is_a_stretch_of_the_pool() -> None:
    values = torch.arange(12 + 4 * 3)
    stacked = Pool(values, (3, 4), 3).stacked(5)
    assert [values[3 * slot : 3 * slot + 12].tolist() for slot in range(5)] == stacked.flatten(1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float4_e2m1fn_x2"])
def test_no_two_slots_are_alike(written: Written, dtype: str) -> None:
    stacked = _drawn(_reference(written, dtype=dtype))["x"].stacked(COUNT)
    bits = stacked.contiguous().view(torch.uint8) if dtype != "float32" else stacked
    assert (COUNT, (COUNT, 3, 8)) == (len(bits.flatten(1).unique(dim=0)), tuple(stacked.shape))


def test_scalars_stay_as_they_are(written: Written) -> None:
    assert 0.5 == _drawn(_reference(written, eps="0.5"))["eps"]


def test_two_inputs_have_pools_of_their_own(written: Written) -> None:
    found = _drawn(_reference(written, w="draw.normal(case.cols, dtype=case.dtype)"))
    assert [(COUNT, 3, 8), (COUNT, 8)] == [tuple(found[name].stacked(COUNT).shape) for name in ("x", "w")]


def test_no_slot_holds_values_of_another(written: Written) -> None:
    stacked = _drawn(_reference(written, "draw.normal(case.rows, 999, dtype=case.dtype)"))["x"].stacked(COUNT)
    assert COUNT * 3 * 999 - 9 <= len(stacked.flatten().unique())  # a few are alike by chance


def test_where_values_of_their_own_are_too_many_each_input_has_a_step_of_its_own(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "OWN_ELEMENTS", 0)
    found = _drawn(_reference(written, w="draw.normal(case.rows, case.cols, dtype=case.dtype)"))
    steps = [found[name].stacked(COUNT).stride(0) for name in ("x", "w")]
    assert (2, True) == (len({*steps}), all(step in pools.STEPS for step in steps))


def test_another_seed_gives_other_values(written: Written) -> None:
    reference = _reference(written)
    one, other = (_drawn(reference, seed)["x"].stacked(1) for seed in ("s", "t"))
    assert not torch.equal(one, other)


PLAIN = [
    ("draw.normal(case.rows, case.cols, dtype=case.dtype, mean=1.0)", True),
    ("draw.uniform(case.rows, case.cols, dtype=case.dtype)", True),
    ("draw.integers(case.rows, case.cols, low=0, high=9)", True),
    ("draw.normal(case.rows, case.cols, dtype=case.dtype).abs()", False),
    ("draw.lengths(case.rows, 400_000)", False),
]


@pytest.mark.parametrize(("x", "plain"), PLAIN)
def test_what_is_plain(written: Written, x: str, plain: bool) -> None:
    reference = _reference(written, x)
    assert plain == pools.is_plain(reference, _case(reference))


@pytest.mark.parametrize("x", [x for x, plain in PLAIN if not plain])
def test_what_is_not_plain_is_drawn_for_each_slot(written: Written, x: str) -> None:
    stacked = _drawn(_reference(written, x))["x"].stacked(COUNT)
    assert (COUNT, COUNT) == (len(stacked), len(stacked.flatten(1).unique(dim=0)))


def test_slots_that_are_drawn_alone_hold_what_the_reference_made(written: Written) -> None:
    stacked = _drawn(_reference(written, "draw.lengths(case.rows, 400_000)"))["x"].stacked(COUNT)
    assert [400_000] * COUNT == stacked.sum(dim=1).tolist()


def test_nothing_is_plain_where_values_are_needed(written: Written) -> None:
    reference = _reference(written, "draw.normal(int(draw.integers(1, low=1, high=4)), 8, dtype=case.dtype)")
    assert not pools.is_plain(reference, _case(reference))
