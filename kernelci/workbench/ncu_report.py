"""What Nsight Compute prints of a report: `--page raw` and `--page details`, with `--csv --print-units base`.

The report was written beside a kernel, so all of this is a claim: read with bounds, never believed alone. Columns and
units are those of NVIDIA's "Nsight Compute CLI", sections "Print Units" and "Comma-Separated Values".
"""

import csv
import math
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

MAX_CHARACTERS = 32 * 2**20
LAUNCHES = 64
FINDINGS = 40
TEXT = 600
_ID, _KERNEL = "ID", "Kernel Name"
# Units of the base system, and the larger ones that older versions print all the same; to seconds, bytes, Hz, shares.
_SCALES = {
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "byte/s": 1.0, "byte/second": 1.0, "Kbyte/second": 1e3, "Mbyte/second": 1e6, "Gbyte/second": 1e9,
    "Tbyte/second": 1e12, "Kbyte/s": 1e3, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12,
    "hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9, "cycle/second": 1.0, "cycle/nsecond": 1e9, "cycle/usecond": 1e6,
    "%": 0.01,
}  # fmt: skip
# Marks of the rules' texts: a page of the manual by its title, a section or metric by its name, a link by its text.
_REFERENCE = re.compile(
    r"@url:([^:@]*):[^@]*@|@(?:section|source|metric):[^:@]*:([^@]*)@|@(?:section|metric):([^@]*)@|\[([^\]]*)\]\([^)]*\)"
)


class Unreadable(Exception):
    """The text is no page of Nsight Compute's."""


class Advice(Struct, frozen=True):
    """What a rule of its says of a launch. `speedup`: the share of time that it expects to gain; 0: it tells none."""

    rule: str
    kind: str
    text: str
    speedup: float = 0.0


class Launch(Struct, frozen=True):
    """One kernel's launch: metrics by NVIDIA's names, in ns, bytes, byte/s, Hz, and shares of 1."""

    kernel: str
    metrics: dict[str, float]
    grid: str = ""
    block: str = ""
    advice: tuple[Advice, ...] = ()

    def first(self, *names: str) -> float | None:
        """The first of these metrics that there is."""
        return next((self.metrics[name] for name in names if name in self.metrics), None)


def scale(unit: str) -> float:
    """What a value in this unit is to be multiplied by."""
    return _SCALES.get(unit, 1.0)


def parse(raw: str, details: str = "") -> tuple[Launch, ...]:
    """The launches of a report, in order, from both pages. Raises Unreadable."""
    rows = _table(raw)
    if len(rows) < 2:
        raise Unreadable("the page has no launch" if rows else "no table in the page")
    names, units = rows[0], rows[1]
    advice = _advice(details)
    return tuple(_launch(names, units, row, advice) for row in rows[2 : 2 + LAUNCHES])


def _table(text: str) -> list[list[str]]:
    """The CSV rows from the one with the columns' names on; what the tool says before it is passed over."""
    lines = text[:MAX_CHARACTERS].split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(f'"{_ID}"')), None)
    if start is None:
        return []
    try:
        rows = list(csv.reader(lines[start:]))
    except csv.Error as error:
        raise Unreadable(f"not a table: {error}") from error
    return [row for row in rows if len(row) == len(rows[0])]


def _launch(
    names: Sequence[str], units: Sequence[str], row: Sequence[str], advice: dict[str, tuple[Advice, ...]]
) -> Launch:
    found = dict(zip(names, row, strict=True))
    metrics = {}
    for name, unit, text in zip(names, units, row, strict=True):
        value = number(text)
        if "__" in name and value is not None:
            metrics[name] = value * scale(unit)
    kernel = found.get(_KERNEL, "")[:300]
    return Launch(kernel, metrics, found.get("Grid Size", ""), found.get("Block Size", ""), advice.get(found[_ID], ()))


def number(text: str) -> float | None:
    """A number as it is printed: thousands by commas; None for what is none, or not finite."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _advice(text: str) -> dict[str, tuple[Advice, ...]]:
    """What the rules say, by launch; the largest gain first."""
    rows = _table(text)
    found: dict[str, list[Advice]] = {}
    for row in rows[1:]:
        line = dict(zip(rows[0], row, strict=True))
        if line.get("Rule Name"):
            found.setdefault(line[_ID], []).append(_rule(line))
    return {launch: tuple(sorted(all_, key=lambda each: -each.speedup)[:FINDINGS]) for launch, all_ in found.items()}


def _rule(line: dict[str, str]) -> Advice:
    speedup = number(line.get("Estimated Speedup", "")) or 0.0
    return Advice(
        line["Rule Name"][:100],
        line.get("Rule Type", "")[:20],
        plain(line.get("Rule Description", ""))[:TEXT],
        min(max(speedup / 100, 0.0), 1.0),
    )


def plain(text: str) -> str:
    """A rule's text without its references, on one line."""
    return " ".join(_REFERENCE.sub(lambda found: next(filter(None, found.groups()), ""), text).split())


_STALL = re.compile(
    r"smsp__average_warps?_(?:latency_)?issue_stalled_(\w+?)_per_(?:issue_active|warp_active)\.(?:ratio|pct)"
)


def stalls(launch: Launch) -> tuple[tuple[str, float], ...]:
    """Why warps waited: reasons with their shares of all waiting, the largest first."""
    found: dict[str, float] = {}
    for name, value in _stalls(launch):
        found[name] = max(found.get(name, 0.0), value)
    total = sum(found.values())
    shares = ((name, value / total) for name, value in found.items() if total > 0)
    return tuple(sorted(shares, key=lambda each: (-each[1], each[0])))


def _stalls(launch: Launch) -> Iterator[tuple[str, float]]:
    for name, value in launch.metrics.items():
        matched = _STALL.fullmatch(name)
        if matched and not matched[1].endswith("_not_issued") and matched[1] != "selected":
            yield matched[1].replace("_", " "), value
