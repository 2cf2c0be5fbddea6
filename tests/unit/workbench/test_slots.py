"""Slots: right outputs pass in every kind of reference; one wrong element, a stale slot, a missing call do not."""

import pytest
import torch

from kernelci.workbench import slots
from kernelci.workbench.slots import Bank

from .made_banks import COUNT, IN_PLACE, KINDS, PRODUCT, ROWS, SCALED, MakeBank, answer, as_bits, wrong


@pytest.mark.parametrize("kind", KINDS)
def test_right_outputs_pass(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    for _ in range(3):
        made.deal()
        answer(made)
        made.check(COUNT)


@pytest.mark.parametrize("slot", [0, 3, COUNT - 1])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scalars only"])
def test_one_wrong_element_of_one_slot(bank: MakeBank, kind: str, slot: int) -> None:
    made = bank(KINDS[kind])
    made.deal()
    answer(made)
    name = next(iter(made.layout.outputs))
    element = made.slots_of(name)[slot, 2, 17 % made.slots_of(name).shape[2]]
    element.copy_(torch.tensor(7.0 if element.dtype.is_floating_point else 1000).to(element.dtype))
    assert f"output {name} of slot {slot} is wrong" in wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_an_input_that_was_used_as_scratch(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    answer(made)
    name = next(iter(made.layout.specs))
    made.check(COUNT)
    as_bits(made.slots_of(name))[3].zero_()
    assert f"input {name} of slot 3 was changed" == wrong(made)


def test_an_input_that_may_change(bank: MakeBank) -> None:
    made = bank(SCALED + '\nmutates = ("x",)\n')
    made.deal()
    answer(made)
    made.slots_of("x").zero_()
    made.check(COUNT)


@pytest.mark.parametrize("slot", [0, COUNT - 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_that_nobody_wrote(bank: MakeBank, kind: str, slot: int) -> None:
    made = bank(KINDS[kind])
    made.deal()
    stale = {name: as_bits(made.slots_of(name))[slot].clone() for name in made.layout.outputs}
    answer(made)
    for name, values in stale.items():
        as_bits(made.slots_of(name))[slot].copy_(values)
    assert f"of slot {slot} is wrong" in wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_the_answers_of_the_window_before(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    answer(made)
    kept = {name: as_bits(made.slots_of(name)).clone() for name in made.layout.outputs}
    made.deal()
    for name, values in kept.items():
        as_bits(made.slots_of(name)).copy_(values)
    assert "100% of the slots" in wrong(made)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scalars only", "in place")])
def test_the_answer_of_the_slot_before(bank: MakeBank, kind: str) -> None:
    made = bank(KINDS[kind])
    made.deal()
    answer(made)
    name = next(iter(made.layout.outputs))
    values = as_bits(made.slots_of(name))
    values[4].copy_(values[3].clone())
    assert "of slot 4" in wrong(made)


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
    answer(made, 3)
    made.check(3)
    made.slots_of("y")[2, 0, 0] += 1
    assert "of slot 2" in wrong(made, 3)


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
    assert "output i of slot 3" in wrong(made)


STEEP = """
independent = {"rows": ("x",)}
def cases():
    yield bench("steep", rows=4, cols=33)
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=torch.float32)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return (x * 1e6).cos()
def honest(x):
    return {"y": (x.double() * 1e6).cos()}
"""


def _off_by(bank: Bank, off: float) -> None:
    bank.deal()
    bank.slots_of("y").copy_((bank.slots_of("x").double() * 1e6).cos() + off)


def test_what_an_ulp_of_an_input_costs_is_allowed(bank: MakeBank) -> None:
    made = bank(STEEP)
    _off_by(made, 2.0**-12)
    made.check(COUNT)


def test_more_than_an_ulp_of_an_input_costs_is_not(bank: MakeBank) -> None:
    made = bank(STEEP)
    _off_by(made, 2.0**-6)
    assert "output y of slot 0" in wrong(made)


def test_nothing_persists_in_the_l2_when_new_values_come(bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, bool]] = []
    made = bank(SCALED)
    before = made.slots_of("x").clone()
    monkeypatch.setattr(slots, "nothing_persists", lambda device: said.append((device, _same(made, before))))
    made.deal()
    assert [("cpu", True)] == said


def _same(bank: Bank, before: torch.Tensor) -> bool:
    return torch.equal(bank.slots_of("x"), before)
