"""The JSON of PyTorch's benchmark database, version 3: a record for each figure of each bench row.

Its format is on the page «PyTorch OSS benchmark infra» of pytorch/pytorch's wiki.
"""

import json
import math
from typing import Any

from kernelci import measures
from kernelci.case import SHORT
from kernelci.measures import Measure
from kernelci.model import Report
from kernelci.reporters import Context

_DTYPES = {short: name for name, short in SHORT.items()}


def render(report: Report, context: Context) -> str:
    """A list of records. Figures that are not finite are left out: the database has no form for them."""
    found = [measure for measure in measures.of(report) if measure.rung == measures.BENCHMARK and measure.case]
    kept = [measure for measure in found if measure.value is not None and math.isfinite(measure.value)]
    return json.dumps([_record(measure, report) for measure in kept], indent=1) + "\n"


def _record(measure: Measure, report: Report) -> dict[str, Any]:
    environment = report.environment
    ends = {key: str(value) for key, value in (("low", measure.low), ("high", measure.high)) if value is not None}
    told = {"outcome": measure.outcome, "verdict": measure.verdict, "case": measure.case, "seed": report.seed}
    return {
        "benchmark": {
            "name": "kernelci",
            "mode": "inference",
            "dtype": _dtype(measure.case),
            "extra_info": {"kernelci_version": report.kernelci_version, "started_at": report.started_at},
        },
        "model": {
            "name": f"{measure.kernel} {measure.case}",
            "type": "kernel",
            "backend": measure.backend,
            "origins": ["kernelci"],
            "extra_info": {key: value for key, value in told.items() if value},
        },
        "metric": {
            "name": measure.metric,
            "benchmark_values": [measure.value],
            "extra_info": {"unit": measure.unit, **ends},
        },
        "runners": [
            {
                "name": environment.machine,
                "type": environment.target,
                "gpu_info": environment.gpu,
                "gpu_count": 1 if environment.gpu else 0,
                "extra_info": {"driver": environment.driver, "python": environment.python},
            }
        ],
        "dependencies": {name: {"version": version} for name, version in environment.versions.items()},
    }


def _dtype(case: str) -> str:
    return next((_DTYPES[part] for part in case.split("-") if part in _DTYPES), "")
