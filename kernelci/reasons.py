"""Every reason an outcome can have, and every error of the tool, from `reasons.toml`: one table each.

To add one, add a table there; `kernelci explain`, the documentation page and the tests walk them all.
"""

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Outcome(StrEnum):
    """How a rung ended for a kernel."""

    PASSED = "PASSED"
    FAILED = "FAILED"  # the kernel's fault
    SKIPPED = "SKIPPED"  # not run, with a reason
    BROKEN = "BROKEN"  # the runner's or the reference's fault
    INVALID = "INVALID"  # the measurement can't be trusted


class Reason(NamedTuple):
    """What a code means and what to do next. `outcome` is None for an error of the tool itself."""

    outcome: Outcome | None
    title: str
    meaning: str
    next_step: str


def _read() -> dict[str, Reason]:
    tables = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text(encoding="utf-8"))
    return {
        code: Reason(
            Outcome(table["outcome"]) if "outcome" in table else None,
            table["title"],
            table["meaning"],
            table["next_step"],
        )
        for code, table in tables.items()
    }


REASONS = _read()


def outcome_of(code: str) -> Outcome:
    """The outcome to which a reason belongs. Raises ValueError for an unknown code or an error of the tool."""
    reason = REASONS.get(code)
    if reason is None or reason.outcome is None:
        raise ValueError(f"unknown reason {code!r}")
    return reason.outcome
