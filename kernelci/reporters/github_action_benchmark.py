"""The JSON that github-action-benchmark takes as `customSmallerIsBetter`: the time of each bench row."""

import json

from kernelci import measures
from kernelci.model import Report, Row
from kernelci.reporters import Context

_SHOWN = ("bandwidth", "flops", "of_ceiling", "delta")


def render(report: Report, context: Context) -> str:
    """A list of names with value, unit, spread, and a few other figures as text."""
    return json.dumps([_entry(measure, row, report) for measure, row in measures.timed(report)], indent=1) + "\n"


def _entry(measure: measures.Measure, row: Row, report: Report) -> dict[str, str | float]:
    entry: dict[str, str | float] = {
        "name": f"{measure.kernel} {measure.case}",
        "unit": measure.unit,
        "value": measure.value or 0.0,
    }
    if measure.low is not None and measure.high is not None:
        entry["range"] = f"± {(measure.high - measure.low) / 2:.4g}"
    extra = [f"{metric.name}: {metric.value}" for metric in row.metrics if metric.tag in _SHOWN]
    where = [report.environment.gpu] if report.environment.gpu else []
    return {**entry, "extra": "\n".join([*where, *extra])}
