"""flashinfer-bench's traces, a JSON line for each case of each kernel.

A definition of the project gives its own workloads; for other references the case's name is the workload's, with no
axes. Their schema asks for a time where an evaluation passed, so passed cases without one are left out.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from kernelci import catalog, config, inert
from kernelci.errors import ConfigError
from kernelci.measures import BENCHMARK, CORRECTNESS, TIME
from kernelci.model import Finding, KernelReport, Number, Report, Row
from kernelci.problems import definitions
from kernelci.reasons import Outcome
from kernelci.reporters import Context

_STATUS = {
    "shape": "INCORRECT_SHAPE", "dtype": "INCORRECT_DTYPE", "compile-error": "COMPILE_ERROR",
    "compiler-abort": "COMPILE_ERROR", "shared-memory": "COMPILE_ERROR", "nothing-compiled": "COMPILE_ERROR",
    "syntax": "COMPILE_ERROR", "compile-timeout": "TIMEOUT", "hang": "TIMEOUT",
}  # fmt: skip
_NUMERICAL = (
    "wrong", "not-finite", "unwritten", "not-repeatable", "batch-dependent", "wrong-while-timed", "out-of-bounds",
    "input-changed",
)  # fmt: skip
Workloads = dict[str, dict[str, Any]]


def render(report: Report, context: Context) -> str:
    """A line for each trace; empty where nothing was judged."""
    known = _known(context.root)
    lines = [line for kernel in report.kernels for line in _traces(kernel, report, known.get(kernel.reference, {}))]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _known(root: Path | None) -> dict[str, Workloads]:
    """The workloads of the project's definitions, by reference and case."""
    try:
        found = catalog.scan(root, config.load(root)).references if root is not None else {}
    except ConfigError:
        return {}
    return {name: _of(path) for name, path in found.items() if path.suffix == ".json"}


def _of(path: Path) -> Workloads:
    try:
        given, definition = definitions.workloads(path), definitions.definition(path)
    except definitions.Malformed:
        return {}
    return {case.id: _workload(one) for case, one in definitions.cases(definition, given)}


def _workload(one: definitions.Workload) -> dict[str, Any]:
    inputs = {name: _plain(given) for name, given in one.inputs.items() if given.type != "custom"}
    return {"axes": one.axes, "inputs": inputs, "uuid": one.uuid}


def _plain(given: definitions.Given) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(given)
    return {key: value for key, value in values.items() if value not in (None, "")}


def _traces(kernel: KernelReport, report: Report, known: Workloads) -> list[dict[str, Any]]:
    made = []
    for case, rows in _by_case(kernel).items():
        evaluation = _evaluation(rows, report)
        if evaluation is not None:
            workload = known.get(case, {"axes": {}, "inputs": {}, "uuid": case})
            made.append(
                {
                    "definition": kernel.reference,
                    "workload": workload,
                    "solution": kernel.name,
                    "evaluation": evaluation,
                }
            )
    stopped = kernel.stopped_at
    if not made and stopped is not None and stopped.finding is not None and stopped.outcome is Outcome.FAILED:
        evaluation = _failed(stopped.finding, report, None)
        workload = next(iter(known.values()), {"axes": {}, "inputs": {}, "uuid": "all"})
        made = [
            {"definition": kernel.reference, "workload": workload, "solution": kernel.name, "evaluation": evaluation}
        ]
    return made


def _by_case(kernel: KernelReport) -> dict[str, dict[str, Row]]:
    """For each case its rows by rung: the first that did not pass, else the last."""
    found: dict[str, dict[str, Row]] = {}
    for rung in kernel.rungs:
        for row in rung.rows if rung.rung in ("run", CORRECTNESS, BENCHMARK) else ():
            rows = found.setdefault(row.case, {})
            if rung.rung not in rows or rows[rung.rung].outcome is Outcome.PASSED:
                rows[rung.rung] = row
    return found


def _evaluation(rows: dict[str, Row], report: Report) -> dict[str, Any] | None:
    judged = rows.get(CORRECTNESS)
    failed = next((row for row in rows.values() if row.outcome is Outcome.FAILED), None)
    if failed is not None and failed.finding is not None:
        return _failed(failed.finding, report, judged)
    timed = rows.get(BENCHMARK)
    time = _value(timed, TIME) if timed is not None and timed.outcome is Outcome.PASSED else None
    if judged is None or judged.outcome is not Outcome.PASSED or time is None:
        return None
    eager = (_value(timed, "speedup_eager") or 0.0) if timed is not None else 0.0
    performance = {
        "latency_ms": time * 1e-6,
        "reference_latency_ms": time * 1e-6 * eager,
        "speedup_factor": eager,
    }
    return {**_plainly("PASSED", "", report), "correctness": _correctness(judged), "performance": performance}


def _failed(finding: Finding, report: Report, judged: Row | None) -> dict[str, Any]:
    if finding.reason in _NUMERICAL:
        return {**_plainly("INCORRECT_NUMERICAL", finding.message, report), "correctness": _correctness(judged)}
    return _plainly(_STATUS.get(finding.reason, "RUNTIME_ERROR"), f"{finding.message}\n{finding.log}".strip(), report)


def _plainly(status: str, log: str, report: Report) -> dict[str, Any]:
    environment = report.environment
    hardware = (environment.gpu or environment.machine).replace(" ", "_")
    where = {"hardware": hardware, "libs": dict(environment.versions)}
    return {"status": status, "environment": where, "timestamp": report.started_at, "log": inert.clean(log)}


def _correctness(row: Row | None) -> dict[str, Any]:
    tags = {"max_relative_error": "max_rel", "max_absolute_error": "max_abs"}
    return {name: _worst(row, tag) for name, tag in tags.items()}


def _worst(row: Row | None, tag: str) -> float | str:
    """The largest of all outputs. Numbers that are not finite have a word, as in their own files."""
    found = [_float(metric.value) for metric in row.metrics if metric.tag.split(":")[0] == tag] if row else []
    largest = max(found, default=0.0, key=lambda value: float("inf") if value != value else value)
    return largest if abs(largest) < float("inf") else {"inf": "Infinity", "nan": "NaN"}[repr(largest)]


def _value(row: Row | None, tag: str) -> float | None:
    return next((_float(metric.value) for metric in row.metrics if metric.tag == tag), None) if row else None


def _float(value: Number) -> float:
    return float(value)
