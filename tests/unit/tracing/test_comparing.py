"""Base's trace against head's."""

from kernelci.tracing.comparing import changes
from kernelci.tracing.regions import Region, Trace, Track
from kernelci.tracing.table import Table, summed


def table(**lengths: float) -> Table:
    """Of one warp that is in each region for so long, in turn, and in no region in the end."""
    regions, now = [], 0.0
    for name, length in lengths.items():
        if name != "rest":
            regions.append(Region(name, now, now + length))
        now += length
    return summed(Trace((Track(0, 0, 0, 0.0, now, tuple(regions)),)))


def test_the_largest_change_comes_first() -> None:
    base, head = table(load=500, compute=400, rest=100), table(load=900, compute=300, rest=100)
    assert ["load 500 ns -> 900 ns a warp", "compute 400 ns -> 300 ns a warp"] == changes(base, head)


def test_what_hardly_differs_is_not_told() -> None:
    assert [] == changes(table(load=500, compute=500), table(load=501, compute=505))


def test_regions_of_one_side_and_gaps_are_told_too() -> None:
    base, head = table(load=500, rest=100), table(load=500, wait=50, rest=300)
    assert ["between regions 100 ns -> 300 ns a warp", "wait 0 s -> 50 ns a warp"] == changes(base, head)


def test_copying_that_is_no_longer_hidden_is_told() -> None:
    def pair(begin: float) -> Table:
        load, compute = Region("load", 0, 100), Region("compute", begin, begin + 100)
        return summed(Trace((Track(0, 0, 0, 0, 200, (load,)), Track(0, 0, 1, 0, 200, (compute,)))))

    assert ["overlap of copying and computing 100 % -> 0 %"] == changes(pair(0), pair(100))


def test_nothing_against_something_is_no_change() -> None:
    assert [] == changes(summed(Trace()), table(load=1))
