"""profile: Nsight Compute on the bench rows that matter: what a call does to the GPU, and why it waits.

Against a base: what explains a time that changed.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kernelci import units
from kernelci.comparison import ADVISES, EXPLAINS
from kernelci.errors import Stop
from kernelci.gate import Gate
from kernelci.model import Artifact, Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, kept, rung, safe
from kernelci.workbench import counters, profiler
from kernelci.workbench.ncu_report import Launch
from kernelci.workbench.profiler import Profile

FOLDER = "profile"
CHANGED, ALL, NONE = "changed", "all", "none"
EXPLAINED, ADVICE = 4, 4  # lines of each kind in a row's notes
APART, LEAST_NS = 0.05, 20_000.0  # a profile that is further from the benchmark is told so, for times of this length
HARMLESS = ("INF", "INFO", "OK")  # kinds of rules that advise nothing
ELSEWHERE = "L2 Compression unit"  # advice on memory that is allocated as compressible, which the referee's never is
SENTENCE = 240  # characters of an advice that are shown


@rung("profile", after=("benchmark",), needs=("gpu", "quiet"))
def profile(referee: Referee) -> Findings:
    """One row per bench row that is looked into."""
    chosen = choose(referee)
    if not chosen:
        raise Stop("not-requested", f"no row to look into by profile = {referee.config.profile!r}")
    profiler.require()
    found = Findings()
    for case, timed in chosen:
        try:
            _look(referee, case, timed, found)
        except Stop as stop:
            found.rows.append(failed(referee, stop, case, rung="profile"))
            if stop.reason == "no-counters":  # nor will the next one have any
                break
    return found


def choose(referee: Referee) -> list[tuple[Case, Row]]:
    """The bench cases that were timed and are asked for, the slowest first."""
    rows = [row for row in referee.climbed["benchmark"].rows if row.outcome is Outcome.PASSED and _tag(row, "time")]
    wanted = [row for row in rows if _is_wanted(referee, row)]
    wanted.sort(key=lambda row: -_value(row, "time"))
    cases = ((referee.reference.case_of(row.case), row) for row in wanted[: referee.config.profile_rows])
    return [(case, row) for case, row in cases if case is not None]


def _is_wanted(referee: Referee, row: Row) -> bool:
    asked = referee.config.profile
    if asked in (ALL, NONE):
        return asked == ALL
    if asked == CHANGED:
        floor = Gate.now(referee.config.gate).of(referee.kernel.name, row.case).floor
        return abs(_value(row, "delta")) > floor
    return fnmatchcase(referee.kernel.name, asked) or fnmatchcase(row.case, asked)


def _tag(row: Row, tag: str) -> Metric | None:
    return next((metric for metric in row.metrics if metric.tag == tag), None)


def _value(row: Row, tag: str) -> float:
    metric = _tag(row, tag)
    return float(metric.value) if metric is not None else 0.0


def _look(referee: Referee, case: Case, timed: Row, found: Findings) -> None:
    """Profile head, and base where the row compares with it."""
    head = referee.profile(case)
    found.artifacts.append(_report(referee, case, head, ".ncu-rep"))
    metrics = counters.figures(head.launches)
    notes = [*_apart(metrics, timed)]
    if referee.base is not None and _tag(timed, "delta") is not None:
        try:
            base = referee.base.profile(case)
            found.artifacts.append(_report(referee, case, base, ".base.ncu-rep"))
            old = counters.figures(base.launches)
            notes += [f"{EXPLAINS}{text}" for text in counters.explained(old, metrics)[:EXPLAINED]]
            metrics = (*metrics, *_of_base(old))
        except Stop as stop:
            notes.append(f"base was not profiled: {stop.message}"[:500])
    notes += [f"{ADVISES}{text}" for text in advice(head.launches)[:ADVICE]]
    found.rows.append(Row(Outcome.PASSED, case.id, metrics=metrics, notes=tuple(notes)))


def _of_base(metrics: Sequence[Metric]) -> Iterator[Metric]:
    for metric in metrics:
        yield Metric(f"{metric.tag}_base", metric.value, metric.unit, f"{metric.name}, base", metric.description)


def _apart(metrics: Sequence[Metric], timed: Row) -> Iterator[str]:
    """Whether the profile's call is not the benchmark's: neither in time, nor in cycles where both have them and the
    call is one kernel, whose cycles the profile's are.

    The tool keeps no clock steady, and its one call is alone where the benchmark's are many: so a kernel that takes a
    GPU to its power limit has another time here, and the same cycles.
    """
    found = {metric.tag: float(metric.value) for metric in metrics}
    pairs = {"time is": (found.get("profile_time", 0.0), _value(timed, "time"))}
    if "launches" not in found:
        pairs["SM cycles"] = found.get("sm_cycles", 0.0), _value(timed, "sm_cycles")
    off = {what: seen / there - 1 for what, (seen, there) in pairs.items() if seen and there}
    if _value(timed, "time") >= LEAST_NS and off and min(map(abs, off.values())) > APART:
        told = " and its ".join(f"{what} {units.value(share, Unit.FRACTION)}" for what, share in off.items())
        yield f"the profile's {told} off the benchmark's: compare shares, not times"


def advice(launches: Sequence[Launch]) -> list[str]:
    """What the tool's rules advise, the first sentence of each, the largest expected gain first, each once; the rest
    stands in the report."""
    every = [each for launch in launches for each in launch.advice]
    found = [each for each in every if each.kind.upper() not in HARMLESS and each.text and ELSEWHERE not in each.text]
    found.sort(key=lambda each: -each.speedup)
    told = ((_sentence(each.text), each.speedup) for each in found)
    lines = (f"{text} (expected gain {100 * speedup:.3g} %)" if speedup else text for text, speedup in told)
    return list(dict.fromkeys(lines))


def _sentence(text: str) -> str:
    first = re.split(r"(?<=[a-z)%\d])\.\s+(?=[A-Z])", text.strip(), maxsplit=1)[0].rstrip(".")
    return first if len(first) <= SENTENCE else first[: SENTENCE - 1].rstrip() + "…"


def _report(referee: Referee, case: Case, profile: Profile, ending: str) -> Artifact:
    path = Path(FOLDER) / referee.kernel.name / f"{safe(case.id)}{ending}"
    return kept(referee, path, profile.report, "ncu-rep")
