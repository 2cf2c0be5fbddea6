"""The arena: where tensors lie, what guards them, and that two mappings see the same memory."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci.reference import TensorSpec
from kernelci.workbench.arena import ALIGNMENT_BYTES, GUARD_BYTES, Arena, Mapped, Plan, dtype_of, row_major
from kernelci.workbench.protocol import TensorPlace

SPECS = st.builds(
    TensorSpec,
    st.lists(st.integers(0, 20), max_size=3).map(tuple),
    st.sampled_from(["float32", "float16", "bfloat16", "int64", "bool", "float8_e5m2"]),
)
PLANS = st.lists(SPECS, min_size=1, max_size=4).map(lambda specs: Plan({f"t{i}": spec for i, spec in enumerate(specs)}))


@settings(max_examples=60, deadline=None)
@given(PLANS)
def test_guards_touch_every_tensor_on_both_sides(plan: Plan) -> None:
    for name, place in plan.places.items():
        before, after = plan.guards[name]
        size = TensorSpec(place.shape, place.dtype).elements * dtype_of(place.dtype).itemsize
        assert (before[1], after[0]) == (place.offset, place.offset + size)


@settings(max_examples=60, deadline=None)
@given(PLANS)
def test_guards_are_wide_and_nothing_overlaps(plan: Plan) -> None:
    zones = [zone for pair in plan.guards.values() for zone in pair]
    assert all(end - begin >= GUARD_BYTES for begin, end in zones)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(zones))
    assert zones[-1][1] <= plan.end


@settings(max_examples=60, deadline=None)
@given(PLANS)
def test_tensors_are_aligned(plan: Plan) -> None:
    assert {0} == {place.offset % ALIGNMENT_BYTES for place in plan.places.values()}


def test_size_of_a_slot() -> None:
    plan = Plan({"x": TensorSpec((1,), "float32")}, base=4096)
    assert plan.end - 4096 == plan.bytes


def _round(dtype: torch.dtype, values: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    arena = Arena("cpu", 2**16)
    assert arena.fd is not None
    other = Mapped("cpu", arena.size, arena.fd, b"")
    place = TensorPlace(512, (2, 2), (2, 1), str(dtype).removeprefix("torch."))
    arena.view(place).copy_(torch.tensor(values).reshape(2, 2))
    seen = other.view(place).clone()
    other.view(place).zero_()
    back = arena.view(place).clone()
    other.close()
    arena.close()
    return seen, back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8])
def test_two_mappings_share_memory(dtype: torch.dtype) -> None:
    seen, back = _round(dtype, [1, 2, 3, 4])
    assert ([[1, 2], [3, 4]], [[0, 0], [0, 0]]) == (seen.tolist(), back.tolist())


def test_view_is_contiguous_and_has_a_storage_of_its_own() -> None:
    arena = Arena("cpu", 2**16)
    view = arena.view(TensorPlace(1024, (3, 4), (4, 1), "float32"))
    assert (True, 0) == (view.is_contiguous(), view.storage_offset())
    arena.close()


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_empty_view(shape: tuple[int, ...]) -> None:
    arena = Arena("cpu", 2**16)
    assert torch.Size(shape) == arena.view(TensorPlace(0, shape, row_major(shape), "float32")).shape
    arena.close()


def test_view_of_a_scalar() -> None:
    arena = Arena("cpu", 2**16)
    arena.view(TensorPlace(256, (), (), "float32")).fill_(2.5)
    assert 2.5 == arena.view(TensorPlace(256, (), (), "float32")).item()
    arena.close()


def test_raw_bytes() -> None:
    arena = Arena("cpu", 2**16)
    arena.raw(10, 20).fill_(7)
    assert [0, *[7] * 10, 0] == arena.raw(9, 21).tolist()
    arena.close()


@pytest.mark.parametrize(
    ("shape", "strides"), [((), ()), ((3,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 4), (4, 4, 1))]
)
def test_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert strides == row_major(shape)


@pytest.mark.parametrize("name", ["float33", "nn", "", "Tensor"])
def test_no_dtype(name: str) -> None:
    with pytest.raises(ValueError, match="no dtype"):
        dtype_of(name)
