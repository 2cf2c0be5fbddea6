"""Results that lie behind the slots: read where a candidate says, and refused where that can't be."""

from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.reference import Reference, TensorSpec
from kernelci.workbench import workspace
from kernelci.workbench.arena import Arena, dtype_of
from kernelci.workbench.protocol import Source, Spots, Workspace
from kernelci.workbench.slots import Bank, layout

COUNT = 5
TEXT = """
from kernelci.reference import bench, like
def cases():
    yield bench("a few", rows=6, cols=33, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "k": 3.0}
def outputs(case):
    return {"y": like("x")}
def reference(x, k):
    return x * k
"""
KINDS = {
    "whole": TEXT,
    "rows are independent": TEXT + '\nindependent = {"rows": ("x",)}\n',
    "bytes": TEXT.replace("float32", "float8_e4m3fn"),
    "halves": TEXT.replace("float32", "bfloat16"),
}
ORDER = (3, 0, 4, 1, 2)
MakeBank = Callable[[str], Bank]
MIB = 2**20


@pytest.fixture
def bank(written: Callable[[str], Reference]) -> Iterator[MakeBank]:
    """Make a bank with a workspace, for the case of a reference with this text."""
    arenas: list[Arena] = []

    def make(text: str) -> Bank:
        reference = written(text)
        (case,) = reference.cases()
        arenas.append(Arena("cpu", layout(reference, case, True).bytes(COUNT), serves=True))
        return Bank(reference, case, arenas[-1], COUNT, "s")

    yield make
    for arena in arenas:
        arena.close()


def _spots(bank: Bank, turned: bool = False) -> dict[str, Spots]:
    """Places in another order than the slots."""
    where, spec = bank.workspace(COUNT), bank.layout.outputs["y"]
    assert where is not None
    rows, cols = spec.shape
    strides = (1, rows) if turned else (cols, 1)
    return {"y": Spots(tuple(where.begin + 512 * 4 * place for place in ORDER), spec.shape, strides, spec.dtype)}


def _answer(bank: Bank, spots: dict[str, Spots]) -> None:
    """Do what an honest kernel does that returns its output."""
    for slot in range(COUNT):
        values = (bank.slots_of("x")[slot].double() * 3.0).to(dtype_of(spots["y"].dtype))
        target = bank.result("y", slot, spots)
        narrow = values.dtype.itemsize == 1
        (target.view(torch.uint8) if narrow else target).copy_(values.view(torch.uint8) if narrow else values)


