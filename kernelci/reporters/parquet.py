"""Parquet: the same rows as CSV, with their types, as data frames and DuckDB read them."""

import tempfile
from pathlib import Path

import msgspec

from kernelci import measures
from kernelci.errors import ConfigError
from kernelci.measures import Measure
from kernelci.model import Report
from kernelci.reporters import Context

BINARY = True
_NUMBERS = ("value", "low", "high")


def render(report: Report, context: Context) -> bytes:
    """The file's bytes. Raises ConfigError where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("Parquet is written by DuckDB", hint="pip install 'kernelci[nightly]'") from error
    names = [field.name for field in msgspec.structs.fields(Measure)]
    columns = ", ".join(f'"{name}" {"DOUBLE" if name in _NUMBERS else "VARCHAR"}' for name in names)
    rows = [tuple(getattr(measure, name) for name in names) for measure in measures.of(report)]
    with tempfile.TemporaryDirectory(prefix="kernelci-parquet-") as folder, duckdb.connect() as connection:
        path = Path(folder, "measures.parquet")
        connection.execute(f"CREATE TABLE measures ({columns})")
        if rows:
            connection.executemany(f"INSERT INTO measures VALUES ({', '.join('?' * len(names))})", rows)
        connection.execute(f"COPY measures TO '{path}' (FORMAT parquet)")
        return path.read_bytes()
