"""Which slots, rows and columns of a window are checked: secret ones, the ends, and as many as are affordable."""

import pytest

from kernelci.workbench import slots
from kernelci.workbench.drawn import output_axes

from .made_banks import COUNT, PRODUCT, PRODUCT_AND_ROWS, ROWS, SCALED, SUMMED, MakeBank, Written, answer, wrong

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
    answer(made)
    made.slots_of("y")[5, row, 1] += 1
    assert "of slot 5" in wrong(made)


@pytest.mark.parametrize("seed", ["s", "t", "u"])
def test_few_slots_are_checked_in_as_many_rows_as_many(bank: MakeBank, seed: str) -> None:
    made = bank(TALL, count=2, seed=seed)
    made.deal()
    answer(made, 2)
    made.slots_of("y")[:, 7::50] += 1
    assert "output y of slot" in wrong(made, 2)


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
    answer(made)
    made.slots_of("y")[1 : COUNT - 1] = 0
    assert "output y of slot" in wrong(made)


def test_chunks_see_every_slot(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "CHUNK_BYTES", 4 * 4 * 33 * 4 * 2)  # two slots at once
    made = bank(ROWS)
    made.deal()
    answer(made)
    made.check(COUNT)
    made.slots_of("y")[COUNT - 1, 3, 3] += 1
    assert f"of slot {COUNT - 1}" in wrong(made)
