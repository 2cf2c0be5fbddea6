"""Formats of other tools, read by what reads them: CSV, Parquet, OpenMetrics, and three databases of benchmarks."""

import csv
import io
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import msgspec
import pytest

from kernelci import reporters
from kernelci.model import Report

NAMES = ("all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base", "first_times")
TEXT = {"type": "string"}
MAP = {"type": "object", "additionalProperties": TEXT}
# github-action-benchmark, README: «Custom benchmarks».
ACTION = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "unit", "value"],
        "properties": {"name": TEXT, "unit": TEXT, "value": {"type": "number"}, "range": TEXT, "extra": TEXT},
        "additionalProperties": False,
    },
}
# pytorch/pytorch's wiki, «PyTorch OSS benchmark infra»: required names, and maps of text to text.
PYTORCH = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["benchmark", "model", "metric"],
        "properties": {
            "benchmark": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "extra_info": MAP}},
            "model": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "extra_info": MAP, "origins": {"type": "array", "items": TEXT}},
            },
            "metric": {
                "type": "object",
                "required": ["name", "benchmark_values"],
                "properties": {
                    "name": TEXT,
                    "benchmark_values": {"type": "array", "items": {"type": "number"}},
                    "extra_info": MAP,
                },
            },
            "runners": {"type": "array", "items": {"type": "object", "properties": {"extra_info": MAP}}},
            "dependencies": {"type": "object"},
        },
    },
}


@pytest.fixture(params=NAMES)
def report(request: pytest.FixtureRequest, reports: ModuleType) -> Report:
    """Each of the golden reports."""
    made: Report = reports.ALL[request.param]()
    return made


def _json(form: str, report: Report) -> Any:
    return json.loads(reporters.render(form, report), parse_constant=_no_constant)


def _no_constant(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


def test_formats_are_named_with_hyphens() -> None:
    wanted = {"csv", "parquet", "openmetrics", "pytorch-benchmark", "github-action-benchmark", "flashinfer-trace"}
    assert wanted <= set(reporters.names())


def test_what_github_action_benchmark_takes(report: Report) -> None:
    jsonschema.validate(_json("github-action-benchmark", report), ACTION)


def test_times_with_their_spread(reports: ModuleType) -> None:
    first = _json("github-action-benchmark", reports.ALL["first_times"]())[0]
    assert ("ns", True, True) == (first["unit"], first["value"] > 0, first["range"].startswith("± "))


def test_what_pytorchs_database_takes(report: Report) -> None:
    jsonschema.validate(_json("pytorch-benchmark", report), PYTORCH)


def test_a_record_says_what_was_measured_on_what(reports: ModuleType) -> None:
    first = _json("pytorch-benchmark", reports.ALL["first_times"]())[0]
    assert ("NVIDIA H200", "inference") == (first["runners"][0]["gpu_info"], first["benchmark"]["mode"])


def _rows(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(str(reporters.render("csv", report)))))


def test_csv_has_a_line_for_each_figure(report: Report) -> None:
    figures = sum(len(row.metrics) for kernel in report.kernels for rung in kernel.rungs for row in (*rung.rows, rung))
    assert figures == sum(bool(row["metric"]) for row in _rows(report))


def test_csv_has_a_line_for_what_has_no_figure(reports: ModuleType) -> None:
    found = [row for row in _rows(reports.ALL["all_skipped"]()) if row["outcome"] == "SKIPPED"]
    assert (True, {""}) == (bool(found), {row["value"] for row in found})


def test_no_cell_is_a_formula(reports: ModuleType) -> None:
    made = reports.ALL["all_green"]()
    evil = msgspec.structs.replace(made.kernels[0], name='=HYPERLINK("http://a.example")')
    rows = _rows(msgspec.structs.replace(made, kernels=(evil,)))
    assert {'\'=HYPERLINK("http://a.example")'} == {row["kernel"] for row in rows}


def test_parquet_is_read_by_duckdb(report: Report, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    made = reporters.render("parquet", report)
    assert isinstance(made, bytes)
    (tmp_path / "report.parquet").write_bytes(made)
    found = duckdb.sql(f"SELECT kernel, metric, value FROM '{tmp_path}/report.parquet'").fetchall()
    expected = [(row["kernel"], row["metric"], float(row["value"]) if row["value"] else None) for row in _rows(report)]
    assert _comparable(expected) == _comparable(found)


def _comparable(rows: list[tuple[str, str, float | None]]) -> list[tuple[str, ...]]:
    """Spreadsheets' quotes aside; NaN equals NaN."""
    return [(kernel.lstrip("'"), metric, repr(value)) for kernel, metric, value in rows]


def test_openmetrics_is_read_by_prometheus(report: Report) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = list(parser.text_string_to_metric_families(str(reporters.render("openmetrics", report))))
    assert {kernel.name for kernel in report.kernels} == {
        sample.labels["kernel"] for family in families for sample in family.samples
    }


def test_openmetrics_counts_in_base_units(reports: ModuleType) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    made = reports.ALL["first_times"]()
    families = {
        one.name: one for one in parser.text_string_to_metric_families(str(reporters.render("openmetrics", made)))
    }
    expected = [
        float(metric.value) * 1e-9
        for kernel in made.kernels
        for rung in kernel.rungs
        if rung.rung == "benchmark"
        for row in rung.rows
        for metric in row.metrics
        if metric.tag == "time"
    ]
    assert pytest.approx(expected) == [sample.value for sample in families["kernelci_time_seconds"].samples]


def test_labels_are_escaped(reports: ModuleType) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    made = reports.ALL["all_green"]()
    evil = msgspec.structs.replace(made.kernels[0], name='a"} 1\nb\\')
    text = str(reporters.render("openmetrics", msgspec.structs.replace(made, kernels=(evil,))))
    (family,) = [one for one in parser.text_string_to_metric_families(text) if one.name == "kernelci_kernel_outcome"]
    assert {1.0} == {sample.value for sample in family.samples}


def test_figures_that_are_not_finite(reports: ModuleType) -> None:
    assert all(
        math.isfinite(value)
        for record in _json("pytorch-benchmark", reports.ALL["against_base"]())
        for value in record["metric"]["benchmark_values"]
    )
