"""Hidden cases: sizes that no file names, drawn from a reference's domain with the run's secret seed.

A row's case and draw, with the run's seed, repeat it: `--case` takes the name of a hidden case too.
"""

import math
import random
from collections.abc import Callable

from kernelci.reference import Case, Reference, Sizes

TRIES = 40  # draws for each case that is to fit the device
AROUND = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
# Kernels take another path where every row of every operand is aligned (tensor memory accelerator, vector loads), which
# sizes drawn one by one hardly ever make: half of the cases have all of theirs a multiple of one of these.
GRAINS = (8, 16, 64)


def cases(reference: Reference, seed: str, count: int, fits: Callable[[Case], bool]) -> tuple[Case, ...]:
    """Up to `count` cases that the domain allows, that `fits` accepts, and that the reference does not name."""
    templates = [case for case in reference.cases() if case.kind == "check"]
    if not reference.domain or not templates:
        return ()
    source = random.Random(f"{seed}/{reference.name}/hidden")
    known = {case.id for case in reference.cases()}
    found: dict[str, Case] = {}
    for _ in range(TRIES * count):
        case = resized(source.choice(templates), reference.domain, source)
        if case.id not in known and case.id not in found and fits(case):
            found[case.id] = case
        if len(found) == count:
            break
    return tuple(found.values())


def resized(case: Case, domain: dict[str, Sizes], source: random.Random) -> Case:
    """The case with other sizes; what the domain does not name stays."""
    grain = source.choice(GRAINS) if source.random() < 1 / 2 else 1
    values = tuple(
        (name, _size(domain[name], grain, source) if name in domain else value) for name, value in case.values
    )
    return Case("hidden", values)


def _size(sizes: Sizes, grain: int, source: random.Random) -> int:
    """A size, small ones as likely as large ones; a third of them within two of a usual tile. A multiple of the grain
    where the domain has one."""
    low, high, step = sizes.low, sizes.high, math.lcm(sizes.multiple, grain)
    if -(-low // step) * step > high:
        step = sizes.multiple
    if source.random() < 1 / 3:
        value = source.choice(AROUND) + source.randint(-2, 2)
    else:
        value = round(math.exp(source.uniform(math.log(max(low, 1)), math.log(max(high, 1)))))
    value = min(max(value, low), high)
    down = value // step * step
    return down if down >= low else -(-low // step) * step
