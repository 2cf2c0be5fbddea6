"""Opening what was found: the text as it was indexed, by source and path; no path ever reaches the file system."""

import shlex
import sqlite3
import zlib
from collections.abc import Iterator

from msgspec import Struct

from kernelci.context.search import Index
from kernelci.errors import ConfigError

MAX_LINES = 400
MAX_CHARACTERS = 24_000


class Page(Struct, frozen=True, kw_only=True):
    """Some lines of a document, and how to ask for the rest."""

    source: str
    file: str
    version: str
    license: str
    url: str
    first: int
    last: int
    lines: int
    text: str
    more: str = ""


def texts(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Every path of a shard with its text."""
    for path, blob in database.execute("SELECT path, text FROM files"):
        yield path, zlib.decompress(blob).decode()


def page(index: Index, place: str, *, line: int = 1, count: int = 120) -> Page:
    """Lines of `SOURCE:PATH`, or of the definition of a symbol. Raises ConfigError for what is not indexed."""
    source, _, path = place.partition(":")
    record, database = next(((r, db) for r, db in index.shards if r.name == source), (None, None))
    if record is None or database is None:
        known = ", ".join(record.name for record, _ in index.shards)
        raise ConfigError(f"no context source {source!r}", hint=f"SOURCE:PATH, as a search prints it; sources: {known}")
    row = database.execute("SELECT path, url, text FROM files WHERE path = ?", (path,)).fetchone()
    row = row or _by_end(database, path)
    if row is None:
        raise ConfigError(f"{source} has no file {path!r}", hint="kernelci context search finds it")
    lines = zlib.decompress(row[2]).decode().splitlines()
    first = max(1, min(line, len(lines) or 1))
    shown = _bounded(lines[first - 1 : first - 1 + max(1, min(count, MAX_LINES))])
    last = first + len(shown) - 1
    return Page(
        source=source,
        file=row[0],
        version=record.version or record.commit[:12],
        license=record.license,
        url=row[1],
        first=first,
        last=last,
        lines=len(lines),
        text="\n".join(shown),
        more=f"kernelci context open {shlex.quote(f'{source}:{row[0]}')} --line {last + 1}"
        if last < len(lines)
        else "",
    )


def _by_end(database: sqlite3.Connection, path: str) -> tuple[str, str, bytes] | None:
    """The only file whose path ends so."""
    escaped = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    query = "SELECT path, url, text FROM files WHERE path LIKE ? ESCAPE '\\' LIMIT 2"
    rows = database.execute(query, (f"%/{escaped}",)).fetchall()
    return rows[0] if len(rows) == 1 and path else None


def _bounded(lines: list[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if kept and size > MAX_CHARACTERS:
            break
        kept.append(line)
    return kept
