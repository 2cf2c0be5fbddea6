"""What belongs together of two lists."""

from kernelci.pairing import matched


def test_the_first_likeness_that_two_share_pairs_them() -> None:
    found = matched(["a1", "b2", "c3"], ["c1", "b2", "d4"], (str, lambda word: word[0]))

    assert ([("b2", "b2"), ("c3", "c1")], ["a1"], ["d4"]) == found


def test_each_is_in_one_pair() -> None:
    assert ([("x", "x")], ["x"], []) == matched(["x", "x"], ["x"], (str,))
