"""What belongs together of two lists, by one likeness after another. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def matched(
    base: Iterable[Item], head: Iterable[Item], likenesses: Sequence[Callable[[Item], object]]
) -> tuple[list[tuple[Item, Item]], list[Item], list[Item]]:
    """Pairs of base and head, each item in one at the most, by the first likeness that two share; then what each side
    has left over."""
    theirs, ours, pairs = list(base), list(head), []
    for same in likenesses:
        for one in list(ours):
            other = next((each for each in theirs if same(each) == same(one)), None)
            if other is not None:
                pairs.append((other, one))
                ours.remove(one)
                theirs.remove(other)
    return pairs, theirs, ours
