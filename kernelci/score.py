"""The score of a selftest: what became of each member, by class, as a table and as JSON."""

import json
import re
from collections.abc import Iterable

from msgspec import Struct

GROUPS = {
    "A": "Bending the clock",
    "B": "Not doing the work again",
    "C": "Taking the answer",
    "D": "A cheaper answer that passes",
    "E": "Not a kernel at all",
    "F": "Changing the judge",
    "m": "Seeded bugs, and their clean twins",
    "honest": "Honest, but suspicious to look at",
    "": "Field checks",
}
STOPPED, MISSED, ACCEPTED, REFUSED, NOT_RUN = "stopped", "missed", "accepted", "refused", "not run"


class Result(Struct, frozen=True):
    """What became of a member. `detail` says what happened instead, which rung saw it already by luck, or why it was
    not run."""

    kernel: str
    class_: str
    group: str
    title: str
    expected: str
    verdict: str
    detail: str = ""


class Score(Struct, frozen=True):
    """All results of one climb; of one that was interrupted, those that were there by then."""

    results: tuple[Result, ...]
    machine: str
    interrupted: bool = False

    def count(self, *verdicts: str) -> int:
        """How many ended so."""
        return sum(result.verdict in verdicts for result in self.results)

    @property
    def exit_code(self) -> int:
        """0 all as they should be · 1 a bad one missed or an honest one refused · 3 nothing ran · 130 interrupted."""
        if self.interrupted:
            return 130
        if self.count(MISSED, REFUSED):
            return 1
        return 0 if self.count(STOPPED, ACCEPTED) else 3


def as_json(score: Score) -> str:
    """The score with every result, for programs."""
    records = [
        {
            "kernel": result.kernel, "class": result.class_, "group": result.group, "title": result.title,
            "expected": result.expected, "verdict": result.verdict, "detail": result.detail,
        }
        for result in score.results
    ]  # fmt: skip
    totals = {verdict: score.count(verdict) for verdict in (STOPPED, MISSED, ACCEPTED, REFUSED, NOT_RUN)}
    head = {"machine": score.machine, "interrupted": score.interrupted, "totals": totals}
    return json.dumps({**head, "results": records}, indent=1)


def table(score: Score) -> str:
    """The score by class, then each miss with what happened instead, what luck stopped, what was not run and why."""
    lines = [f"{'CLASS':<8}{'BAD STOPPED':>12}{'HONEST PASSED':>15}{'NOT RUN':>9}"]
    for group, title in GROUPS.items():
        own = [result for result in score.results if result.group == group]
        if own:
            lines += ["", title, *(_row(name, own) for name in sorted({one.class_ for one in own}, key=_natural))]
    lines += ["", _row("total", score.results, "")]
    wrong = [result for result in score.results if result.verdict in (MISSED, REFUSED)]
    lucky = [result for result in score.results if result.verdict == STOPPED and result.detail]
    lines += [*_each(wrong), *_each(lucky, "stopped earlier, by luck")]
    idle = [result for result in score.results if result.verdict == NOT_RUN]
    reasons = sorted({result.detail for result in idle})
    for reason in reasons:
        names = [result.kernel for result in idle if result.detail == reason]
        lines += ["", f"not run here: {reason} ({len(names)})", f"  {', '.join(names)}"]
    return "\n".join(lines)


def _each(results: list[Result], what: str = "") -> list[str]:
    """An empty line, and each with what was expected and what happened; nothing where there is none."""
    told = [f"{what or one.verdict}: {one.kernel} ({one.class_})\n{_indented(one)}" for one in results]
    return ["", *told] if told else []


def _row(name: str, results: Iterable[Result], only: str | None = None) -> str:
    own = [result for result in results if only == "" or result.class_ == name]
    tally = {verdict: sum(one.verdict == verdict for one in own) for verdict in (*_BAD, *_HONEST, NOT_RUN)}
    bad, honest = (_share(tally[good], tally[good] + tally[ill]) for good, ill in (_BAD, _HONEST))
    return f"{name:<8}{bad:>12}{honest:>15}{tally[NOT_RUN] or '':>9}".rstrip()


_BAD, _HONEST = (STOPPED, MISSED), (ACCEPTED, REFUSED)


def _share(good: int, total: int) -> str:
    return f"{good}/{total}" if total else ""


def _indented(result: Result) -> str:
    return f"  {result.title}\n  expected: {result.expected}\n  happened: {result.detail}"


def _natural(name: str) -> tuple[str, int]:
    """m05 before m11, B2 before B11."""
    number = re.search(r"\d+", name)
    return name[:1], int(number[0]) if number else 0
