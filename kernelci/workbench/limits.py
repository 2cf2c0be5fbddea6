"""Cases just beyond what 32 bits count (S4, full tier): one call, checked on secret entries, the first and last too.

The oracle of so many elements would take minutes; where a reference says what is `independent`, some entries will do.
"""

from collections.abc import Iterator

import torch

from kernelci.errors import Stop
from kernelci.reference import Case, Reference, Sizes
from kernelci.workbench.session import Session
from kernelci.workbench.slots import WRONG, Bank, cuts, layout

ELEMENTS = 2**31
ROOM = 6  # times a slot: the slot, staged inputs, poison, and the draw of a narrow type in float32
ENTRIES, EDGE = (192, 64), 64  # rows and columns that are looked at, and how many of them at either end


def case_at(reference: Reference, elements: int = ELEMENTS) -> Case | None:
    """The smallest case of the domain that has a tensor of more elements; None where the domain or `independent` allows
    none. Raises ReferenceFailed."""
    checks = [case for case in reference.cases() if case.kind == "check" and cuts(reference, case)]
    found = [case for one in checks for case in _grown(reference, one, elements)]
    return min(found, key=lambda case: layout(reference, case).bytes(1), default=None)


def _grown(reference: Reference, case: Case, elements: int) -> Iterator[Case]:
    """The case, one size after another made as large as it must be: independent ones first."""
    domain = {name: one for name, one in reference.domain.items() if isinstance(getattr(case, name, None), int)}
    names = [*(name for name in reference.independent if name in domain), *domain]
    for name in dict.fromkeys(names):
        case = case.with_value(name, _least(reference, case, name, domain[name], elements))
    if _largest(reference, case) > elements:
        yield Case("limit", case.values)


def _least(reference: Reference, case: Case, name: str, sizes: Sizes, elements: int) -> int:
    """The least value of a size at which a tensor has more elements; the largest if there is none."""
    low, high = max(1, -(-sizes.low // sizes.multiple)), sizes.high // sizes.multiple
    while low < high:
        middle = (low + high) // 2
        enough = _largest(reference, case.with_value(name, middle * sizes.multiple)) > elements
        low, high = (low, middle) if enough else (middle + 1, high)
    return low * sizes.multiple


def _largest(reference: Reference, case: Case) -> int:
    found = layout(reference, case)
    return max((spec.elements for spec in (*found.specs.values(), *found.outputs.values())), default=0)


def judge(session: Session, reference: Reference, case: Case, seed: str) -> None:
    """Call the entry once on a large case. Raises Stop: "wrong" with the place, or "cost" where memory is short;
    and ReferenceFailed."""
    need = ROOM * layout(reference, case).bytes(1)
    if session.arena.device != "cpu" and (free := torch.cuda.mem_get_info()[0]) < need:
        raise Stop("cost", f"{need:,} bytes of GPU memory needed for this case and its check, {free:,} are free")
    try:
        session.reserve(layout(reference, case).bytes(1))
        bank = Bank(reference, case, session.arena, 1, seed, ENTRIES, EDGE)
        bank.deal()
        session.call(bank.layout.call(case))
        bank.check(1)
    except Stop as stop:
        if stop.reason != WRONG:
            raise
        raise Stop("wrong", f"{stop.message}; chosen entries of a case beyond {ELEMENTS:,} elements") from stop
