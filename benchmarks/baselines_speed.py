"""What torch.compile takes of a baseline before it can be timed: cold, kept from an earlier run, and made ready ahead.

    python benchmarks/baselines_speed.py [REFERENCES…] [--cases N] [--write]

Each line is a fresh sandboxed process that calls the reference's expression once on the N smallest bench cases, on a
GPU where there is one, else on the CPU (by inductor's C++). Prints a Markdown table; --write puts it into
docs/measurements.md.
"""

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sections
from ladder_speed import machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from warmed import Warmed  # noqa: E402

from kernelci import catalog, config, ladder  # noqa: E402
from kernelci.court import BASELINE, Court, Start, start, zygote_for  # noqa: E402
from kernelci.errors import Stop  # noqa: E402
from kernelci.reference import Case, Reference, load  # noqa: E402
from kernelci.workbench import baselines, leftovers, slots  # noqa: E402
from kernelci.workbench.ahead import COMPILE_S  # noqa: E402
from kernelci.workbench.arena import Arena  # noqa: E402
from kernelci.workbench.calibration import Calibration  # noqa: E402
from kernelci.workbench.clock import Overhead  # noqa: E402
from kernelci.workbench.expression import COMPILE, EAGER, ENTRY  # noqa: E402
from kernelci.workbench.session import Session  # noqa: E402
from kernelci.workbench.spent import Spent  # noqa: E402

# Decides how many calls a window has; what windows say of a call is not shown.
CALIBRATION = Calibration(4e12, Overhead(3e4, 2e4, 4e4, 1e3), {}, 5e12, {}, 50 * 2**20)


class Took(NamedTuple):
    """Seconds of one process: to fork it, what was done ahead, to load it, its first call of each case; files of
    compiled code that it made."""

    ahead: float
    loading: float
    calls: tuple[float, ...]
    made: int


def main() -> int:
    """Measure, print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("references", nargs="*")
    parser.add_argument("--cases", type=int, default=2, metavar="N")
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = measured(Path(folder), options.references, options.cases)
    print(text)
    if options.write:
        sections.write("baselines_speed", text)
    return 0


def measured(folder: Path, names: list[str], count: int) -> str:
    """The table over these references; all without names."""
    options = config.load(ROOT, {}, {"cache": str(folder / "cache")})
    found = catalog.scan(ROOT, options)
    with ladder.opened(found, options, ladder.Plan((), folder / "out")) as court:
        court.device.enter()
        lines = []
        for name in names or found.references:
            reference = load(found.references[name])
            lines += [*rows(court, reference, smallest(reference, count))]
        where = machine()
    return table(lines, where)


def smallest(reference: Reference, count: int) -> list[Case]:
    """So many of its bench cases, by the bytes of a slot."""
    cases = [case for case in reference.cases() if case.kind == "bench"]
    return sorted(cases, key=lambda case: slots.layout(reference, case).stride)[:count]


def rows(court: Court, reference: Reference, cases: list[Case]) -> Iterator[str]:
    """The lines of one reference."""
    zygote_for(court, "triton", BASELINE).wait_ready()
    eager, _ = one(court, reference, cases, EAGER)
    cold, left = one(court, reference, cases, COMPILE)
    code = leftovers.without_choices(left)
    imported, _ = one(court, reference, cases, COMPILE, warm=True)
    kept, _ = one(court, reference, cases, COMPILE, (code,))
    ready, _ = one(court, reference, cases, COMPILE, (code,), warm=True)
    found = {
        "eager": eager,
        "compiled, cold": cold,
        "its imports made ahead": imported,
        "its code kept": kept,
        "both": ready,
    }
    if leftovers.choices(left):
        found["both, and choices kept"], _ = one(court, reference, cases, COMPILE, (left,), warm=True)
    for what, took in found.items():
        yield line(f"{reference.name}, {len(cases)} cases", what, took)
    if court.device.is_gpu:
        yield whole(court, reference, cases, "measuring all, code kept", code)
        yield whole(court, reference, cases, "measuring all, choices kept too", left)


def one(
    court: Court, reference: Reference, cases: list[Case], name: str, caches: tuple[bytes, ...] = (), warm: bool = False
) -> tuple[Took, bytes]:
    """What a fresh process takes, and what it leaves in its cache."""
    arena = Arena(court.device.torch_name, max(slots.layout(reference, case).bytes(1) for case in cases))
    own = Start(baselines.source_of(reference, name), ENTRY, "triton", caches)
    host = Warmed(zygote_for(court, "triton", BASELINE)) if warm else None
    session = start(court, BASELINE, own, arena, host)
    session.limits.call_s = COMPILE_S
    try:
        began = time.monotonic()
        session.start()
        ahead = host.seconds if host is not None else 0.0
        loading = time.monotonic() - began - ahead
        calls = tuple(called(session, reference, case, arena) for case in cases)
        left = session.packed()
    finally:
        session.close()
        arena.close()
    before = set().union(*map(leftovers.code, caches))
    return Took(ahead, loading, calls, len(leftovers.code(left) - before)), left


def called(session: Session, reference: Reference, case: Case, arena: Arena) -> float:
    """Seconds of the first call of a case."""
    bank = slots.Bank(reference, case, arena, 1, "baselines_speed")
    bank.deal()
    began = time.monotonic()
    session.call(bank.layout.call(case))
    return time.monotonic() - began


def whole(court: Court, reference: Reference, cases: list[Case], what: str, cache: bytes) -> str:
    """A line of what measuring all baselines takes, whose compiled one is loaded with a cache, its imports ahead."""
    spent, hosts = Spent(), [Warmed(zygote_for(court, "triton", BASELINE))]

    def opened(arena: Arena, reference: Reference, name: str) -> Session:
        compiles = name == COMPILE
        own = Start(baselines.source_of(reference, name), ENTRY, "triton", (cache,) if compiles else ())
        session = start(court, BASELINE, own, arena, hosts[0] if compiles else None)
        if compiles:
            session.start()
        return session

    began = time.monotonic()
    try:
        baselines.measure(court.device.torch_name, reference, cases, CALIBRATION, opened, spent)
    except Stop as stop:
        return f"| {reference.name} | {what} |  |  | {stop.message} |  |"
    return f"| {reference.name} | {what} |  |  | {spent.text(time.monotonic() - began)} |  |"


def line(of: str, what: str, took: Took) -> str:
    """One line of the table."""
    calls = " + ".join(f"{seconds:.2f}" for seconds in took.calls)
    ahead = f"{took.ahead:.1f}" if took.ahead else ""
    return f"| {of} | {what} | {ahead} | {took.loading:.2f} | {calls} | {took.made or ''} |"


def table(lines: list[str], where: str) -> str:
    """Heading, machine, command and lines."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = [
        f"## What compiled baselines take, {today}",
        "",
        where,
        "",
        f"    python benchmarks/{Path(__file__).name} --write",
        "",
        "Seconds of a fresh process, and files of compiled code that it made.",
        "",
        "| reference | baseline | ahead | loading | first call of each case | made |",
        "| :-- | :-- | --: | --: | --: | --: |",
    ]
    return "\n".join([*head, *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
