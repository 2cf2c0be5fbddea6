"""Slots: right outputs pass in every kind of reference; one wrong element, a stale slot, a missing call do not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from kernelci.errors import Verdict
from kernelci.reference import Reference
from kernelci.workbench import oracle, slots
from kernelci.workbench.arena import Arena
from kernelci.workbench.drawn import output_axes
from kernelci.workbench.slots import Bank, layout

Written = Callable[[str], Reference]
MakeBank = Callable[..., Bank]
COUNT = 7
SCALED = """
def cases():
    yield bench("a few", rows=4, cols=33, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "k": 3.0}
def outputs(case):
    return {"y": like("x")}
def reference(x, k):
    return x * k
"""
ROWS = SCALED + '\nindependent = {"rows": ("x",)}\n'
FP8 = SCALED.replace('dtype="float32"', 'dtype="float8_e4m3fn"')
ALONE = SCALED.replace("dtype=case.dtype)", "dtype=case.dtype).abs()")
DATA_DEPENDENT = ROWS.replace("return x * k", "return x * k if float(x.sum()) > 0 else k * x")
IN_PLACE = SCALED.replace('{"y": like("x")}', '{"x": alias("x")}')
INTEGERS = """
def cases():
    yield bench("a few", rows=4, cols=33)
def inputs(case, draw):
    return {"x": draw.integers(case.rows, case.cols, low=-99, high=99, dtype=torch.int32)}
def outputs(case):
    return {"y": like("x"), "positive": tensor(case.rows, case.cols, dtype=torch.bool)}
def reference(x):
    return x + 1, x > 0
"""
PRODUCT = """
independent = {"m": ("a",), "n": ("b",)}
def cases():
    yield bench("a few", m=4, n=24, k=16, dtype="bfloat16")
def inputs(case, draw):
    return {"a": draw.normal(case.m, case.k, dtype=case.dtype), "b": draw.normal(case.n, case.k, dtype=case.dtype)}
def outputs(case):
    return {"c": tensor(case.m, case.n, dtype=case.dtype)}
def reference(a, b):
    return a @ b.T
"""
TURNED = PRODUCT.replace("tensor(case.m, case.n,", "tensor(case.n, case.m,").replace("a @ b.T", "b @ a.T")
NUMBERS = """
def cases():
    yield bench("counting", size=33)
def inputs(case, draw):
    return {"size": case.size}
def outputs(case):
    return {"y": tensor(case.size, dtype="float32")}
def reference(size):
    return torch.arange(size, dtype=torch.float32)
