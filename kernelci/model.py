"""What one run found: the records of `results.json`, frozen, strict, and unable to contradict themselves.

Units are SI and stand in the metric's `unit`; only `kernelci.units` formats. Numbers that are not finite have no form
in JSON: a `Metric.value` is then one of the words "nan", "inf", "-inf".
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kernelci.reasons import Outcome, outcome_of

SCHEMA_VERSION = 1

# Bounds keep a hostile report small; they are far above what an honest run writes.
Name = Annotated[str, Meta(max_length=300)]
Text = Annotated[str, Meta(max_length=20_000)]
NonFinite = Literal["nan", "inf", "-inf"]
Number = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)] | NonFinite
Count = Annotated[int, Meta(ge=0, le=2**53)]
Switch = Literal["on", "off", ""]


def number(value: float) -> Number:
    """The form in which `value` stands in a report."""
    if math.isfinite(value):
        return float(value)
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


class Unit(StrEnum):
    """The units a metric may have; `units.py` knows how each is read."""

    NONE = ""
    SECONDS = "s"
    NANOSECONDS = "ns"
    BYTES = "byte"
    BYTES_PER_SECOND = "byte/s"
    FLOP = "FLOP"
    FLOP_PER_SECOND = "FLOP/s"
    FRACTION = "fraction"
    DECIBEL = "dB"
    COUNT = "count"
    RATIO = "ratio"


class Verdict(StrEnum):
    """What a comparison of times says, head against base; NONE where nothing was compared."""

    SLOWER = "SLOWER"
    UNKNOWN = "UNKNOWN"
    FASTER = "FASTER"
    SAME = "SAME"
    NONE = ""


class Metric(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A number that describes itself, so that a new rung needs no change in any template."""

    tag: Name
    value: Number
    unit: Unit
    name: Name
    description: Text = ""
    low: Number | None = None
    high: Number | None = None


