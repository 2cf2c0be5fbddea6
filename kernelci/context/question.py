"""A question as the search sees it: its words, its identifiers as phrases, and what else they may be called."""

import re

from msgspec import Struct

from kernelci.context import words

MAX_WORDS = 40
SYNONYM = 0.5
_IDENTIFIER = re.compile(r"[A-Za-z_][\w]*(?:(?:::|\.)[A-Za-z_0-9]\w*)+|[A-Za-z_]\w*")


class Question(Struct, frozen=True):
    """`terms` are the asker's own words, `others` what they may be called, `identifiers` names as they were written."""

    terms: tuple[str, ...]
    others: tuple[tuple[tuple[str, ...], float], ...]
    identifiers: tuple[tuple[str, ...], ...]
    every: frozenset[str]

    def phrases(self) -> list[tuple[str, ...]]:
        """All that is looked for."""
        every = [(term,) for term in self.terms] + list(self.identifiers) + [phrase for phrase, _ in self.others]
        return list(dict.fromkeys(every))


def of(text: str) -> Question:
    """The question in stems, bounded."""
    kept = [word for word in words.parts(text[:2000]) if word not in words.STOP and (len(word) > 1 or word.isdigit())]
    terms = tuple(dict.fromkeys(words.stem(word) for word in kept[:MAX_WORDS]))
    said = {(term,) for term in terms}
    others = tuple(item for item in _others(words.stems(text[:2000])).items() if item[0] not in said)
    every = frozenset(terms) | {word for phrase, _ in others for word in phrase}
    return Question(terms, others, _names(text), every)


def _others(stems: list[str]) -> dict[tuple[str, ...], float]:
    """Phrases that stand for phrases of the question."""
    found: dict[tuple[str, ...], float] = {}
    rules = words.synonyms()
    for start, first in enumerate(stems):
        for phrase, alternatives in rules.get(first, ()):
            if tuple(stems[start : start + len(phrase)]) == phrase:
                found |= dict.fromkeys(alternatives, SYNONYM)
    return found


def _names(text: str) -> tuple[tuple[str, ...], ...]:
    """Words that are written as identifiers: with underscores, dots, capitals inside, or digits."""
    found = []
    for match in _IDENTIFIER.finditer(text[:2000]):
        parts = words.stems(match[0])
        if len(parts) > 1:
            found.append(tuple(parts))
    return tuple(dict.fromkeys(found))[:8]