def _refused(bank: Bank, spots: dict[str, Spots]) -> str:
    with pytest.raises(Stop) as caught:
        bank.check(COUNT, spots)
    return caught.value.reason


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_right_results_pass(bank: MakeBank, kind: str, turned: bool) -> None:
    made = bank(KINDS[kind])
    spots = _spots(made, turned and kind != "bytes")
    for _ in range(2):
        made.deal(COUNT, spots)
        _answer(made, spots)
        made.check(COUNT, spots)


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_the_window_before_fail(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    spots = _spots(made)
    made.deal(COUNT, spots)
    _answer(made, spots)
    made.deal(COUNT)
    assert "wrong-while-timed" == _refused(made, spots)


def test_dealing_leaves_nothing_of_them(bank: MakeBank) -> None:
    made = bank(TEXT)
    spots = _spots(made)
    made.deal(COUNT, spots)
    _answer(made, spots)
    before = [made.result("y", slot, spots).clone() for slot in range(COUNT)]
    made.deal(COUNT, spots)
    assert not any((made.result("y", slot, spots) == before[slot]).any() for slot in range(COUNT))


def test_an_output_without_elements_lies_anywhere(bank: MakeBank) -> None:
    more = 'dtype=torch.float32), "none": tensor(0, 7, dtype=torch.float32)}'
    text = "import torch\nfrom kernelci.reference import tensor\n" + TEXT
    made = bank(text.replace('like("x")}', f"tensor(6, 33, {more}").replace("return x * k", "return x * k, x[:0, :7]"))
    spots = _spots(made)
    spots["none"] = Spots((spots["y"].offsets[0],) * COUNT, (0, 7), (7, 1), "float32")
    made.deal(COUNT, spots)
    _answer(made, spots)
    made.check(COUNT, spots)


def test_two_slots_in_one_place(bank: MakeBank) -> None:
    made = bank(TEXT)
    spots = {"y": replace(_spots(made)["y"], offsets=(_spots(made)["y"].offsets[0],) * COUNT)}
    made.deal(COUNT, spots)
    _answer(made, spots)
    assert "wrong-while-timed" == _refused(made, spots)


def _moved(spots: Spots, to: int) -> Spots:
    return replace(spots, offsets=(*spots.offsets[:-1], to))


LIES: dict[str, Callable[[Bank, Spots], Spots]] = {
    "in a slot": lambda bank, one: _moved(one, bank.layout.plan.places["x"].offset),
    "beyond the arena": lambda bank, one: _moved(one, 2**40),
    "over the end": lambda bank, one: _moved(one, _end(bank) - 4),
    "not aligned": lambda bank, one: _moved(one, one.offsets[0] + 2),
    "one slot too few": lambda bank, one: replace(one, offsets=one.offsets[1:]),
    "another shape": lambda bank, one: replace(one, shape=(33, 6)),
    "another dtype": lambda bank, one: replace(one, dtype="int32"),
    "strides over the end": lambda bank, one: replace(one, strides=(2**30, 1)),
    "strides of another shape": lambda bank, one: replace(one, strides=(1,)),
}


def _end(bank: Bank) -> int:
    where = bank.workspace(COUNT)
    assert where is not None
    return where.begin + where.size


@pytest.mark.parametrize("lie", LIES)
def test_a_lie(bank: MakeBank, lie: str) -> None:
    made = bank(TEXT)
    made.deal()
    assert "refused" == _refused(made, {"y": LIES[lie](made, _spots(made)["y"])})


@pytest.mark.parametrize("name", ["x", "z"])
def test_results_under_other_names(bank: MakeBank, name: str) -> None:
    made = bank(TEXT)
    made.deal()
    assert "refused" == _refused(made, {name: _spots(made)["y"]})


def test_places_where_there_is_no_workspace() -> None:
    with pytest.raises(Stop):
        workspace.checked({"y": Spots((0,), (1,), (1,), "float32")}, {"y": TensorSpec((1,), "float32")}, 1, None)


def test_no_workspace_where_the_arena_serves_none(written: Callable[[str], Reference]) -> None:
    reference = written(TEXT)
    (case,) = reference.cases()
    arena = Arena("cpu", COUNT * layout(reference, case).stride)
    assert None is Bank(reference, case, arena, COUNT, "s").workspace(COUNT)
    arena.close()


@given(st.lists(st.integers(1, 2**31), min_size=1, max_size=4), st.integers(1, 100))
def test_need(sizes: list[int], slots: int) -> None:
    found = workspace.need(sizes, sum(sizes))
    assert found.room(slots) >= slots * sum(sizes) + 3 * sum(sizes)


@pytest.mark.parametrize(
    ("size", "taken"),
    [(512, 512), (1, 512), (700 * 1024, MIB), (MIB, MIB), (6 * MIB, 20 * MIB // 3), (11 * MIB, 12 * MIB)],
)
def test_share_of_a_segment(size: int, taken: int) -> None:
    assert taken == workspace.need([size], 0).each


def test_region_lies_behind_the_slots_and_ends_with_the_arena() -> None:
    assert Workspace(2 * MIB, 6 * MIB) == workspace.region(1, 8 * MIB, 8 * MIB + 5)


def test_no_region_without_room() -> None:
    assert 0 == workspace.region(7 * MIB, 8 * MIB, 8 * MIB + 5).size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x, y): pass", True),
        ("def f(x, *, y): pass", True),
        ("def f(x): pass", False),
        ("def f(x, **others): pass", False),
        ("def f(x): pass\ndef f(x, y): pass", True),
        ("def f(x, y): pass\ndef f(x): pass", False),
        ("def g(x, y): pass", False),
        ("f = make()", False),
        ("def f(x, y", False),
    ],
)
def test_takes_its_outputs(text: str, expected: bool) -> None:
    source = Source("k", "k.py", {"k.py": text.encode()})
    assert expected == workspace.takes(source, "f", ("y",))


def test_place_within_the_arena_is_viewed(bank: MakeBank) -> None:
    made = bank(TEXT)
    spots = _spots(made, turned=True)
    assert (1, 6) == made.result("y", 0, spots).stride()
