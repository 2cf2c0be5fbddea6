"""SQLite FTS5 against tantivy: the same chunks, columns, weights and words; hits, time to build, size, latency.

    python benchmarks/retrieval/engines.py --root PROJECT

Both are asked for matches, which are then ranked by the same second look; `first look` is the engine's own order.
"""

import argparse
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import measure
import tantivy

from kernelci.context import opening, question, ranking, search, shard
from kernelci.context.places import Record
from kernelci.context.ranking import Match

Found = Callable[[question.Question, str], list[Match]]


def rows(index: search.Index) -> Iterator[tuple[Record, str, str, shard.Row]]:
    """Every chunk of every shard: record, path, DSL, and what is stored and indexed of it."""
    for record, database in index.shards:
        dsls = dict(database.execute("SELECT path, dsl FROM files"))
        for path, text in opening.texts(database):
            for row in shard.rows(shard.Text(path, text)):
                yield record, path, dsls[path], row


def fts5(every: list[Any], folder: Path) -> Found:
    """The index as kernelci has it, in one file."""
    database = sqlite3.connect(folder / "index.db")
    options = "dsl UNINDEXED, name, doc, place, body, content='', tokenize='porter unicode61'"
    database.execute(f"CREATE VIRTUAL TABLE fts USING fts5 ({options})")
    for number, (_, _, dsl, (_, indexed)) in enumerate(every):
        database.execute(
            "INSERT INTO fts (rowid, dsl, name, doc, place, body) VALUES (?, ?, ?, ?, ?, ?)", (number, dsl, *indexed)
        )
    database.execute("INSERT INTO fts(fts) VALUES('optimize')")
    database.commit()

    def found(asked: question.Question, dsl: str) -> list[Match]:
        match = " OR ".join(f'"{" ".join(phrase)}"' for phrase in asked.phrases()[: search.MAX_PHRASES])
        query = "SELECT rowid, bm25(fts, 0, ?, ?, ?, ?) AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT ?"
        taken = [(n, -s) for n, s in database.execute(query, (*search.WEIGHTS, match, 4 * search.CANDIDATES))]
        return _matches(every, taken, dsl)

    return found


def with_tantivy(every: list[Any], folder: Path) -> Found:
    """The same in tantivy, with its English stemmer."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", stored=True)
    for column in shard.COLUMNS:
        builder.add_text_field(column, tokenizer_name="en_stem")
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    for number, (_, _, _, (_, indexed)) in enumerate(every):
        writer.add_document(tantivy.Document(number=number, **dict(zip(shard.COLUMNS, indexed, strict=True))))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    boosts = dict(zip(shard.COLUMNS, search.WEIGHTS, strict=True))

    def found(asked: question.Question, dsl: str) -> list[Match]:
        text = " ".join(f'"{" ".join(phrase)}"' for phrase in asked.phrases()[: search.MAX_PHRASES])
        query = index.parse_query(text, list(shard.COLUMNS), field_boosts=boosts)
        hits = searcher.search(query, 4 * search.CANDIDATES).hits
        return _matches(every, [(searcher.doc(address)["number"][0], score) for score, address in hits], dsl)

    return found


def _matches(every: list[Any], taken: list[tuple[int, float]], dsl: str) -> list[Match]:
    found = []
    for number, score in taken:
        record, path, own, (stored, _) = every[number]
        if own in (dsl, ""):
            found.append(Match(record, number, *stored, path, "", own, score))
    return found[: search.CANDIDATES]


def judged(title: str, build: Callable[[list[Any], Path], Found], every: list[Any], index: search.Index) -> None:
    """One engine: build, ask, print."""
    asked = measure.questions("questions.toml")
    folder = Path(tempfile.mkdtemp())
    began = time.process_time()
    found = build(every, folder)
    built = time.process_time() - began
    first, second, times = [], [], []
    for item in asked:
        words = question.of(item["ask"])
        began = time.process_time()
        matches = found(words, item["dsl"])
        times.append((time.process_time() - began) * 1e3)
        shards = [held for held in index.shards if held[0].dsl in (item["dsl"], "")]
        first.append(measure.rank(item["answers"], [(c.path, c.symbol) for c in matches]))
        ranked = ranking.ranked(words, matches, index.rarity(words, shards))
        second.append(measure.rank(item["answers"], [(c.path, c.symbol) for c in ranked]))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    print(measure.line(f"{title}, first look", first))
    print(measure.line(f"{title}, second look", second))
    print(f"{title}: built in {built:.1f} s of CPU, {size:.1f} MiB; matches, CPU: {measure.spread(times)}")
    shutil.rmtree(folder)


def main() -> int:
    """Measure both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    with closing(search.Index(parser.parse_args().root)) as index:
        every = list(rows(index))
        for title, build in (("SQLite FTS5", fts5), ("tantivy", with_tantivy)):
            judged(title, build, every, index)
    return 0


if __name__ == "__main__":
    sys.exit(main())
