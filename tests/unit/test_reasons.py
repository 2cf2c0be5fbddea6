"""The table of reasons: every entry says what it means and what to do next."""

import ast
from pathlib import Path

import pytest

from kernelci.reasons import REASONS, Outcome, outcome_of

PACKAGE = Path(__file__).resolve().parents[2] / "kernelci"


@pytest.mark.parametrize("code", REASONS)
def test_entry_is_complete(code: str) -> None:
    reason = REASONS[code]
    assert all(text.strip() for text in (reason.title, reason.meaning, reason.next_step))


@pytest.mark.parametrize("code", REASONS)
def test_sentences_end(code: str) -> None:
    assert (".", ".") == (REASONS[code].meaning[-1], REASONS[code].next_step[-1])


def test_no_reason_means_passed() -> None:
    assert Outcome.PASSED not in {reason.outcome for reason in REASONS.values()}


def test_outcome_of() -> None:
    assert (Outcome.FAILED, Outcome.SKIPPED, Outcome.BROKEN) == (
        outcome_of("wrong"),
        outcome_of("no-gpu"),
        outcome_of("reference"),
    )


@pytest.mark.parametrize("code", ["no-such-reason", "configuration", "bug"])
def test_outcome_of_what_is_no_outcome(code: str) -> None:
    with pytest.raises(ValueError, match=code):
        outcome_of(code)


def _stops() -> list[tuple[str, str]]:
    """Every literal reason that the package raises or records, with the file."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Stop", "Finding"):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    found.append((path.name, str(first.value)))
    return found


def test_every_verdict_in_the_code_is_in_the_table() -> None:
    assert [] == [stop for stop in _stops() if stop[1] not in REASONS]


def test_verdicts_are_found() -> None:
    assert ("precheck.py", "entry-missing") in _stops()
