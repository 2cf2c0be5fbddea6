"""Search: matches by full text from each shard, ranked again by what they are called and what is said of them."""

import math
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from kernelci.context import places, question
from kernelci.context.places import Manifest, Record
from kernelci.context.question import Question
from kernelci.context.ranking import Match, ranked
from kernelci.errors import ConfigError

CANDIDATES = 100
MAX_RESULTS = 50
WEIGHTS = (6.0, 3.0, 3.0, 2.0)
MAX_PHRASES = 32
Shard = tuple[Record, sqlite3.Connection]


class Result(Struct, frozen=True, kw_only=True):
    """One place that may answer: what it is, where, in which version, and the command that opens it."""

    symbol: str
    kind: str
    title: str
    summary: str
    source: str
    dsl: str
    version: str
    file: str
    line: int
    last_line: int
    score: float
    open: str
    url: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """The best places, and how many more there are to ask for."""

    query: str
    results: tuple[Result, ...]
    more: int
    note: str = ""


class Index:
    """The shards that are served, held open: the first question pays for opening, the others don't."""

    def __init__(self, root: Path) -> None:
        self.folder = places.home(root)
        self.manifest, self.shards = _all_opened(self.folder)
        self._known: dict[tuple[str, str], int] = {}

    def close(self) -> None:
        """Close the shards."""
        for _, database in self.shards:
            database.close()

    def is_stale(self) -> bool:
        """Whether a sync has replaced the manifest since it was read."""
        return places.read(self.folder) != self.manifest

    def search(self, text: str, *, dsl: str = "", limit: int = 8, skip: int = 0) -> Answer:
        """The places that answer best. What belongs to the asked DSL, or to none, comes before all else."""
        asked = question.of(text)
        if not asked.terms:
            raise ConfigError("the question has no words to look for", hint="name what it is about")
        limit, skip = max(1, min(limit, MAX_RESULTS)), max(0, skip)
        own = [shard for shard in self.shards if not dsl or shard[0].dsl in (dsl, "")]
        found = [item for item in self._ranked(asked, own) if not dsl or item.dsl in (dsl, "")]
        note = ""
        if dsl and len(found) < skip + limit:
            others = [shard for shard in self.shards if shard not in own]
            found += self._ranked(asked, others)
            note = f"few results for {dsl}: other DSLs follow" if others and found else ""
        shown = tuple(_result(match) for match in found[skip : skip + limit])
        return Answer(query=text, results=shown, more=max(0, len(found) - skip - limit), note=note)

    def _ranked(self, asked: Question, shards: list[Shard]) -> list[Match]:
        matches: list[Match] = []
        for record, database in shards:
            matches += _matches(asked, record, database)
        return ranked(asked, matches, self.rarity(asked, shards))

    def rarity(self, asked: Question, shards: list[Shard]) -> dict[str, float]:
        """How much each word of the question says: the rarer in these shards, the more."""
        total = sum(record.chunks for record, _ in shards)
        every = {word for phrase in asked.phrases() for word in phrase}
        return {
            word: math.log(1 + total / (1 + sum(self._frequency(word, *shard) for shard in shards))) for word in every
        }

    def _frequency(self, word: str, record: Record, database: sqlite3.Connection) -> int:
        """In how many of a shard's chunks a word occurs."""
        known = self._known.get((record.name, word))
        if known is None:
            row = database.execute("SELECT df FROM words WHERE word = ?", (word,)).fetchone()
            known = self._known[record.name, word] = row[0] if row else 0
        return known


def _all_opened(folder: Path, tries: int = 3) -> tuple[Manifest, list[Shard]]:
    """The manifest and its shards; read again where a sync has replaced them in between."""
    manifest = places.read(folder)
    if not manifest.records:
        raise ConfigError("nothing is indexed yet", hint="kernelci context sync")
    try:
        return manifest, [(record, _opened(folder / record.shard)) for record in manifest.records]
    except ConfigError:
        if tries == 1:
            raise
        return _all_opened(folder, tries - 1)


def _opened(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    except sqlite3.Error as error:
        raise ConfigError(f"can't open {path.name}: {error}", hint="kernelci context sync") from error


_QUERY = """
SELECT chunks.id, kind, symbol, first, last, title, doc, terms, path, url, dsl, hit.score
FROM (SELECT rowid, bm25(fts, ?, ?, ?, ?) AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT ?) AS hit
JOIN chunks ON chunks.id = hit.rowid JOIN files ON files.id = chunks.file
"""


def _matches(asked: Question, record: Record, database: sqlite3.Connection) -> list[Match]:
    match = " OR ".join(f'"{" ".join(phrase)}"' for phrase in asked.phrases()[:MAX_PHRASES])
    rows = list(database.execute(_QUERY, (*WEIGHTS, match, CANDIDATES)))
    columns: Iterator[list[Any]] = ([record, *row[:11], -row[11]] for row in rows)
    return [Match(*values) for values in columns]


def _result(found: Match) -> Result:
    place = f"{found.record.name}:{found.path}"
    return Result(
        symbol=found.symbol,
        kind=found.kind,
        title=found.title,
        summary=" ".join(found.doc.split())[:240],
        source=found.record.name,
        dsl=found.dsl,
        version=found.record.version or found.record.commit[:12],
        file=found.path,
        line=found.first,
        last_line=found.last,
        score=round(found.rank, 3),
        open=f"kernelci context open {shlex.quote(place)} --line {found.first}",
        url=found.url,
    )
