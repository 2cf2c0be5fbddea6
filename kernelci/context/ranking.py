"""The second look at the candidates: names over text, definitions over uses, public over private, one place per symbol."""

from msgspec import Struct

from kernelci.context.places import Record
from functools import lru_cache
from kernelci.context import words as W
from kernelci.context.question import Question
@lru_cache(100000)
def words_of(p): return W.stems(p.rpartition(".")[0])


KINDS = {
    "function": 1.0, "class": 1.0, "method": 0.85, "instruction": 1.1, "variant": 0.7, "declaration": 0.95,
    "section": 0.9, "text": 0.7, "module": 0.6, "part": 0.35,
}  # fmt: skip
FETCHED = 0.9  # an installed version comes before one that was fetched
PRIVATE = 0.3
TESTS = 0.6
EXPERIMENTAL = 0.4
OWN = 0.4  # own kernels use what they name; its definition comes first
NAME, SUMMARY, SAID, TEXT = 0.25, 1.0, 0.3, 1.0
WHOLE = 0.5
COVER = 1.0
PACE = 0.036
SYN = 1.2
CAP = 0.75
PATH = 0.6
TOGETHER = 0.2
POWER = 2.0


class Candidate(Struct):
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


def ranked(asked: Question, candidates: list[Candidate], rarity: dict[str, float]) -> list[Candidate]:
    """The best first; of each symbol in a file only its best chunk."""
    best = max((candidate.score for candidate in candidates), default=1.0) or 1.0
    total = sum(rarity[term] for term in asked.terms) or 1.0
    for candidate in candidates:
        candidate.rank = _rank(candidate, asked, rarity, total, best)
    candidates.sort(key=lambda candidate: (-candidate.rank, candidate.path, candidate.first))
    firsts: dict[tuple[str, str, str], Candidate] = {}
    for found in candidates:
        firsts.setdefault((found.record.name, found.path, found.symbol), found)
    return list(firsts.values())


def _rank(found: Candidate, asked: Question, rarity: dict[str, float], total: float, best: float) -> float:
    called, summary, said = found.terms.split("|")
    names, first, rest = called.split(), summary.split(), said.split()
    name_set = set(names)
    value = TEXT * found.score / best
    value += NAME * _share(asked, name_set, called, rarity, total)
    value += SUMMARY * _share(asked, set(first), summary, rarity, total) / (1 + PACE * len(first))
    value += SAID * _share(asked, set(rest), said, rarity, total)
    heard = sum(rarity[term] for term in asked.terms if term in name_set or term in first or term in rest)
    value += TOGETHER * (heard / total) ** POWER
    value += PATH * _share(asked, set(words_of(found.path)), "", rarity, total)
    if names:
        value += COVER * _covered(asked, name_set, rarity)
    if any(_contains(names, identifier) for identifier in asked.identifiers):
        value += WHOLE if any(names[-len(name) :] == list(name) for name in asked.identifiers) else WHOLE / 2
    return value * _factor(found)


def _share(asked: Question, words: set[str], text: str, rarity: dict[str, float], total: float) -> float:
    """How much of the question these words hold, by weight; other names for it count for less."""
    own = sum(rarity[term] for term in asked.terms if term in words)
    other = 0.0
    for phrase, weight in asked.others:
        if words.issuperset(phrase) and (len(phrase) == 1 or " ".join(phrase) in text):
            other += SYN * weight * sum(rarity[word] for word in phrase)
    return min(CAP, (own + other) / total)


def _covered(asked: Question, names: set[str], rarity: dict[str, float]) -> float:
    """How much of the name the question accounts for."""
    every = set(asked.terms) | {word for phrase, _ in asked.others for word in phrase}
    return len(names & every) / len(names)


def _contains(names: list[str], identifier: tuple[str, ...]) -> bool:
    size = len(identifier)
    return any(tuple(names[start : start + size]) == identifier for start in range(len(names) - size + 1))


def _factor(found: Candidate) -> float:
    factor = KINDS.get(found.kind, 0.8)
    if found.record.kind in ("git", "web"):
        factor *= FETCHED
    last = found.symbol.rpartition(".")[2]
    if last.startswith("_") or "/_" in found.path.replace("/__init__", "").replace("/__ptx", "") or found.symbol.startswith("_"):
        factor *= PRIVATE
    if "/test" in found.path or found.path.startswith("test"):
        factor *= TESTS
    if "/experimental/" in found.path and "gluon" not in found.path:
        factor *= EXPERIMENTAL
    if found.record.kind == "kernels":
        factor *= OWN
    return factor
