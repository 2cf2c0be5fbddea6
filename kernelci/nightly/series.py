"""A history read back: one series for each kernel, case and GPU model, night by night, through DuckDB."""

import datetime
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from kernelci.errors import ConfigError, ReportError
from kernelci.history import EVENTS, MONTHS, NIGHTS, SUFFIX, Event, Measure

Number = float | None
# What must agree for two nights' times to be compared; a change of it starts a new segment.
KEY = ("target", "driver", "cuda", "dsl", "clocks")
_TEXTS = {
    "commits": "commit", "runs": "run", "uuids": "gpu_uuid", "sources": "source", "outcomes": "outcome",
    "reasons": "reason",
}  # fmt: skip
_NUMBERS = (
    "time_ns", "low_ns", "high_ns", "end_to_end_ns", "of_ceiling", "bandwidth", "flops", "psnr_db", "copy", "matmul",
    "registers", "stack_bytes", "shared_bytes", "code_bytes", "compile_s", "error_ratio",
)  # fmt: skip
_FIELDS = {"nights": "night", **_TEXTS, **{name: name for name in _NUMBERS}}


class Segment(Struct, frozen=True):
    """What the nights of a stretch were measured with."""

    target: str
    driver: str
    cuda: str
    dsl: str
    clocks: str


class Series(Struct, frozen=True):
    """One kernel's case on one GPU model; columns of equal length, by night.

    `segments[i]` is the place in `keys` of what night i was measured with. None: not measured, or not to be trusted.
    Where there was no GPU, `gpu` says so, with the target that was compiled for. A kernel that stopped before its cases
    were known has that night in each of the cases that it had last; one that never got so far has a series of its own,
    without a case.
    """

    kernel: str
    case: str
    gpu: str
    nights: tuple[datetime.date, ...]
    commits: tuple[str, ...]
    runs: tuple[str, ...]
    uuids: tuple[str, ...]
    sources: tuple[str, ...]
    outcomes: tuple[str, ...]
    reasons: tuple[str, ...]
    time_ns: tuple[Number, ...]
    low_ns: tuple[Number, ...]
    high_ns: tuple[Number, ...]
    end_to_end_ns: tuple[Number, ...]
    of_ceiling: tuple[Number, ...]
    bandwidth: tuple[Number, ...]
    flops: tuple[Number, ...]
    psnr_db: tuple[Number, ...]
    copy: tuple[Number, ...]
    matmul: tuple[Number, ...]
    registers: tuple[Number, ...]
    stack_bytes: tuple[Number, ...]
    shared_bytes: tuple[Number, ...]
    code_bytes: tuple[Number, ...]
    compile_s: tuple[Number, ...]
    error_ratio: tuple[Number, ...]
    segments: tuple[int, ...]
    keys: tuple[Segment, ...]

    @property
    def id(self) -> tuple[str, str, str]:
        """What names the series."""
        return self.kernel, self.case, self.gpu

    @property
    def current(self) -> tuple[int, ...]:
        """Places of the nights that have a time and were measured with what the newest was measured with."""
        return self.within(self.nights[-1]) if self.nights else ()

    def within(self, night: datetime.date) -> tuple[int, ...]:
        """Places of the nights that have a time and were measured with what `night`, or the last before it, was."""
        before = [at for at, each in enumerate(self.nights) if each <= night]
        now = self.segments[before[-1]] if before else None
        return tuple(at for at, time in enumerate(self.time_ns) if time is not None and self.segments[at] == now)


def load(folder: Path) -> tuple[Series, ...]:
    """Every series in a history's folder. Of two climbs of one night the later counts. Raises ReportError."""
    files = [path for part in (NIGHTS, MONTHS) if any((folder / part).rglob(f"*{SUFFIX}")) for path in [part]]
    if not files:
        return ()
    duckdb = _duckdb()
    wheres = [str(folder / part / "**" / f"*{SUFFIX}") for part in files]
    query = _QUERY.format(
        keys=", ".join(KEY), lists=", ".join(f'list("{name}" ORDER BY night)' for name in _FIELDS.values())
    )
    try:
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            rows = connection.execute(query, {"files": wheres, "columns": _columns()}).fetchall()
    except duckdb.Error as error:
        raise ReportError(f"the history in {folder} can't be read: {str(error)[:500]}") from error
    return tuple(_series(row) for row in rows)


_QUERY = """
WITH every AS (
  FROM read_json($files, columns = $columns, format = 'newline_delimited', compression = 'gzip')
), named AS (
  SELECT * REPLACE (coalesce("case", '') AS "case", coalesce(gpu, '') AS gpu, coalesce(target, '') AS target) FROM every
), timed AS (
  FROM named WHERE "case" <> ''
), whole AS (
  FROM named WHERE "case" = ''
), cases AS (
  SELECT kernel, "case" AS of_case, gpu, if(gpu = '', target, '') AS of_target, min(night) AS first, max(night) AS last
  FROM timed GROUP BY ALL
), known AS (
  FROM cases QUALIFY last = max(last) OVER (PARTITION BY kernel, gpu)
), spread AS (
  SELECT whole.* REPLACE (of_case AS "case", if(gpu = '', of_target, target) AS target)
  FROM whole JOIN known USING (kernel, gpu) WHERE night >= first
), all_nights AS (
  FROM timed UNION ALL BY NAME FROM spread UNION ALL BY NAME (FROM whole ANTI JOIN timed USING (kernel, gpu))
), latest AS (
  SELECT * REPLACE (if(gpu <> '', gpu, 'no GPU' || if(target = '', '', ': ' || target)) AS gpu) FROM all_nights
  QUALIFY row_number() OVER (PARTITION BY kernel, "case", all_nights.gpu, if(all_nights.gpu = '', target, ''), night
    ORDER BY started DESC, run DESC) = 1
)
SELECT kernel, "case", gpu, list([{keys}] ORDER BY night), {lists}
FROM latest GROUP BY ALL ORDER BY ALL
"""


def _columns() -> dict[str, str]:
    """The columns' types in DuckDB, from the record."""
    numbers = {name for name, kind in get_type_hints(Measure).items() if kind == float | None}
    names = [field.name for field in msgspec.structs.fields(Measure)]
    return {name: "DOUBLE" if name in numbers else "DATE" if name == "night" else "VARCHAR" for name in names}


def _series(row: tuple[Any, ...]) -> Series:
    kernel, case, gpu, keys, *lists = row
    found: dict[tuple[str, ...], int] = {}
    segments = tuple(found.setdefault(tuple(part or "" for part in key), len(found)) for key in keys)
    columns: dict[str, Any] = {name: tuple(column) for name, column in zip(_FIELDS, lists, strict=True)}
    columns |= {name: tuple(value or "" for value in columns[name]) for name in _TEXTS}
    return Series(kernel, case, gpu, segments=segments, keys=tuple(Segment(*key) for key in found), **columns)


def events(folder: Path) -> tuple[Event, ...]:
    """Every event of a history, the oldest first. Raises ReportError."""
    decode = msgspec.json.Decoder(Event).decode_lines
    try:
        found = {event for path in (folder / EVENTS).rglob("*.jsonl") for event in decode(path.read_bytes())}
    except msgspec.MsgspecError as error:
        raise ReportError(f"an event of the history in {folder} can't be read: {error}") from error
    return tuple(sorted(found, key=lambda each: (each.night, each.kernel, each.case, each.gpu, each.kind)))


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("duckdb is missing", hint="pip install 'kernelci[nightly]'") from error
    return duckdb
