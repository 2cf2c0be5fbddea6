"""The score of a selftest: its exit code, its table, its JSON."""

import json

import msgspec
import pytest

from kernelci import score
from kernelci.score import ACCEPTED, MISSED, NOT_RUN, REFUSED, STOPPED, Result, Score


def _score(*verdicts: str) -> Score:
    one = Result("kernel", "B2", "B", "caches by a checksum", "correctness FAILED wrong", STOPPED)
    changed = [msgspec.structs.replace(one, verdict=verdict, detail=verdict) for verdict in verdicts]
    return Score(tuple(changed), "no GPU")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((STOPPED, ACCEPTED, NOT_RUN), 0),
        ((STOPPED, MISSED), 1),
        ((STOPPED, REFUSED), 1),
        ((NOT_RUN, NOT_RUN), 3),
        ((), 3),
    ],
)
def test_exit_code(verdicts: tuple[str, ...], code: int) -> None:
    assert code == _score(*verdicts).exit_code


def test_an_interrupted_score_has_the_exit_code_of_an_interrupt() -> None:
    assert 130 == msgspec.structs.replace(_score(STOPPED, MISSED), interrupted=True).exit_code


def test_table_shows_misses_and_what_was_not_run() -> None:
    text = score.table(_score(STOPPED, MISSED, NOT_RUN))
    assert "B2               1/2                       1" in text
    assert (
        "missed: kernel (B2)\n  caches by a checksum\n  expected: correctness FAILED wrong\n  happened: missed" in text
    )
    assert "not run here: not run (1)\n  kernel" in text


def test_table_shows_what_luck_stopped() -> None:
    lucky = Result("kernel", "X5", "", "a race", "sanitize FAILED", STOPPED, "correctness FAILED wrong")
    assert (
        "stopped earlier, by luck: kernel (X5)\n  a race\n  expected: sanitize FAILED\n"
        "  happened: correctness FAILED wrong"
    ) in score.table(Score((lucky,), "no GPU"))


def test_json_has_the_same_numbers() -> None:
    found = json.loads(score.as_json(_score(STOPPED, MISSED, NOT_RUN)))
    assert {"stopped": 1, "missed": 1, "accepted": 0, "refused": 0, "not run": 1} == found["totals"]
    assert ["stopped", "missed", "not run"] == [result["verdict"] for result in found["results"]]