"""
SUMMED = """
independent = {"rows": ("x",)}
def cases():
    yield bench("a few", rows=9, cols=33, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x"), "total": tensor(case.cols, dtype=case.dtype)}
def reference(x):
    return 2 * x, x.sum(0)
"""
PRODUCT_AND_ROWS = PRODUCT.replace(
    "case.n, dtype=case.dtype)}\ndef ref", 'case.n, dtype=case.dtype), "r": tensor(case.m, dtype=case.dtype)}\ndef ref'
).replace("a @ b.T", "a @ b.T, (a @ b.T).sum(-1)")
KINDS = {
    "no size is independent": SCALED,
    "rows are independent": ROWS,
    "fp8": FP8,
    "drawn alone": ALONE,
    "asks for values": DATA_DEPENDENT,
    "in place": IN_PLACE,
    "integers and booleans": INTEGERS,
    "rows and columns are independent": PRODUCT,
    "rows and columns, turned": TURNED,
    "one output is a sum over all rows": SUMMED,
    "one output has no columns": PRODUCT_AND_ROWS,
    "scalars only": NUMBERS,
}


@pytest.fixture
def bank(written: Written) -> Iterator[MakeBank]:
    """Make a bank for the case of a reference with this text."""
    arenas: list[Arena] = []

    def make(text: str, count: int = COUNT, seed: str = "s") -> Bank:
        reference = written(text)
        (case,) = reference.cases()
        arenas.append(Arena("cpu", count * layout(reference, case).stride))
        return Bank(reference, case, arenas[-1], count, seed)

    yield make
    for arena in arenas:
        arena.close()


def _inputs(bank: Bank) -> dict[str, Any]:
    """What a kernel finds in each slot."""
    return {**bank.layout.scalars, **{name: bank.slots_of(name) for name in bank.layout.specs}}


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.view(torch.uint8) if values.dtype.itemsize == 1 else values


def _answer(bank: Bank, count: int = COUNT) -> None:
    """Do what an honest kernel does in the first slots."""
    for slot in range(count):
        values = {
            name: value[slot] if isinstance(value, torch.Tensor) else value for name, value in _inputs(bank).items()
        }
        truth = oracle.ask(bank.reference, values, bank.layout.outputs)
        for name in bank.layout.outputs:
            _bits(bank.slots_of(name))[slot].copy_(_bits(truth.honest[name]))


def _wrong(bank: Bank, count: int = COUNT) -> str:
    with pytest.raises(Verdict) as caught:
        bank.check(count)
    assert "wrong-while-timed" == caught.value.reason
    return caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_right_outputs_pass(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    for _ in range(3):
        made.deal()
        _answer(made)
        made.check(COUNT)


@pytest.mark.parametrize("slot", [0, 3, COUNT - 1])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scalars only"])
def test_one_wrong_element_of_one_slot(bank: MakeBank, kind: str, slot: int) -> None:
    made = bank(KINDS[kind])
    made.deal()
    _answer(made)
    name = next(iter(made.layout.outputs))
    element = made.slots_of(name)[slot, 2, 17 % made.slots_of(name).shape[2]]
    element.copy_(torch.tensor(7.0 if element.dtype.is_floating_point else 1000).to(element.dtype))
    assert f"output {name} of slot {slot} is wrong" in _wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_an_input_that_was_used_as_scratch(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    _answer(made)
    name = next(iter(made.layout.specs))
    made.check(COUNT)
    _bits(made.slots_of(name))[3].zero_()
    assert f"input {name} of slot 3 was changed" == _wrong(made)


def test_an_input_that_may_change(bank: MakeBank) -> None:
    made = bank(SCALED + '\nmutates = ("x",)\n')
    made.deal()
    _answer(made)
    made.slots_of("x").zero_()
    made.check(COUNT)


@pytest.mark.parametrize("slot", [0, COUNT - 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_that_nobody_wrote(bank: MakeBank, kind: str, slot: int) -> None:
    made = bank(KINDS[kind])
    made.deal()
    stale = {name: _bits(made.slots_of(name))[slot].clone() for name in made.layout.outputs}
    _answer(made)
    for name, values in stale.items():
        _bits(made.slots_of(name))[slot].copy_(values)
    assert f"of slot {slot} is wrong" in _wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_the_answers_of_the_window_before(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    _answer(made)
    kept = {name: _bits(made.slots_of(name)).clone() for name in made.layout.outputs}
    made.deal()
    for name, values in kept.items():
        _bits(made.slots_of(name)).copy_(values)
    assert "100% of the slots" in _wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_the_answer_of_the_slot_before(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    _answer(made)
    name = next(iter(made.layout.outputs))
    values = _bits(made.slots_of(name))
    values[4].copy_(values[3].clone())
    assert "of slot 4" in _wrong(made)


def test_two_deals_give_other_values(bank: MakeBank) -> None:
    made = bank(ROWS)
    dealt = []
    for _ in range(2):
        made.deal()
        dealt.append([made.slots_of(name).clone() for name in ("x", "y")])
    assert [False, False] == [bool((one == other).any()) for one, other in zip(*dealt, strict=True)]


def test_a_seed_gives_the_same_values(bank: MakeBank) -> None:
    dealt = []
    for seed in ("s", "s", "t"):
        made = bank(ROWS, seed=seed)
        made.deal()
        dealt.append(made.slots_of("x").clone())
    assert [True, False] == [torch.equal(dealt[0], other) for other in dealt[1:]]


def test_dealing_a_few_leaves_the_other_slots(bank: MakeBank) -> None:
    made = bank(ROWS)
    made.deal()
    before = [made.slots_of(name).clone() for name in ("x", "y")]
    made.deal(3)
    same = [
        [bool((old[slot] == made.slots_of(name)[slot]).all()) for slot in range(COUNT)]
        for name, old in zip(("x", "y"), before, strict=True)
    ]
    assert [[False] * 3 + [True] * 4] * 2 == same


def test_a_window_of_a_few_is_checked_as_far_as_it_goes(bank: MakeBank) -> None:
    made = bank(ROWS)
    made.deal(3)
    _answer(made, 3)
    made.check(3)
    made.slots_of("y")[2, 0, 0] += 1
    assert "of slot 2" in _wrong(made, 3)


def test_values_between_the_slots_stay(bank: MakeBank) -> None:
    made = bank(ROWS)
    whole = made._arena.raw(0, made._arena.size)
    whole.fill_(171)
    made.deal()
    used = sum(made.slots_of(name).numel() * 4 for name in ("x", "y"))
    assert int((whole == 171).sum()) >= made._arena.size - used


def test_poison_of_outputs_is_plausible(bank: MakeBank) -> None:
    made = bank(SCALED)
    made.deal()
    values = made.slots_of("y")
    assert (True, True) == (bool(torch.isfinite(values).all()), 0.5 < float(values.std()) < 2)


def test_layout_counts_bytes(bank: MakeBank) -> None:
    made = bank(PRODUCT).layout
    assert ((4 * 16 + 24 * 16) * 2, 4 * 24 * 2) == (made.read, made.written)


def test_the_call_names_own_outputs_only(bank: MakeBank) -> None:
    call = bank(IN_PLACE).layout.call(bank(IN_PLACE).case, 3)
    assert ({"x", "k"}, {}, 3) == (set(call.arguments), call.outputs, call.config)


TALL = """
independent = {"rows": ("x",)}
def cases():
    yield bench("many rows", rows=5000, cols=2, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""


@pytest.mark.parametrize("row", [0, 4999])
def test_the_first_and_the_last_row_are_always_checked(bank: MakeBank, row: int) -> None:
    made = bank(TALL)
    made.deal()
    _answer(made)
    made.slots_of("y")[5, row, 1] += 1
    assert "of slot 5" in _wrong(made)


@pytest.mark.parametrize("seed", ["s", "t", "u"])
def test_few_slots_are_checked_in_as_many_rows_as_many(bank: MakeBank, seed: str) -> None:
    made = bank(TALL, count=2, seed=seed)
    made.deal()
    _answer(made, 2)
    made.slots_of("y")[:, 7::50] += 1
    assert "output y of slot" in _wrong(made, 2)


def test_which_rows_are_checked_is_secret(bank: MakeBank) -> None:
    seen = {tuple(int(row) for row in bank(TALL, seed=f"{seed}")._entries(1)[0][0]) for seed in range(8)}
    assert (8, True) == (len(seen), all({0, 4999} <= set(rows) for rows in seen))


def test_slots_have_rows_of_their_own(bank: MakeBank) -> None:
    rows = bank(TALL, count=64)._entries(64)[0]
    assert (64, 4) == (len(rows.unique(dim=0)), rows.shape[1])


@pytest.mark.parametrize(
    ("text", "names"),
    [(PRODUCT, ["m", "n"]), (PRODUCT_AND_ROWS, ["m"]), (SUMMED, []), (SUMMED.replace("case.cols, d", "18, d"), [])],
)
def test_entries_are_those_of_sizes_that_all_outputs_follow(written: Written, text: str, names: list[str]) -> None:
    reference = written(text)
    assert names == [cut.name for cut in slots.cuts(reference, reference.cases()[0])]


def test_an_output_that_grows_twice_as_fast_is_followed_by_nobody(written: Written) -> None:
    reference = written(SUMMED.replace("tensor(case.cols,", "tensor(2 * case.rows,"))
    assert {"y": 0} == output_axes(reference, reference.cases()[0], "rows")


def test_room_is_that_of_all_slots_together(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "WHOLE_ELEMENTS", 40 * 2)  # one row of each slot, however they are divided
    monkeypatch.setattr(slots, "CHUNK_ELEMENTS", 4 * 2)
    made = bank(TALL, count=40)
    (rows,) = made._entries(40)
    assert ((40, 1), True, 4) == (tuple(rows.shape), {0, 4999} <= set(rows.flatten().tolist()), made._at_once([rows]))


@pytest.mark.parametrize("afford", [1, 2, 3, 4])
def test_rows_within_are_checked_however_few_there_is_room_for(
    bank: MakeBank, monkeypatch: pytest.MonkeyPatch, afford: int
) -> None:
    monkeypatch.setattr(slots, "WHOLE_ELEMENTS", 40 * 2 * afford)
    (rows,) = bank(TALL, count=40)._entries(40)
    within = set(rows.flatten().tolist()) - {0, 4999}
    assert (afford, True, True) == (rows.shape[1], len(within) >= 30, {0, 4999} <= set(rows.flatten().tolist()))


def test_where_not_all_slots_can_be_compared_both_ends_are(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "WHOLE_ELEMENTS", 4 * 33 * 4)
    chosen = bank(SCALED, count=40)._chosen(40)
    assert (4, {0, 39}, sorted(chosen)) == (len(chosen), {0, 39} & set(chosen), chosen)


def test_a_slot_between_is_compared_however_large_outputs_are(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "WHOLE_ELEMENTS", 1)
    made = bank(SCALED)
    made.deal()
    _answer(made)
    made.slots_of("y")[1 : COUNT - 1] = 0
    assert "output y of slot" in _wrong(made)


def test_chunks_see_every_slot(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "CHUNK_BYTES", 4 * 4 * 33 * 4 * 2)  # two slots at once
    made = bank(ROWS)
    made.deal()
    _answer(made)
    made.check(COUNT)
    made.slots_of("y")[COUNT - 1, 3, 3] += 1
    assert f"of slot {COUNT - 1}" in _wrong(made)


TIES = """
independent = {"rows": ("x",)}
def cases():
    yield bench("ties", rows=4, cols=33)
def inputs(case, draw):
    return {"x": draw.integers(case.rows, case.cols, low=0, high=3)}
def outputs(case):
    return {"i": tensor(case.rows, dtype=torch.int64)}
def reference(x):
    return x.argmax(dim=-1)
def compare(name, actual, oracle, inputs):
    return inputs["x"].gather(1, actual[:, None])[:, 0] != inputs["x"].amax(dim=-1)
"""


def _last_of_the_largest(bank: Bank) -> None:
    x = bank.slots_of("x")
    bank.slots_of("i").copy_(x.shape[-1] - 1 - x.flip(-1).argmax(dim=-1))


def test_a_reference_that_compares_itself(bank: MakeBank) -> None:
    made = bank(TIES)
    made.deal()
    _last_of_the_largest(made)
    made.check(COUNT)


def test_a_reference_that_compares_itself_finds_what_is_wrong(bank: MakeBank) -> None:
    made = bank(TIES)
    made.deal()
    _last_of_the_largest(made)
    made.slots_of("i")[3, 2] = int(made.slots_of("x")[3, 2].argmin())
    assert "output i of slot 3" in _wrong(made)


def test_nothing_persists_in_the_l2_when_new_values_come(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, bool]] = []
    made = bank(SCALED)
    before = made.slots_of("x").clone()
    monkeypatch.setattr(slots, "nothing_persists", lambda device: said.append((device, _same(made, before))))
    made.deal()
    assert [("cpu", True)] == said


def _same(bank: Bank, before: torch.Tensor) -> bool:
    return torch.equal(bank.slots_of("x"), before)
