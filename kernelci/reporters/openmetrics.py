"""OpenMetrics: what Prometheus scrapes or a pushed file holds; a gauge for each figure of the bench rows."""

import re
from collections.abc import Iterator

from kernelci import measures
from kernelci.measures import Measure
from kernelci.model import Report, Unit
from kernelci.reporters import Context

# In OpenMetrics a name ends in its base unit.
_UNITS = {
    Unit.NANOSECONDS: ("seconds", 1e-9),
    Unit.SECONDS: ("seconds", 1.0),
    Unit.BYTES: ("bytes", 1.0),
    Unit.BYTES_PER_SECOND: ("bytes_per_second", 1.0),
    Unit.FLOP_PER_SECOND: ("flops_per_second", 1.0),
    Unit.FRACTION: ("ratio", 1.0),
    Unit.RATIO: ("ratio", 1.0),
    Unit.DECIBEL: ("decibels", 1.0),
}
_UNFIT = re.compile(r"[^a-zA-Z0-9_]")


def render(report: Report, context: Context) -> str:
    """Families in the order in which they first come, then the end mark."""
    families: dict[str, list[str]] = {}
    titles: dict[str, tuple[str, str]] = {}
    gpu = {"gpu": report.environment.gpu} if report.environment.gpu else {}
    for measure in measures.of(report):
        if measure.metric and measure.value is not None and measure.rung == measures.BENCHMARK:
            name, unit, scale = _named(measure)
            titles.setdefault(name, (unit, measure.name))
            families.setdefault(name, []).append(_sample(name, measure.labels | gpu, measure.value * scale))
    outcomes = [_outcome(kernel.name, kernel.outcome.value) for kernel in report.kernels]
    lines = [line for name, samples in families.items() for line in (*_head(name, *titles[name]), *samples)]
    head = _head("kernelci_kernel_outcome", "", "1 for the outcome of each kernel")
    return "\n".join([*(head if outcomes else ()), *outcomes, *lines, "# EOF"]) + "\n"


def _outcome(kernel: str, outcome: str) -> str:
    return _sample("kernelci_kernel_outcome", {"kernel": kernel, "outcome": outcome}, 1.0)


def _named(measure: Measure) -> tuple[str, str, float]:
    unit, scale = _UNITS.get(Unit(measure.unit), ("", 1.0))
    stem = f"kernelci_{_UNFIT.sub('_', measure.metric)}"
    return (f"{stem}_{unit}" if unit and not stem.endswith(f"_{unit}") else stem), unit, scale


def _head(name: str, unit: str, title: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {_escaped(title)}"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))
    return f"{name}{{{inner}}} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