def by_tag(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Metrics by what names them."""
    return {metric.tag: metric for metric in metrics}


class Artifact(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file that a rung left, by its path relative to the report's folder."""

    path: Name
    kind: Name
    size_bytes: Count


class Finding(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why something did not pass: a reason's code, a message, and where. `log` is what the kernel said: untrusted."""

    reason: Name
    message: Text
    file: Name = ""
    line: Count = 0
    log: Text = ""
    reproduce: Text = ""

    def __post_init__(self) -> None:
        outcome_of(self.reason)


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One case, or one case on one target, within a rung."""

    outcome: Outcome
    case: Name = ""
    target: Name = ""
    draw: Name = ""
    finding: Finding | None = None
    metrics: tuple[Metric, ...] = ()
    notes: tuple[Text, ...] = ()
    verdict: Verdict = Verdict.NONE
    """Of a row that compares head with base."""

    def __post_init__(self) -> None:
        _agree(self.outcome, self.finding)


class RungResult(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one rung found for one kernel."""

    rung: Name
    outcome: Outcome
    duration_s: float = 0.0
    finding: Finding | None = None
    rows: tuple[Row, ...] = ()
    metrics: tuple[Metric, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        _agree(self.outcome, self.finding)


def _agree(outcome: Outcome, finding: Finding | None) -> None:
    """PASSED has no finding; everything else has one whose reason belongs to the outcome."""
    if (finding is None) != (outcome is Outcome.PASSED):
        raise ValueError(f"{outcome} {'needs' if finding is None else 'takes no'} finding")
    if finding is not None and outcome_of(finding.reason) is not outcome:
        raise ValueError(f"reason {finding.reason!r} means {outcome_of(finding.reason)}, not {outcome}")


READING = "precheck"
EXECUTING = ("run", "correctness")
"""The rungs that execute cases, in the ladder's order."""
TIMING = "benchmark"
"""The rung that times cases, and judges what it timed."""


def _left_out(rung: RungResult) -> bool:
    return rung.finding is not None and rung.finding.reason == "not-requested"


class LostRow(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A case that the base was measured on and the head is not: removed, or skipped now."""

    case: Name
    how: Literal["removed", "skipped"]
    target: Name = ""
    why: Text = ""


class KernelReport(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One kernel's climb."""

    name: Name
    reference: Name
    backend: Name
    path: Name
    sha256: Name
    rungs: tuple[RungResult, ...]
    lost: tuple[LostRow, ...] = ()
    """Rows of the base that are missing here."""

    @property
    def outcome(self) -> Outcome:
        """The worst rung's outcome; SKIPPED also where something was to be executed and nothing was."""
        found = worst([rung.outcome for rung in self.rungs])
        return Outcome.SKIPPED if found is Outcome.PASSED and self.idle else found

    @property
    def idle(self) -> bool:
        """Whether it executed nothing of what was asked for: no case, where cases were to be executed, else no rung.

        That it could be read, and compiled, says nothing of whether it is right; what was timed was judged too.
        """
        if any(rung.rung == TIMING and rung.outcome is Outcome.PASSED for rung in self.rungs):
            return False
        asked = [rung for rung in self.rungs if rung.rung != READING and not _left_out(rung)]
        executing = [rung for rung in asked if rung.rung in EXECUTING]
        counted = executing[-1:] or asked
        return bool(counted) and all(rung.outcome is Outcome.SKIPPED for rung in counted)

    @property
    def passed_over(self) -> bool:
        """Whether it could be executed here, and yet every single case was skipped."""
        return self.idle and any(rung.rung in EXECUTING and rung.rows for rung in self.rungs)

    def rung(self, name: str) -> RungResult | None:
        """The result of one rung, if it was climbed or skipped."""
        return next((rung for rung in self.rungs if rung.rung == name), None)

    @property
    def stopped_at(self) -> RungResult | None:
        """The first rung that neither passed nor was skipped."""
        return next((rung for rung in self.rungs if rung.outcome in BLOCKING), None)


BLOCKING = (Outcome.FAILED, Outcome.BROKEN, Outcome.INVALID)
_ORDER = (Outcome.BROKEN, Outcome.FAILED, Outcome.INVALID, Outcome.PASSED, Outcome.SKIPPED)


def worst(outcomes: list[Outcome]) -> Outcome:
    """BROKEN over FAILED over INVALID over PASSED over SKIPPED; nothing at all is SKIPPED."""
    return min(outcomes, key=_ORDER.index, default=Outcome.SKIPPED)


class Environment(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the numbers come from. Two reports' times are comparable only where `kernelci.fingerprint` finds no
    difference in it. Empty or None: this machine does not tell."""

    machine: Name
    python: Name
    gpu: Name = ""
    target: Name = ""
    driver: Name = ""
    isolation: Name = ""
    versions: dict[Name, Name] = {}
    gpu_uuid: Name = ""
    cuda: Name = ""
    """The version of CUDA that torch was built with."""
    clocks: Name = ""
    """How fast the GPU may run: its maximum SM and memory clocks, and the applications' clock that is set."""
    power_limit_w: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    ecc: Switch = ""
    mig: Switch = ""


class JudgeChange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One file that judges and that the change touches; the base's version of it judged. `difference` is untrusted."""

    path: Name
    role: Literal["reference", "rung", "configuration", "template", "workflow", "packaging", "kernelci"]
    change: Literal["added", "modified", "removed"]
    difference: Text = ""


class Change(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was judged, where it was a change: kernels of `head`, by the judge of `base` (both are commits)."""

    base: Name
    head: Name
    judge: tuple[JudgeChange, ...] = ()
    removed: tuple[Name, ...] = ()
    """Kernels that the base has and the head has not."""
    unjudged: tuple[Name, ...] = ()
    """Kernels whose reference exists only in the head."""
    incomplete: Text = ""
    """What this run did not do and somebody must still allow (a GPU run, say); empty: nothing. Never green with it."""


class Second(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the head's own judge said of kernels: the second referee, whose Python the change brought along. It stands
    apart from `Report.kernels`, so that nothing that counts those can take it for evidence."""

    kernels: tuple[KernelReport, ...] = ()
    by: Name = ""
    """Who allowed it, for this head alone."""
    isolation: Text = ""
    """What stood around it, and around the candidates in it."""
    why: Text = ""
    """What kept it from answering, or from answering in full; empty: nothing."""
    log: Text = ""
    """The last lines that it printed: untrusted."""


class Budget(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The GPU time that a pull request may take, and what is left of it; None: no limit, or nobody knows here."""

    gpu_minutes: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    gpu_minutes_left: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    runs: Count | None = None
    runs_left: Count | None = None


class Report(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that one run found."""

    schema_version: int
    kernelci_version: Name
    started_at: Name
    duration_s: float
    environment: Environment
    kernels: tuple[KernelReport, ...]
    seed: Name = ""
    notes: tuple[Text, ...] = ()
    change: Change | None = None
    budget: Budget | None = None
    """What the configuration grants a pull request, less this run; earlier runs are counted by `kernelci feedback`."""
    second: Second | None = None
    """Counts for nothing below."""

    @property
    def outcome(self) -> Outcome:
        """The worst kernel's outcome; SKIPPED also where others passed, but one had every case skipped."""
        found = worst([kernel.outcome for kernel in self.kernels])
        passed_over = any(kernel.passed_over for kernel in self.kernels)
        return Outcome.SKIPPED if found is Outcome.PASSED and passed_over else found

    @property
    def exit_code(self) -> int:
        """0 all passed · 1 a kernel failed or is invalid · 3 nothing, or no case of one, was executed · 4 broken."""
        return {
            Outcome.PASSED: 0,
            Outcome.FAILED: 1,
            Outcome.INVALID: 1,
            Outcome.SKIPPED: 3,
            Outcome.BROKEN: 4,
        }[self.outcome]
