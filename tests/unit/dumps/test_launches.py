"""What no GPU launches, and blocks that wait for others which can't run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import gpus
from kernelci.dumps import launches
from kernelci.dumps.specimen import Record

H100 = gpus.for_target("sm_90a")
BARRIER = "atom.add.release.gpu.global.u32 %r1, [%rd1], 1;\nWAIT: ld.acquire.gpu.u32 %r2, [%rd1];\n@%p1 bra WAIT;"


@pytest.mark.parametrize(
    ("grid", "block", "said"),
    [
        ((2**31 - 1, 1, 1), None, ""),
        ((2**31, 1, 1), None, "the grid has 2,147,483,648 along x, and 2,147,483,647 are the most"),
        ((1, 65_536, 1), None, "the grid has 65,536 along y, and 65,535 are the most"),
        ((1, 65_536), None, "the grid has 65,536 along y, and 65,535 are the most"),
        ((1, 1, 70_000), None, "the grid has 70,000 along z, and 65,535 are the most"),
        ((1, 1, 1), (32, 1, 65), "the block has 65 along z, and 64 are the most"),
        ((1, 1, 1), (64, 32, 1), "a block has 2,048 threads, and 1,024 are the most"),
        ((1, 1, 1), (1024, 1, 1), ""),
        (None, None, ""),
    ],
)
def test_limits(grid: tuple[int, ...] | None, block: tuple[int, ...] | None, said: str) -> None:
    assert said == launches.refused(grid, block, H100)


@pytest.mark.parametrize(
    ("grid", "wraps"),
    [((2**16, 2**15, 1), True), ((2**20, 2**12, 1), True), ((2**20, 2**10, 1), False), ((0, 5), False)],
)
def test_a_product_that_wraps_to_none(grid: tuple[int, ...], wraps: bool) -> None:
    assert wraps == ("wrap" in launches.refused(grid, None, H100, wraps=True))
    assert "" == launches.refused(grid, None, H100)


@given(st.lists(st.integers(0, 2**40), max_size=3), st.booleans())
def test_any_grid_has_an_answer(grid: list[int], wraps: bool) -> None:
    fits = all(size <= limit for size, limit in zip(grid, launches.GRID, strict=False))
    assert wraps or fits == (not launches.refused(grid, None, H100))


def _said(grid: int, occupancy: float | None = 0.5, ptx: str = BARRIER) -> list[str]:
    record = Record("k", grid=(grid, 1, 1), block=(256, 1, 1), occupancy=occupancy)
    return [*launches.remarks(record, H100, ptx)]


def test_blocks_that_wait_for_others_must_all_run_at_once() -> None:
    room = H100.sm_count * 4  # 2048 threads at a half are four blocks of 256
    assert ([], 1) == (_said(room), len(_said(room + 1)))
    assert f"of {room + 1:,} only {room:,} run at once" in _said(room + 1)[0]


@pytest.mark.parametrize("ptx", ["", "ld.acquire.gpu.u32 %r2, [%rd1];", "red.global.add.f32 [%rd1], %f1;"])
def test_blocks_that_do_not_wait_may_be_many(ptx: str) -> None:
    assert [] == _said(10**6, ptx=ptx)


def test_what_is_not_known_is_not_said() -> None:
    assert [] == _said(10**6, occupancy=None)
