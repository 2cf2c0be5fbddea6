"""Where seconds went: what counts to which part, and how it reads."""

import pytest

from kernelci.workbench.spent import Spent


def test_each_part_that_took_time_is_told_and_what_no_part_names() -> None:
    spent = Spent(setting_up=1.0, starting=2.0, windows=4.0, checking=0.04, auditing=2.5)
    expected = "seconds: setting up and tuning 1.0, starting processes 2.0, windows 4.0 (40%), auditing 2.5"
    assert f"{expected}, else 0.5; in all 10.0" == spent.text(10.0)


def test_windows_are_told_of_always() -> None:
    assert "seconds: windows 0.0, else 0.0; in all 0.0" == Spent().text(0.0)


def test_the_main_part_may_be_another() -> None:
    expected = "seconds: starting processes 1.0, drawing 0.5, calls 2.0 (50%), else 0.5; in all 4.0"
    assert expected == Spent(starting=1.0, drawing=0.5, calls=2.0).text(4.0, "calls")


def test_more_parts_than_there_was_time_leave_nothing_else() -> None:
    assert "seconds: drawing 1.1, windows 0.0 (0%), else 0.0; in all 1.0" == Spent(drawing=1.1).text(1.0)


def test_seconds_of_a_block_add_up() -> None:
    spent = Spent(drawing=100.0)
    with spent.during("drawing"):
        pass
    assert (True, 0.0) == (spent.drawing > 100.0, spent.checking)


def test_seconds_count_where_a_block_raises() -> None:
    spent = Spent()
    with pytest.raises(ValueError, match="no"), spent.during("checking"):
        raise ValueError("no")
    assert (True, 0.0) == (spent.checking > 0, spent.drawing)
