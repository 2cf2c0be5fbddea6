"""What a process that was forked from a zygote still imports before its first answer.

    python benchmarks/first_imports.py [--write]

By Python's own -X importtime, which a fork goes on with. Needs no GPU. Prints a Markdown table; --write puts it into
docs/measurements.md.
"""

import argparse
import datetime
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import sections
from ladder_speed import machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from warmed import Warmed  # noqa: E402

from kernelci import backends, catalog, config  # noqa: E402
from kernelci.catalog import Catalog  # noqa: E402
from kernelci.compiling import builder  # noqa: E402
from kernelci.reference import Reference, load  # noqa: E402
from kernelci.workbench import baselines, expression, process, slots  # noqa: E402
from kernelci.workbench.arena import Arena  # noqa: E402
from kernelci.workbench.process import Candidate, Zygote  # noqa: E402
from kernelci.workbench.protocol import Source  # noqa: E402
from kernelci.workbench.session import Limits, Session  # noqa: E402

TARGET = "sm_90a"
TIMEOUT_S = 300.0
TOP = 3  # modules that are named
LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")


class Imported(NamedTuple):
    """Modules, seconds for all of them, and those that took the longest with what they import, in ms."""

    modules: int
    seconds: float
    longest: dict[str, float]


def main() -> int:
    """Measure, print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    write, where = parser.parse_args().write, machine()
    usual = process.command
    with mock.patch.object(process, "command", lambda *of: [usual(*of)[0], "-X", "importtime", *usual(*of)[1:]]):
        text = table([*measured(catalog.scan(ROOT, config.load(ROOT)))], where)
    print(text)
    if write:
        sections.write("first_imports", text)
    return 0


def measured(found: Catalog) -> Iterator[str]:
    """A line for each kind of process."""
    reference = load(found.references["softmax"])
    for name in ("triton", "tilelang", "cutedsl", "cuda"):
        yield compiling(found, reference, name)
    (kernel,) = found.select(["softmax/triton"])
    assert kernel.card is not None
    yield from calling("interpreting triton", builder.source_of(kernel), kernel.card.entry, reference)
    for name in (expression.EAGER, expression.COMPILE):
        yield from calling(f"baseline {name}", baselines.source_of(reference, name), expression.ENTRY, reference)
    yield from calling(
        "baseline compile, imports made ahead",
        baselines.source_of(reference, expression.COMPILE),
        expression.ENTRY,
        reference,
        warm=True,
    )


def compiling(found: Catalog, reference: Reference, name: str) -> str:
    """The line of a process that compiles one case."""
    (kernel,) = found.select([f"softmax/{name}"])
    cases = builder.representative(reference.cases())[:1]
    zygote = Zygote("compile", (name,), backends.get(name).environment)
    zygote.wait_ready()
    began = time.monotonic()
    candidate = zygote.fork()
    candidate.ask(builder._message(kernel, reference, TARGET, cases, False), TIMEOUT_S)
    seconds = time.monotonic() - began
    text = line(f"compiling {name}", seconds, imported(candidate))
    candidate.close()
    zygote.close()
    return text


def calling(what: str, source: Source, entry: str, reference: Reference, warm: bool = False) -> Iterator[str]:
    """The line of a process that is called on the smallest case, on the CPU."""
    case = min(
        (case for case in reference.cases() if case.kind == "bench"),
        key=lambda case: slots.layout(reference, case).stride,
    )
    zygote = Zygote("interpret", ("triton",), _environment)
    arena = Arena("cpu", slots.layout(reference, case).bytes(1))
    zygote.wait_ready()
    host = Warmed(zygote, lambda candidate: candidate._log.truncate(0)) if warm else zygote
    session = Session(host, source, entry, "triton", "cpu", Limits(60.0, TIMEOUT_S, 2**34), arena=arena)
    bank = slots.Bank(reference, case, arena, 1, "first_imports")
    bank.deal()
    began = time.monotonic()
    session.call(bank.layout.call(case))
    seconds = time.monotonic() - began
    assert session._candidate is not None
    yield line(what, seconds - (host.seconds if isinstance(host, Warmed) else 0.0), imported(session._candidate))
    session.close()
    zygote.close()
    arena.close()


def _environment(cache: Path) -> dict[str, str]:
    own = backends.get("triton").environment(cache) | expression.environment(cache)
    return own | {"TRITON_INTERPRET": "1"}


def imported(candidate: Candidate) -> Imported:
    """What a process says that it has imported since it was forked."""
    candidate._log.seek(0)
    return parsed(candidate._log.read().decode("utf-8", "replace"))


def parsed(text: str) -> Imported:
    """The lines of -X importtime: a module's own microseconds, with what it imports, and its name, indented."""
    found = [match for match in map(LINE.search, text.splitlines()) if match is not None]
    outer = {match[4]: int(match[2]) / 1e3 for match in found if not match[3]}
    longest = sorted(outer, key=lambda name: -outer[name])[:TOP]
    return Imported(len(found), sum(int(match[1]) for match in found) / 1e6, {name: outer[name] for name in longest})


def line(what: str, seconds: float, found: Imported) -> str:
    """One line of the table."""
    longest = ", ".join(f"{name} {ms:.0f}" for name, ms in found.longest.items())
    return f"| {what} | {seconds:.2f} | {found.modules} | {1e3 * found.seconds:.0f} | {longest} |"


def table(lines: list[str], where: str) -> str:
    """Heading, machine, command and lines."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = [
        f"## What forked processes still import, {today}",
        "",
        where,
        "",
        f"    python benchmarks/{Path(__file__).name} --write",
        "",
        f"A process's first answer, without any cache, and its imports since the fork: softmax, compiled for {TARGET}.",
        "",
        "| process | s | modules | ms of imports | longest, ms with what they import |",
        "| :-- | --: | --: | --: | :-- |",
    ]
    return "\n".join([*head, *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
