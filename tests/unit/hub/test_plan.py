"""Shards: all kernels once, none empty, balanced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import ConfigError
from kernelci.hub import plan

NAMES = st.lists(st.text("abcdef", min_size=1, max_size=6), unique=True, max_size=30)


@given(NAMES, st.integers(1, 12), st.dictionaries(st.text("abcdef", min_size=1, max_size=6), st.floats(0, 1e4)))
def test_every_kernel_is_in_one_shard(names: list[str], count: int, known: dict[str, float]) -> None:
    found = plan.shards(names, count, known)
    assert sorted(names) == sorted(name for shard, _ in found for name in shard)
    assert min(count, len(names)) == len(found)
    assert all(shard for shard, _ in found)


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=30), st.integers(1, 8))
def test_no_shard_is_longer_than_the_mean_and_one_kernel(seconds: list[float], count: int) -> None:
    known = {f"k{index}": value for index, value in enumerate(seconds)}
    found = plan.shards(list(known), count, known)
    assert max(total for _, total in found) <= sum(seconds) / len(found) + max(seconds) + 1e-6


def test_the_long_one_gets_a_shard_of_its_own() -> None:
    found = plan.shards(["a", "b", "c"], 2, {"a": 100, "b": 10, "c": 10})
    assert [(["a"], 100.0), (["b", "c"], 20.0)] == found


def test_an_unknown_kernel_takes_what_is_usual() -> None:
    assert [(["a", "c", "new"], 45.0)] == plan.shards(["a", "c", "new"], 1, {"a": 10, "c": 20})
    assert [(["new"], plan.UNKNOWN_S)] == plan.shards(["new"], 1, {})


def test_all_shards_share_a_seed() -> None:
    found = plan.matrix(["a", "b"], 2)["include"]
    assert (1, 16) == (len({shard["seed"] for shard in found}), len(found[0]["seed"]))


def test_nothing_to_do_is_an_empty_matrix() -> None:
    assert {"include": []} == plan.matrix([], 4)


@pytest.mark.parametrize("count", [0, -1, 257])
def test_a_count_that_no_matrix_has(count: int) -> None:
    with pytest.raises(ConfigError):
        plan.shards(["a"], count, {})
