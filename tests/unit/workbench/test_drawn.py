"""What calls are made on: variants of draws, layouts, the plan of a reference's draws, hidden cases."""

from pathlib import Path

import pytest
import torch

from kernelci.reference import LAYOUTS, Case, Reference, Sizes, check, load, sizes
from kernelci.workbench import hidden
from kernelci.workbench.arena import laid_out
from kernelci.workbench.drawn import VARIED, make, plan, planned, split
from kernelci.workbench.draws import FAMILIES, Draw

REFERENCES = Path(__file__).resolve().parents[3] / "references"
CASE = check(rows=6, cols=33, dtype="float32")


@pytest.fixture(scope="module")
def softmax() -> Reference:
    """The repository's own reference."""
    return load(REFERENCES / "softmax.py")


def _inputs(reference: Reference, draw: str, case: Case = CASE) -> torch.Tensor:
    x = make(reference, case, draw, "s", "cpu").inputs["x"]
    assert isinstance(x, torch.Tensor)
    return x


def test_split() -> None:
    assert [("normal:0", "", ""), ("tail:0", "poked", "x")] == [split("normal:0"), split("tail:0+poked.x")]


def test_poked_differs_in_one_element(softmax: Reference) -> None:
    assert 1 == int((_inputs(softmax, VARIED) != _inputs(softmax, f"{VARIED}+poked.x")).sum())


def test_poked_changes_the_truth(softmax: Reference) -> None:
    before, after = (make(softmax, CASE, draw, "s", "cpu").truth.oracle["y"] for draw in (VARIED, f"{VARIED}+poked.x"))
    assert float((before - after).abs().amax()) > 0.1


def test_alone_is_the_first_row(softmax: Reference) -> None:
    drawn = make(softmax, CASE, f"{VARIED}+alone.rows", "s", "cpu")
    assert (1, True) == (drawn.case.rows, torch.equal(drawn.inputs["x"], _inputs(softmax, VARIED)[:1]))


def test_permuted_has_the_same_rows(softmax: Reference) -> None:
    plain, permuted = _inputs(softmax, VARIED), _inputs(softmax, f"{VARIED}+permuted.rows")
    assert (False, True) == (torch.equal(plain, permuted), torch.equal(plain.sort(0).values, permuted.sort(0).values))


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "expanded"])
def test_a_layout_keeps_the_values(softmax: Reference, layout: str) -> None:
    drawn = make(softmax, CASE, f"{VARIED}+{layout}.x", "s", "cpu")
    assert ({"x": layout}, True) == (drawn.layouts, torch.equal(drawn.inputs["x"], _inputs(softmax, VARIED)))


def test_expanded_repeats_one_row(softmax: Reference) -> None:
    x = _inputs(softmax, f"{VARIED}+expanded.x")
    assert torch.equal(x, x[:1].expand(6, 33))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("", ((5, 1), 0)),
        ("offset3", ((5, 1), 3)),
        ("strided", ((10, 2), 0)),
        ("transposed", ((1, 4), 0)),
        ("expanded", ((0, 1), 0)),
        ("padded", ((8, 1), 0)),
    ],
)
def test_laid_out(layout: str, expected: tuple[tuple[int, ...], int]) -> None:
    assert expected == laid_out((4, 5), layout)


def test_the_plan_gives_every_layout_a_case(softmax: Reference) -> None:
    cases = softmax.cases()
    drawn = {draw for draws in plan(softmax, cases, 3, few=True).values() for draw in draws}
    assert {f"{VARIED}+offset1.x", f"{VARIED}+offset3.y"} <= drawn


@pytest.mark.parametrize("few", [True, False])
def test_the_plan_runs_every_family_somewhere(softmax: Reference, few: bool) -> None:
    draws = {draw.partition(":")[0] for draws in plan(softmax, softmax.cases(), 3, few).values() for draw in draws}
    assert set(FAMILIES) == draws


def test_where_few_are_run_a_case_gets_three(softmax: Reference) -> None:
    assert {3} == {len(draws) for draws in plan(softmax, softmax.cases(), 3, few=True).values()}


def test_empty_cases_get_no_variant(softmax: Reference) -> None:
    case = check(rows=0, cols=4, dtype="float32")
    assert not any("+" in draw for draw in plan(softmax, (case,), 3, few=False)[planned(case)])


def test_hidden_cases_lie_in_the_domain(softmax: Reference) -> None:
    found = hidden.cases(softmax, "s", 20, lambda case: True)
    assert (20, True) == (len(found), all(softmax.allows(case) for case in found))


def test_hidden_cases_repeat_with_the_seed(softmax: Reference) -> None:
    first, again, other = (hidden.cases(softmax, seed, 5, lambda case: True) for seed in ("s", "s", "t"))
    assert (True, False) == (first == again, first == other)


def test_hidden_cases_fit_the_device(softmax: Reference) -> None:
    assert all(case.rows <= 64 for case in hidden.cases(softmax, "s", 5, lambda case: case.rows <= 64))


def test_a_hidden_case_is_found_by_its_name(softmax: Reference) -> None:
    case = hidden.cases(softmax, "s", 1, lambda case: True)[0]
    assert case == softmax.case_of(case.id)


@pytest.mark.parametrize("name", ["17x1000000-bf16", "17-bf16", "17x1000-fp64", "nonsense", "17x-3-bf16"])
def test_no_case_of_this_name(softmax: Reference, name: str) -> None:
    assert softmax.case_of(name) is None


@pytest.mark.parametrize("multiple", [1, 8, 48])
def test_sizes_are_multiples(softmax: Reference, multiple: int) -> None:
    domain = {"rows": Sizes(1, 999, multiple)}
    source = hidden.random.Random(3)
    sizes = [hidden.resized(CASE, domain, source).rows for _ in range(200)]
    assert all(domain["rows"].allow(size) for size in sizes)


def test_half_of_the_hidden_cases_are_aligned_in_every_size() -> None:
    domain, source = {"rows": sizes(1, 4096), "cols": sizes(1, 8192)}, hidden.random.Random(3)
    found = [hidden.resized(CASE, domain, source) for _ in range(400)]
    aligned = sum(case.rows % 8 == 0 and case.cols % 8 == 0 for case in found)
    assert 180 < aligned < 240


def test_sizes_without_a_multiple_in_their_domain_are_not_aligned() -> None:
    source = hidden.random.Random(3)
    assert {7} == {hidden.resized(CASE, {"rows": sizes(7, 7)}, source).rows for _ in range(40)}


def test_lengths_add_up() -> None:
    for family in FAMILIES:
        lengths = Draw(f"{family}:0", "s", "cpu").lengths(7, 100)
        assert (7, 100) == (len(lengths), int(lengths.sum()))


def test_lengths_hold_an_empty_group() -> None:
    assert 0 in Draw("normal:0", "s", "cpu").lengths(7, 10_000).tolist()


def test_skewed_integers_lie_in_few_buckets() -> None:
    even, skewed = (Draw(f"{family}:0", "s", "cpu").integers(4000, low=0, high=8) for family in ("normal", "outliers"))
    shares = [float((values == 7).double().mean()) for values in (even, skewed)]
    assert (True, True) == (shares[0] < 0.2, shares[1] > 0.8)
