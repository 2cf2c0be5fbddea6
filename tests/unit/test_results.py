"""results.json: whole round trips, and one clear ReportError for anything else."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci import results
from kernelci.errors import ConfigError, ReportError
from kernelci.model import (
    SCHEMA_VERSION,
    Artifact,
    Environment,
    Finding,
    KernelReport,
    Metric,
    Report,
    Row,
    RungResult,
    Unit,
)
from kernelci.reasons import REASONS, Outcome

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
FINDINGS = st.builds(
    Finding,
    st.sampled_from([code for code, reason in REASONS.items() if reason.outcome]),
    TEXT,
    TEXT,
    st.integers(0, 99),
)
METRICS = st.builds(Metric, TEXT, NUMBER | st.sampled_from(["nan", "inf", "-inf"]), st.sampled_from(Unit), TEXT)


@st.composite
def _rungs(draw: st.DrawFn) -> RungResult:
    finding = draw(st.none() | FINDINGS)
    outcome = Outcome.PASSED if finding is None else REASONS[finding.reason].outcome
    assert outcome is not None
    metrics, artifacts = (
        draw(st.tuples(METRICS)),
        draw(st.tuples(st.builds(Artifact, TEXT, TEXT, st.integers(0, 2**53)))),
    )
    row = Row(outcome, draw(TEXT), finding=finding, metrics=metrics)
    return RungResult(draw(TEXT), outcome, 0.25, finding, (row,), metrics, artifacts, (draw(TEXT),))


KERNELS = st.builds(KernelReport, TEXT, TEXT, TEXT, TEXT, TEXT, st.tuples(_rungs()))
REPORTS = st.builds(
    Report, st.just(SCHEMA_VERSION), TEXT, TEXT, NUMBER, st.builds(Environment, TEXT, TEXT), st.tuples(KERNELS), TEXT
)
EMPTY = Report(SCHEMA_VERSION, "0.1.0", "", 0.0, Environment("Linux", "3.11"), ())


@settings(max_examples=40, deadline=None)
@given(REPORTS)
def test_round_trip(report: Report) -> None:
    assert report == results.decode(results.encode(report))


@settings(max_examples=40, deadline=None)
@given(REPORTS, st.data())
def test_truncated_is_refused(report: Report, data: st.DataObject) -> None:
    whole = results.encode(report).rstrip()
    with pytest.raises(ReportError):
        results.decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(ReportError):
        results.decode(garbage)


def _document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(results.encode(EMPTY)), **changes}


def _refusal(data: bytes) -> str:
    with pytest.raises(ReportError) as caught:
        results.decode(data)
    return caught.value.message


@pytest.mark.parametrize("version", [0, 2, None, "1", 1.5])
def test_other_schema_version(version: object) -> None:
    assert f"schema version {version!r}" in _refusal(json.dumps(_document(schema_version=version)).encode())


@pytest.mark.parametrize("document", [b"[]", b"3", b"null", b'"text"'])
def test_document_that_is_no_object(document: bytes) -> None:
    assert "schema version None" in _refusal(document)


def test_empty_file() -> None:
    assert "not JSON" in _refusal(b"")


def test_duplicate_key() -> None:
    data = results.encode(EMPTY).replace(b'"started_at"', b'"schema_version": 1, "started_at"')
    assert "a key occurs twice in one object" == _refusal(data)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_number_that_json_has_not(word: str) -> None:
    data = results.encode(EMPTY).replace(b'"duration_s": 0.0', f'"duration_s": {word}'.encode())
    assert word in _refusal(data)


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1.75e308"])
def test_number_that_is_out_of_range(value: str) -> None:
    metric = json.dumps({"tag": "t", "value": 0, "unit": "s", "name": "n"}).replace('"value": 0', f'"value": {value}')
    rung = '{"rung": "run", "outcome": "PASSED", "metrics": [' + metric + "]}"
    kernel = {"name": "a/b", "reference": "a", "backend": "b", "path": "p", "sha256": "0", "rungs": []}
    text = json.dumps(_document(kernels=[kernel])).replace('"rungs": []', f'"rungs": [{rung}]')
    assert "not a valid report" in _refusal(text.encode())


@pytest.mark.parametrize(
    "changes",
    [
        {"surprise": 1},
        {"duration_s": "long"},
        {"seed": 3},
        {"seed": "x" * 301},
        {"kernels": [{"name": "a/b"}]},
        {"environment": {"machine": "m", "python": "3", "versions": {"torch": 2}}},
    ],
)
def test_what_the_schema_forbids(changes: dict[str, Any]) -> None:
    assert "not a valid report" in _refusal(json.dumps(_document(**changes)).encode())


def test_contradiction() -> None:
    rung = {"rung": "run", "outcome": "FAILED"}
    kernel = {"name": "a/b", "reference": "a", "backend": "b", "path": "p", "sha256": "0", "rungs": [rung]}
    assert "FAILED needs finding" in _refusal(json.dumps(_document(kernels=[kernel])).encode())


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a":[', b" \n["])
def test_deep_nesting(opening: bytes) -> None:
    assert "nested deeper than 24 levels" == _refusal(opening * 100_000)


def test_nesting_within_the_limit_is_read_on() -> None:
    assert "schema version None" in _refusal(b"[" * 24 + b"]" * 24)


def test_brackets_in_text_are_no_nesting() -> None:
    report = msgspec.structs.replace(EMPTY, notes=('\\"[' * 100 + "{" * 1000,))
    assert report == results.decode(results.encode(report))


def test_200_mb_of_nesting(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"[" * 10**6)
    with pytest.raises(ReportError, match="larger than 64 MiB"):
        results.read(path)


def test_one_long_text_needs_little_memory() -> None:
    assert "schema version None" in _refusal(b'{"a": "' + b"x" * 20_000_000 + b'"}')


def test_long_number() -> None:
    assert "not JSON" in _refusal(b'{"schema_version": ' + b"1" * 100_000 + b"}")


def test_write_and_read_a_folder(tmp_path: Path) -> None:
    results.write(EMPTY, tmp_path)
    assert (EMPTY, ["results.json"]) == (results.read(tmp_path), [path.name for path in tmp_path.iterdir()])


def test_read_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b"{")
    with pytest.raises(ReportError, match=r"results\.json: not JSON"):
        results.read(tmp_path)


def test_read_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="No such file"):
        results.read(tmp_path)


def test_write_to_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't write") as caught:
        results.write(EMPTY, tmp_path / "nowhere")
    assert "output-folder" == caught.value.code


def test_report_fits_its_own_schema() -> None:
    import jsonschema

    assert jsonschema.Draft202012Validator(results.schema()).is_valid(json.loads(results.encode(EMPTY)))


@pytest.mark.parametrize(
    ("was_there", "kept"),
    [((), True), (("results.json",), False), ((".kernelci-run",), False)],
    ids=["nobody's run", "a run's", "a killed run's"],
)
def test_a_run_clears_what_runs_left_and_nothing_else(tmp_path: Path, was_there: tuple[str, ...], kept: bool) -> None:
    (tmp_path / "dumps").mkdir()
    (tmp_path / "other").mkdir()
    for name in was_there:
        (tmp_path / name).touch()
    results.begin(tmp_path)
    found = (tmp_path / "dumps").is_dir(), (tmp_path / "other").is_dir(), (tmp_path / "results.json").exists()
    assert (kept, True, False) == found


def test_a_report_ends_its_run(tmp_path: Path) -> None:
    results.begin(tmp_path)
    results.write(EMPTY, tmp_path)
    assert ["results.json"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_a_run_made_is_none_of_gits_business(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    results.check_writable(tmp_path / "out" / "report")
    results.write(EMPTY, tmp_path / "out" / "report")
    told = subprocess.run(["git", "-C", str(tmp_path), "status", "--short"], check=True, capture_output=True, text=True)
    assert "" == told.stdout


def test_a_folder_that_was_there_is_left_to_its_owner(tmp_path: Path) -> None:
    results.check_writable(tmp_path)
    assert [] == list(tmp_path.iterdir())
