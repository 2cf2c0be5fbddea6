"""Words of code and questions: identifiers in parts, stems, and what kernel writers call the same thing."""

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{3})(?=[0-9])")
_WORD = re.compile(r"[a-z0-9]+")
GLOSSARY = Path(__file__).with_name("glossary.toml")
STOP = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "get",
        "gets",
        "give",
        "given",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "let",
        "lets",
        "may",
        "me",
        "might",
        "must",
        "my",
        "need",
        "no",
        "not",
        "of",
        "off",
        "on",
        "one",
        "or",
        "our",
        "over",
        "own",
        "please",
        "several",
        "shall",
        "should",
        "show",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "under",
        "until",
        "up",
        "upon",
        "use",
        "used",
        "using",
        "want",
        "was",
        "way",
        "we",
        "what",
        "when",
        "where",
        "whether",
        "which",
        "while",
        "who",
        "whose",
        "why",
        "will",
        "with",
        "within",
        "would",
        "you",
        "your",
    ]
)


def spaced(text: str) -> str:
    """The text with identifiers in camel case taken apart; underscores and dots are left to the tokenizer."""
    return _CAMEL.sub(" ", text)


def parts(text: str) -> list[str]:
    """Words in lower case: `make_tiled_mma`, `wgmma.mma_async` and `SharedStorage` in parts."""
    return _WORD.findall(spaced(text).lower())


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """The stem, as the index's own Porter stemmer has it."""
    return str(_stemmer().stemWord(word)) if word.isalpha() else word


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("porter")


def stems(text: str) -> list[str]:
    """The stems of all words, in order."""
    return [stem(word) for word in parts(text)]


@cache
def glossary() -> dict[str, dict[str, object]]:
    """glossary.toml: what instructions are for, and which words mean the same."""
    return tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))


@cache
def instructions() -> dict[str, str]:
    """In our own words, what the PTX wrapper of that name is for."""
    return {str(name): str(text) for name, text in glossary()["instructions"].items()}


Phrase = tuple[str, ...]


@cache
def synonyms() -> dict[str, list[tuple[Phrase, tuple[Phrase, ...]]]]:
    """By its first stem, each phrase with the phrases that may stand for it, as stems."""
    rules: dict[str, list[tuple[Phrase, tuple[Phrase, ...]]]] = {}
    for phrase, others in glossary()["synonyms"].items():
        assert isinstance(others, list)
        said = tuple(stems(phrase))
        rules.setdefault(said[0], []).append((said, tuple(tuple(stems(other)) for other in others)))
    return rules
