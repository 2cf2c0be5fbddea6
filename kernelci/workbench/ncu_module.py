"""Nsight Compute's reports by NVIDIA's module `ncu_report`, where it is installed or lies beside the tool."""

import importlib.util
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kernelci.workbench import ncu_reading, ncu_report
from kernelci.workbench.ncu_report import Advice, Launch, Unreadable

NAME = "ncu_report"
EXTRAS = Path("extras/python")  # below a version's folder of Nsight Compute
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
Size = Annotated[float, Meta(ge=0, le=2**53)]


class ReadRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What a rule says; `speedup` in percent."""

    name: Annotated[str, Meta(max_length=100)]
    kind: Annotated[str, Meta(max_length=20)]
    text: Annotated[str, Meta(max_length=4000)]
    speedup: Finite


class ReadLaunch(Struct, frozen=True, forbid_unknown_fields=True):
    """A launch as `ncu_reading` prints it: each metric with its unit."""

    kernel: Annotated[str, Meta(max_length=300)]
    grid: tuple[Size, Size, Size]
    block: tuple[Size, Size, Size]
    metrics: Annotated[dict[str, tuple[Finite, Annotated[str, Meta(max_length=40)]]], Meta(max_length=20_000)]
    rules: Annotated[tuple[ReadRule, ...], Meta(max_length=2000)]


def folder(home: Path) -> Path | None:
    """What to put on the module path for it: where it is installed, else beside the tool; None: nowhere."""
    found = importlib.util.find_spec(NAME)
    if found is not None and found.origin:
        origin = Path(found.origin)
        return origin.parents[1] if origin.name == "__init__.py" else origin.parent
    places = (home / EXTRAS, *(parent / EXTRAS for parent in home.parents[:2]))
    return next((place for place in places if any(place.glob(f"{NAME}*"))), None)


def script() -> Path:
    """The file that reads a report, to be run by a Python of its own."""
    return Path(ncu_reading.__file__)


def decoded(text: bytes) -> tuple[Launch, ...]:
    """The launches that the script printed. Raises Unreadable."""
    try:
        found = msgspec.json.decode(text, type=tuple[ReadLaunch, ...])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"not what is read from a report: {error}") from error
    if not found:
        raise Unreadable("there is no launch in it")
    return tuple(_launch(each) for each in found[: ncu_report.LAUNCHES])


def _launch(found: ReadLaunch) -> Launch:
    metrics = {name: value * ncu_report.scale(unit) for name, (value, unit) in found.metrics.items()}
    advice = sorted((_advice(rule) for rule in found.rules), key=lambda each: -each.speedup)[: ncu_report.FINDINGS]
    return Launch(found.kernel, metrics, _size(found.grid), _size(found.block), tuple(advice))


def _advice(found: ReadRule) -> Advice:
    text = ncu_report.plain(found.text)[: ncu_report.TEXT]
    return Advice(found.name, found.kind, text, min(max(found.speedup / 100, 0.0), 1.0))


def _size(axes: tuple[float, float, float]) -> str:
    """As the CSV has it; empty where it was not told."""
    return f"({', '.join(f'{axis:,.0f}' for axis in axes)})" if all(axes) else ""
