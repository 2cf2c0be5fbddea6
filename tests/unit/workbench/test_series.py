"""A series on the untrusted side: where its calls lie, how often it warms up, what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench.protocol import Call, Finished, Prepared, Series, TensorPlace
from kernelci.workbench.series import WARM_UP_CALLS, at_slot, looped, make_ready, moved

X, Y = TensorPlace(4096, (3, 5), (5, 1), "float32"), TensorPlace(8448, (3, 5), (5, 1), "float32")
CALL = Call({"rows": 3}, {"x": X, "k": 2.0}, {"y": Y}, 1)


def _series(mode: str, slots: tuple[int, ...] = (0, 1, 2)) -> Series:
    return Series(0, CALL, slots, 16384, mode)  # type: ignore[arg-type]


def test_slot_nought_is_the_call_itself() -> None:
    assert CALL == at_slot(CALL, 0)


def test_a_slot_moves_tensors_and_nothing_else() -> None:
    assert Call({"rows": 3}, {"x": moved(X, 256), "k": 2.0}, {"y": moved(Y, 256)}, 1) == at_slot(CALL, 256)


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_moves_add_up(first: int, second: int) -> None:
    assert moved(X, first + second) == moved(moved(X, first), second)


@pytest.mark.parametrize("mode", ["eager", "each"])
def test_the_first_call_alone_warms_up(mode: str) -> None:
    made: list[int] = []
    make_ready(_series(mode), [lambda slot=slot: made.append(slot) for slot in range(3)], "cpu")
    assert [0] * WARM_UP_CALLS == made


@pytest.mark.parametrize("mode", ["eager", "each"])
def test_a_go_makes_every_call_once_and_in_order(mode: str) -> None:
    made: list[int] = []
    series, _ = make_ready(_series(mode), [lambda slot=slot: made.append(slot) for slot in range(3)], "cpu")
    assert series is not None
    made.clear()
    assert (Finished(), [0, 1, 2]) == (series.go(), made)


def test_what_a_call_raises_is_raised() -> None:
    def call() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        make_ready(_series("eager"), [call], "cpu")


def test_a_graph_that_can_not_be_captured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    series, said = make_ready(_series("graph"), [lambda: None], "cpu")  # no CUDA here
    assert (None, True) == (series, said.refused != "")


def test_a_refusal_is_not_too_long_for_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(*_: object) -> None:
        raise RuntimeError("x" * 10_000)

    monkeypatch.setattr("kernelci.workbench.series.captured", captured)
    assert 4000 == len(make_ready(_series("graph"), [lambda: None], "cpu")[1].refused)


def test_no_calls() -> None:
    series, said = make_ready(_series("eager", ()), [], "cpu")
    assert series is not None
    assert (Prepared(), Finished()) == (said, series.go())


def test_a_loop_can_run_again() -> None:
    made: list[int] = []
    run = looped([lambda: made.append(1)], False, "cpu")
    run()
    run()
    assert 2 == len(made)
