"""`results.json`: the only bridge between the job that runs untrusted code and the job that holds a token.

Reading refuses, before anything is built: files over the size limit, deep nesting, duplicate keys, non-finite
numbers; then msgspec refuses unknown fields, wrong types and anything out of bounds.
"""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from kernelci import whole
from kernelci.errors import ReportError, unwritten
from kernelci.model import SCHEMA_VERSION, Report

FILE_NAME = "results.json"
FOLDERS = ("dumps", "profile", "roofline", "trace")  # beside it: where rungs leave files
IGNORED = ".gitignore"
_BEGUN = ".kernelci-run"  # stands in for results.json from a run's beginning to its end
MAX_BYTES = 64 * 2**20
MAX_DEPTH = 24
# Possessive, since a string of 60 MB would otherwise keep gigabytes of places to go back to.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


def encode(report: Report) -> bytes:
    """The report as JSON, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def check_writable(folder: Path, hint: str = "name another with --out") -> None:
    """Make the folder if need be, and write into it: before a run, not after. Raises what `errors.unwritten` gives.

    One that we made is none of git's business: `git add -A` must not take a run's dumps.
    """
    try:
        ours = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if ours:
            (folder / IGNORED).write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise unwritten(folder, error, hint) from error


def clear(folder: Path) -> None:
    """Remove what an earlier run left in its folder, one that was killed too. Where no run was, nothing is removed."""
    if not any((folder / name).is_file() for name in (FILE_NAME, _BEGUN)):
        return  # such folders are somebody else's
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / FILE_NAME).unlink(missing_ok=True)


def begin(folder: Path) -> None:
    """Clear the folder, and note that a run is at work in it, until `write` ends that."""
    clear(folder)
    (folder / _BEGUN).touch()


def write(report: Report, folder: Path) -> Path:
    """Write results.json whole or not at all; raises what `errors.unwritten` gives where the folder can't be."""
    path = folder / FILE_NAME
    try:
        whole.write(path, encode(report))
        (folder / _BEGUN).unlink(missing_ok=True)
    except OSError as error:
        raise unwritten(path, error) from error
    return path


def read(path: Path) -> Report:
    """Read a results.json, or the one in a folder; raises ReportError for anything but a valid report."""
    if path.is_dir():
        path = path / FILE_NAME
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReportError(f"can't read {path}: {error.strerror}", hint="run `kernelci run` first") from error
    try:
        return decode(data)
    except ReportError as error:
        raise ReportError(f"{path}: {error.message}", hint=error.hint) from None


def decode(data: bytes) -> Report:
    """Decode a report from bytes that nobody vouches for. Raises ReportError."""
    if len(data) > MAX_BYTES:
        raise ReportError(f"larger than {MAX_BYTES // 2**20} MiB")
    _check_depth(data)
    _check_version(_plain(data))
    try:
        return msgspec.json.decode(data, type=Report)
    except msgspec.MsgspecError as error:
        raise ReportError(f"not a valid report: {error}") from error


def _check_depth(data: bytes) -> None:
    """Take away the innermost pairs, once per level that is allowed; what then still opens is nested too deeply."""
    brackets = _STRING.sub(b"", data).translate(None, _NO_BRACKET)
    for _ in range(MAX_DEPTH):
        before, brackets = len(brackets), brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(brackets) == before:
            break
    if brackets.count(b"[") + brackets.count(b"{") > MAX_DEPTH:
        raise ReportError(f"nested deeper than {MAX_DEPTH} levels")


def _plain(data: bytes) -> Any:
    """The document as plain objects, read by a decoder that refuses duplicate keys and NaN."""
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ReportError:
        raise
    except (ValueError, RecursionError) as error:
        raise ReportError(f"not JSON: {error}", hint="is the file complete?") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ReportError("a key occurs twice in one object")
    return found


def _no_constant(word: str) -> Any:
    raise ReportError(f"{word} is not JSON; non-finite numbers are written as strings")


def _check_version(document: Any) -> None:
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise ReportError(
            f"schema version {version!r}, and this kernelci reads {SCHEMA_VERSION}",
            hint="use the kernelci that wrote the report",
        )


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json, as it stands in docs/results.schema.json."""
    return msgspec.json.schema(Report)
