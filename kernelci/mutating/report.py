"""A result as text, as a row of a Markdown table, and as JSON."""

from collections.abc import Iterable

import msgspec

from kernelci.mutating.mutants import Mutant
from kernelci.mutating.outcomes import Fate, Figures, Judged, Result, figures

HEAD = (
    "| kernel | mutants | compiled | identical | not reached | killed | survived | allclose survivors | on one case |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def listing(found: Iterable[Mutant]) -> str:
    """One label a line."""
    return "\n".join(f"{mutant.label} ({mutant.function})" for mutant in found)


def line(judged: Judged) -> str:
    """A mutant's fate in one line."""
    by = f" at {judged.rung}: {judged.reason}" if judged.rung else ""
    lenient = "; allclose lets it pass" if judged.allclose == "passed" and judged.fate is Fate.KILLED else ""
    return f"{judged.fate.value:12} {judged.label}{by}{lenient}"


def text(result: Result) -> str:
    """Figures, then every survivor with its diff, then what is broken."""
    found = result.figures
    counted = found.killed + found.survived
    lines = [
        f"{result.kernel} on {result.device}, seed {result.seed}, {result.duration_s:g} s: "
        f"{found.mutants} of {result.known} mutants, {found.compiled} compiled{', interrupted' * result.interrupted}",
        f"  killed {found.killed}, survived {found.survived}, identical machine code {found.identical}, "
        f"not reached {found.unreached}, not judged {found.unjudged}",
        f"  allclose(rtol=1e-2, atol=1e-2) on one normal draw lets {found.allclose_survived} of these {counted} pass,"
        f" on one case alone {found.allclose_one_survived}",
    ]
    for judged in result.mutants:
        if judged.fate is Fate.SURVIVED:
            lines += ["", f"survived: {judged.label} ({judged.function})", *_indented(judged.diff)]
        elif judged.fate is Fate.BROKEN:
            lines += ["", f"broken: {judged.label}", f"  {judged.message}"]
    return "\n".join(lines)


def total(results: Iterable[Result]) -> str:
    """The last row: all kernels together."""
    return _row("all", figures(judged for result in results for judged in result.mutants))


def markdown(result: Result) -> str:
    """One row of the table below HEAD."""
    return _row(result.kernel, result.figures)


def _row(name: str, f: Figures) -> str:
    cells = (f.mutants, f.compiled, f.identical, f.unreached, f.killed, f.survived, f.allclose_survived,
             f.allclose_one_survived)  # fmt: skip
    return f"| {name} | {' | '.join(map(str, cells))} |"


def encode(results: Result | list[Result]) -> bytes:
    """JSON, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


def _indented(diff: str) -> list[str]:
    return [f"  {each}" for each in diff.splitlines()]
