"""One source's index: a SQLite file with its texts and a full-text table of its chunks, written aside, then moved."""

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

from msgspec import Struct

from kernelci.context import chunks, chunks_text, words
from kernelci.context.reading import LeftOut

POOL_BYTES = 6 * 2**20
BATCH = 64
MAX_NOTES = 100
COLUMNS = ("name", "doc", "place", "body")
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192; PRAGMA cache_size = -65536;
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, url TEXT, dsl TEXT, lines INTEGER, text BLOB);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, file INTEGER, kind TEXT, symbol TEXT, first INTEGER, last INTEGER,
                     title TEXT, doc TEXT, terms TEXT);
CREATE INDEX by_symbol ON chunks (symbol COLLATE NOCASE);
CREATE VIRTUAL TABLE fts USING fts5 (name, doc, place, body, content='', tokenize='porter unicode61');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (fts, row);
"""


class Text(Struct, frozen=True):
    """One document of a source, as it was read."""

    path: str
    text: str
    url: str = ""
    dsl: str = ""


class Built(Struct, frozen=True):
    """What went into a shard."""

    files: int
    chunks: int
    source_bytes: int
    left_out: tuple[str, ...]
    left_out_count: int


def build(path: Path, texts: Iterable[Text | tuple[str, LeftOut]]) -> Built:
    """Write the shard to a partial file beside `path`, then move it there: nobody sees half of it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(partial)) as database:
            database.executescript(_SCHEMA)
            built = _fill(database, texts)
            database.execute("INSERT INTO fts(fts) VALUES('optimize')")
            database.execute("CREATE TABLE words (word TEXT PRIMARY KEY, df INTEGER) WITHOUT ROWID")
            database.execute("INSERT INTO words SELECT term, doc FROM vocabulary WHERE doc > 1")
            database.commit()
            database.execute("VACUUM")  # merging left a quarter of the pages free
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return built


def _fill(database: sqlite3.Connection, texts: Iterable[Text | tuple[str, LeftOut]]) -> Built:
    left_out: list[str] = []
    size = 0

    def taken() -> Iterator[Text]:
        nonlocal size
        for item in texts:
            if isinstance(item, Text):
                size += len(item.text)
                yield item
            else:
                left_out.append(f"{item[0]}: {item[1]}")

    files = number = 0
    for text, rows in _prepared(taken()):
        files += 1
        blob = zlib.compress(text.text.encode(), 6)
        values = (files, text.path, text.url, text.dsl, text.text.count("\n") + 1, blob)
        database.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", values)
        for record, indexed in rows:
            number += 1
            database.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, files, *record))
            database.execute(
                "INSERT INTO fts (rowid, name, doc, place, body) VALUES (?, ?, ?, ?, ?)", (number, *indexed)
            )
    return Built(files, number, size, tuple(left_out[:MAX_NOTES]), len(left_out))


Row = tuple[tuple[str, str, int, int, str, str, str], tuple[str, str, str, str]]


def _prepared(texts: Iterator[Text]) -> Iterator[tuple[Text, list[Row]]]:
    """Each text with its rows; by a second process once there is enough to make it worth one."""
    early: list[Text] = []
    size = 0
    for text in texts:
        early.append(text)
        size += len(text.text)
        if size > POOL_BYTES:
            break
    if size <= POOL_BYTES:
        yield from ((text, rows(text)) for text in early)
        return
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
        waiting = []
        stream = chain(early, texts)
        while batch := tuple(islice(stream, BATCH)):
            waiting.append((batch, pool.submit(_rows_of_all, batch)))
            if len(waiting) > 4:
                first, done = waiting.pop(0)
                yield from zip(first, done.result(), strict=True)
        for first, done in waiting:
            yield from zip(first, done.result(), strict=True)


def _rows_of_all(texts: tuple[Text, ...]) -> list[list[Row]]:
    return [rows(text) for text in texts]


def rows(text: Text) -> list[Row]:
    """The chunks of a text as they are stored, and as they are indexed."""
    place = words.spaced(text.path.rpartition(".")[0])
    try:
        return [_row(chunk, place) for chunk in chunks.of(text.path, text.text)]
    except Exception:  # one odd file costs its structure, not the whole source
        return [_row(chunk, place) for chunk in chunks_text.of(text.path, text.text)]


def _row(chunk: chunks.Chunk, place: str) -> Row:
    called = f"{chunk.symbol} {words.spaced(chunk.symbol)} {words.spaced(chunk.names)}"
    if not chunk.symbol:
        called = f"{chunk.title} {called}"
    summary, _, rest = chunk.doc.partition("\n\n")
    said = (" ".join(words.stems(text)) for text in (chunk.symbol or chunk.title, summary[:400], rest[:600]))
    terms = "|".join(said)
    stored = (chunk.kind, chunk.symbol[:200], chunk.first, chunk.last, chunk.title[:300], chunk.doc[:400], terms)
    return stored, (called, words.spaced(chunk.doc), place, words.spaced(f"{chunk.title}\n{chunk.body}"))
