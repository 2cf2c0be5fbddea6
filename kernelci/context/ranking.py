"""The second look at the matches: names over text, definitions over uses, public over private, one place per symbol.

The weights were set on the 120 open questions of benchmarks/retrieval, by hand and with few digits; leaving any one of
them out, or halving it, moves hit@5 by little, except COVER: that a name is accounted for by the question.
"""

from functools import lru_cache

from msgspec import Struct

from kernelci.context import words
from kernelci.context.places import Record
from kernelci.context.question import Question

KINDS = {
    "function": 1.0, "class": 1.0, "method": 0.85, "instruction": 1.1, "variant": 0.7, "declaration": 0.95,
    "section": 0.9, "text": 0.7, "module": 0.6, "part": 0.35,
}  # fmt: skip
NAME, SUMMARY, SAID, PLACE, TEXT = 0.25, 1.0, 0.3, 0.6, 1.0
COVER = 1.0  # how much of the name the question accounts for
WHOLE = 0.5  # the question holds the name as an identifier
PACE = 0.03  # a long summary says less with each word
FETCHED = 0.9  # an installed version comes before one that was fetched
PRIVATE, TESTS, EXPERIMENTAL = 0.5, 0.6, 0.6
OWN = 0.7  # own kernels use what they name; its definition comes first


class Match(Struct):
    """A chunk that matched, with its full-text score; `rank` is set by the second look."""

    record: Record
    number: int
    kind: str
    symbol: str
    first: int
    last: int
    title: str
    doc: str
    terms: str
    path: str
    url: str
    dsl: str
    score: float
    rank: float = 0.0


def ranked(asked: Question, matches: list[Match], rarity: dict[str, float]) -> list[Match]:
    """The best first; of each symbol in a file only its best chunk."""
    best = max((match.score for match in matches), default=1.0) or 1.0
    scale = _Scale(asked, rarity)
    for match in matches:
        match.rank = _rank(match, scale, best)
    matches.sort(key=lambda match: (-match.rank, match.path, match.first))
    firsts: dict[tuple[str, str, str], Match] = {}
    for found in matches:
        firsts.setdefault((found.record.name, found.path, found.symbol), found)
    return list(firsts.values())


class _Scale:
    """What the words of one question weigh."""

    def __init__(self, asked: Question, rarity: dict[str, float]) -> None:
        self.asked = asked
        self.rarity = rarity
        self.terms = frozenset(asked.terms)
        self.total = sum(rarity[term] for term in asked.terms) or 1.0
        self.others = [(phrase, weight * sum(map(rarity.__getitem__, phrase))) for phrase, weight in asked.others]

    def share(self, held: frozenset[str] | set[str], text: str) -> float:
        """How much of the question these words hold, by weight; other names for it count for less."""
        heard = self.asked.every & held
        if not heard:
            return 0.0
        found = sum(map(self.rarity.__getitem__, heard & self.terms))
        for phrase, weight in self.others:
            if phrase[0] in heard and (len(phrase) == 1 or (heard.issuperset(phrase) and " ".join(phrase) in text)):
                found += weight
        return min(1.0, found / self.total)


def _rank(found: Match, scale: _Scale, best: float) -> float:
    called, summary, said = found.terms.split("|")
    names, first = called.split(), summary.split()
    value = TEXT * found.score / best
    value += NAME * scale.share(set(names), called)
    value += SUMMARY * scale.share(set(first), summary) / (1 + PACE * len(first))
    value += SAID * scale.share(set(said.split()), said)
    value += PLACE * scale.share(*_place(found.path))
    if names:
        value += COVER * len(scale.asked.every.intersection(names)) / len(set(names))
    value += WHOLE * max((_likeness(names, name) for name in scale.asked.identifiers), default=0.0)
    return value * _factor(found)


def _likeness(names: list[str], identifier: tuple[str, ...]) -> float:
    """1 where the name ends in the identifier, half where it holds it."""
    size = len(identifier)
    if tuple(names[-size:]) == identifier:
        return 1.0
    return 0.5 if any(tuple(names[start : start + size]) == identifier for start in range(len(names) - size)) else 0.0


@lru_cache(maxsize=50_000)
def _place(path: str) -> tuple[frozenset[str], str]:
    found = words.stems(path.rpartition(".")[0])
    return frozenset(found), " ".join(found)


def _factor(found: Match) -> float:
    factor = KINDS.get(found.kind, 0.8)
    if found.record.kind in ("git", "web"):
        factor *= FETCHED
    if found.record.kind == "kernels":
        factor *= OWN
    return factor * _place_factor(found.path) * (PRIVATE if found.symbol.rpartition(".")[2].startswith("_") else 1.0)


@lru_cache(maxsize=50_000)
def _place_factor(path: str) -> float:
    folders = path.split("/")
    factor = 1.0
    if any(part.startswith("_") and not part.startswith("__") for part in folders):
        factor *= PRIVATE
    if any(part.startswith("test") and part not in ("testing", "testing.py") for part in folders):
        factor *= TESTS
    # Gluon lives in a folder of that name and has no other home.
    return factor * (EXPERIMENTAL if "experimental" in folders and "gluon" not in folders else 1.0)
