"""Host and GPU on one axis: CUPTI brings their clocks together only to some ten microseconds, and the order tells more.

Seen on an H200: works that begin before the function that launched them, and works that end after the wait for them.
Where a call's works lie so, all of them are moved by the least that mends it; lengths and gaps stay.
"""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kernelci.workbench.happening import HOST, Happening


class OneCall(Struct, frozen=True):
    """A call, the wait for it, and what belongs to it: API calls within both, and the works that these started."""

    entry: Happening
    wait: Happening
    works: tuple[Happening, ...]
    functions: tuple[Happening, ...]

    @property
    def until_ns(self) -> int:
        """When the host knew that all was done."""
        return max(self.wait.end_ns, self.entry.end_ns)


def split(happenings: Sequence[Happening]) -> list[OneCall]:
    """The calls, in order; what lies in none of them is left out.

    A work belongs where the API call of its number does, for its own time may be off; without one, where it lies.
    """
    entries = [each for each in happenings if each.kind == "call"]
    waits = [each for each in happenings if each.kind == "wait"]
    launched: dict[int, list[Happening]] = defaultdict(list)
    for each in happenings:
        if each.kind not in HOST:
            launched[each.correlation].append(each)
    lone = [work for number in launched.keys() - launches(happenings).keys() for work in launched[number]]
    found = []
    for entry, wait in zip(entries, waits, strict=False):
        until = max(wait.end_ns, entry.end_ns)
        functions = [each for each in happenings if each.kind == "api" and entry.start_ns <= each.start_ns < until]
        numbers = dict.fromkeys(each.correlation for each in functions if each.correlation)
        works = [work for number in numbers for work in launched.pop(number, ())]
        works += [work for work in lone if entry.start_ns <= work.start_ns < until]
        works.sort(key=lambda each: each.start_ns)
        found.append(OneCall(entry, wait, tuple(works), tuple(functions)))
    return found


def shift_ns(one: OneCall) -> int:
    """By how much the call's works must move at least: none begins before its launch, nor ends after the wait."""
    if not one.works:
        return 0
    begins = launches(one.functions)
    firsts: dict[int, int] = {}
    for work in one.works:
        firsts.setdefault(work.correlation, work.start_ns)
    least = max((begins[number] - at for number, at in firsts.items() if number in begins), default=-one.until_ns)
    most = one.until_ns - max(work.end_ns for work in one.works)
    return least if least > 0 else max(least, min(most, 0))


def together(one: OneCall) -> OneCall:
    """The call with its works moved."""
    shift = shift_ns(one)
    return replace(one, works=tuple(_moved(work, shift) for work in one.works)) if shift else one


def _moved(work: Happening, shift: int) -> Happening:
    start = max(0, work.start_ns + shift)
    return replace(work, start_ns=start, end_ns=start + work.end_ns - work.start_ns)


def launches(happenings: Sequence[Happening]) -> dict[int, int]:
    """When the API call of each number began; of several the first."""
    begins: dict[int, int] = {}
    for each in happenings:
        if each.kind == "api" and each.correlation:
            begins.setdefault(each.correlation, each.start_ns)
    return begins
