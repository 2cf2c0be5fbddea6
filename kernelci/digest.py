"""What a reader needs of a report, computed once for every reporter: headline, ladder, stops, skipped rungs, tables.

Pure; holds raw text, which each reporter makes inert in its own way.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kernelci.model import BLOCKING, Finding, KernelReport, LostRow, Metric, Report, Row, RungResult
from kernelci.reasons import REASONS, Outcome

_SEVERITY = (Outcome.BROKEN, Outcome.FAILED, Outcome.INVALID)
_COMMAND = re.compile(r"kernelci [A-Za-z0-9_./:=,+ -]{1,2000}")
UNFINISHED, UNFINISHED_BY = "unfinished", "interrupted"
WORST = "worst_ratio"
ERROR_TAGS = ("max_abs", "max_rel", "mae", "rmse", "psnr", "cosine", WORST)


class Headline(Struct, frozen=True):
    """One sentence, and what to do next."""

    outcome: Outcome
    sentence: str
    next_step: str


class Stop(Struct, frozen=True):
    """A rung that stopped a kernel: the finding that speaks for it, its row, and the other rows that did not pass."""

    kernel: KernelReport
    rung: RungResult
    finding: Finding
    row: Row | None
    others: tuple[Row, ...]


class Skipped(Struct, frozen=True):
    """All that was skipped for one reason: whole rungs by name with their kernels, and single cases."""

    reason: str
    rungs: dict[str, tuple[str, ...]]
    cases: int
    kernels: tuple[str, ...]
    messages: tuple[str, ...]


class Note(Struct, frozen=True):
    """A remark that rungs or rows made, with how often it was made and by which kernels."""

    rung: str
    text: str
    count: int
    kernels: tuple[str, ...]


class Table(Struct, frozen=True):
    """Metrics of one rung: a column per metric, a line per kernel, output, case and target (None: no such metric)."""

    rung: str
    columns: tuple[str, ...]
    lines: tuple[tuple[tuple[str, str, str, str], tuple[Metric | None, ...]], ...]
    outcomes: tuple[Outcome, ...]


def headline(report: Report) -> Headline:
    """The report in one sentence."""
    counts = Counter(str(kernel.outcome) for kernel in report.kernels)
    counts[UNFINISHED] = sum(_is_unfinished(kernel) for kernel in report.kernels)
    counts[Outcome.PASSED] -= counts[UNFINISHED]
    every = _kernels(len(report.kernels))
    found = stops(report)
    step = REASONS[found[0].finding.reason].next_step if found else ""
    match report.outcome:
        case Outcome.SKIPPED:
            return Headline(Outcome.SKIPPED, _nothing(report, every), REASONS["nothing-to-do"].next_step)
        case Outcome.PASSED:
            partly, rest = f"{_idle(report)}{_unfinished(counts)}", _left_open(report)
            passed = counts[Outcome.PASSED]
            who = every if passed == len(report.kernels) else f"{passed:,} of {every}"
            sentence = f"{who} passed every rung that ran{partly}{rest}."
            return Headline(Outcome.PASSED, sentence, "")
        case worst:
            return Headline(worst, f"{_tally(counts, every)}. {_first(found)}", step)


def _nothing(report: Report, every: str) -> str:
    """What was not executed, where that is what there is to say."""
    if not report.kernels:
        return "No kernel was judged."
    over = [kernel.name for kernel in report.kernels if kernel.passed_over]
    if not over or all(kernel.outcome is Outcome.SKIPPED for kernel in report.kernels):
        return f"Nothing was executed ({every}); that is never green."
    which = over[0] if len(over) == 1 else f"{len(over)} of {every}, {over[0]} first,"
    return f"Every case of {which} was skipped; that is never green."


def _idle(report: Report) -> str:
    """How many kernels, beside those that passed, were skipped entirely or executed nothing."""
    idle = [kernel for kernel in report.kernels if kernel.outcome is Outcome.SKIPPED]
    entirely = sum(all(rung.outcome is Outcome.SKIPPED for rung in kernel.rungs) for kernel in idle)
    parts = [(entirely, "skipped entirely"), (len(idle) - entirely, "executed nothing")]
    return "".join(f"; {count:,} {what}" for count, what in parts if count)


def _is_unfinished(kernel: KernelReport) -> bool:
    """Whether it passed what was climbed, and the run ended before the rest."""
    reasons = {rung.finding.reason for rung in kernel.rungs if rung.finding is not None}
    return kernel.outcome is Outcome.PASSED and UNFINISHED_BY in reasons


def _unfinished(counts: Counter[str]) -> str:
    return f"; {counts[UNFINISHED]:,} {UNFINISHED}" if counts[UNFINISHED] else ""


def _tally(counts: Counter[str], every: str) -> str:
    shown = (*_SEVERITY, Outcome.PASSED, UNFINISHED, Outcome.SKIPPED)
    parts = [f"{counts[what]} {what}" for what in shown if counts[what]]
    return f"Of {every}: {', '.join(parts)}"


def _first(found: tuple["Stop", ...]) -> str:
    first = found[0]
    title = REASONS[first.finding.reason].title
    begin = "First to look at: " if len(found) > 1 else "Stopped: "
    return f"{begin}{first.kernel.name} at {first.rung.rung}: {title}."


def _kernels(count: int) -> str:
    return f"{count:,} kernel{'' if count == 1 else 's'}"


def _left_open(report: Report) -> str:
    """How much was skipped: whole rungs, and single cases of rungs that passed."""
    results = [rung for kernel in report.kernels for rung in kernel.rungs]
    rungs = sum(rung.outcome is Outcome.SKIPPED for rung in results)
    cases = sum(row.outcome is Outcome.SKIPPED for rung in results for row in rung.rows)
    counted = ((rungs, "rung"), (cases, "case"))
    parts = [f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counted if count]
    return f"; {' and '.join(parts)} skipped" if parts else ""


def rung_names(report: Report) -> tuple[str, ...]:
    """Every rung of any kernel, in the order of the climb."""
    return tuple(dict.fromkeys(rung.rung for kernel in report.kernels for rung in kernel.rungs))


def stops(report: Report) -> tuple[Stop, ...]:
    """Every rung that stopped a kernel, the gravest first."""
    found = [_stop(kernel, rung) for kernel in report.kernels for rung in kernel.rungs if rung.outcome in BLOCKING]
    return tuple(sorted(found, key=lambda stop: _SEVERITY.index(stop.rung.outcome)))


def _stop(kernel: KernelReport, rung: RungResult) -> Stop:
    assert rung.finding is not None  # the model has it so for everything but PASSED
    bad = [row for row in rung.rows if row.outcome in BLOCKING]
    speaks = next((row for row in bad if row.finding == rung.finding), None)
    return Stop(kernel, rung, rung.finding, speaks, tuple(row for row in bad if row is not speaks))


def place(row: Row) -> str:
    """Where a row was: case, target and draw, as far as it has them."""
    return ", ".join(part for part in (row.case, row.target, row.draw and f"draw {row.draw}") if part)


def reproduce(finding: Finding) -> str:
    """The command that repeats a finding; nothing where it is no plain kernelci command, since people paste it."""
    return finding.reproduce if _COMMAND.fullmatch(finding.reproduce) else ""


def skipped(report: Report) -> tuple[Skipped, ...]:
    """Skipped rungs and cases by reason, mere consequences last; rungs that nobody asked for are left out."""
    found: dict[str, list[tuple[str, str, str, bool]]] = {}
    for kernel, rung in _results(report):
        whole = rung.outcome is Outcome.SKIPPED
        findings = (rung.finding,) if whole else (row.finding for row in rung.rows if row.outcome is Outcome.SKIPPED)
        for finding in findings:
            if finding is not None and finding.reason != "not-requested":
                found.setdefault(finding.reason, []).append((kernel.name, rung.rung, finding.message, whole))
    return tuple(_group(reason, found[reason]) for reason in sorted(found, key=lambda reason: reason == "earlier-rung"))


def _group(reason: str, found: list[tuple[str, str, str, bool]]) -> Skipped:
    rungs: dict[str, list[str]] = {}
    for kernel, rung, _, whole in found:
        if whole:
            rungs.setdefault(rung, []).append(kernel)
    return Skipped(
        reason,
        {rung: tuple(kernels) for rung, kernels in rungs.items()},
        sum(not whole for *_, whole in found),
        tuple(dict.fromkeys(kernel for kernel, *_ in found)),
        tuple(dict.fromkeys(message for _, _, message, _ in found)),
    )


def _results(report: Report) -> Iterator[tuple[KernelReport, RungResult]]:
    return ((kernel, rung) for kernel in report.kernels for rung in kernel.rungs)


def lost(report: Report) -> tuple[tuple[str, LostRow], ...]:
    """The base's rows that the head lacks, by kernel."""
    return tuple((kernel.name, row) for kernel in report.kernels for row in kernel.lost)


SECONDS = "seconds"  # what a rung's note begins with that lists where its time went (`Spent.text`)


def notes(report: Report, *, rows: bool = True) -> tuple[Note, ...]:
    """All remarks, equal ones together, in the order of the climb; without `rows` only those on whole rungs."""
    found: dict[tuple[str, str], list[str]] = {}
    for kernel, rung in _results(report):
        for text in (*rung.notes, *(note for row in rung.rows if rows for note in row.notes)):
            found.setdefault((rung.rung, text), []).append(kernel.name)
    order = {name: index for index, name in enumerate(rung_names(report))}
    made = [Note(rung, text, len(who), tuple(dict.fromkeys(who))) for (rung, text), who in found.items()]
    return tuple(sorted(made, key=lambda note: order[note.rung]))


def is_errors(table: Table) -> bool:
    """Whether the table holds errors against an oracle, of which only the worst are worth a line."""
    return any(cell is not None and _tag(cell) == WORST for _, cells in table.lines for cell in cells)


TIME_TAGS = ("delta", "time")


def without_times(table: Table) -> Table:
    """The table less the rows of times, which have tables of their own, and less columns that are then empty."""
    kept = [
        index
        for index, (_, cells) in enumerate(table.lines)
        if not any(cell is not None and cell.tag in TIME_TAGS for cell in cells)
    ]
    return _only(table, kept)


def tables(report: Report) -> tuple[Table, ...]:
    """The metrics of each rung that has any. A tag `name:output` puts the metric on that output's line.

    Where a row's and its outputs' are all others, they are two tables: one of both is mostly gaps.
    """
    found = (part for name in rung_names(report) for part in _parted(_table(report, name)))
    return tuple(table for table in found if table.lines)


def _table(report: Report, name: str) -> Table:
    columns: dict[str, str] = {}
    lines: list[tuple[tuple[str, str, str, str], dict[str, Metric]]] = []
    outcomes: list[Outcome] = []
    for kernel, rung in _results(report):
        if rung.rung != name:
            continue
        for row in (Row(Outcome.PASSED, metrics=rung.metrics), *rung.rows):
            for output, metrics in _by_output(row.metrics).items():
                lines.append(((kernel.name, output, row.case, row.target), metrics))
                outcomes.append(row.outcome)
                columns |= {tag: _title(metric, output) for tag, metric in metrics.items() if tag not in columns}
    tags = _chosen(columns)
    cells = tuple((key, tuple(metrics.get(tag) for tag in tags)) for key, metrics in lines)
    return Table(name, tuple(columns[tag] for tag in tags), cells, tuple(outcomes))


def _parted(table: Table) -> tuple[Table, ...]:
    """The lines of rows and those of outputs apart, where a row has both and no column is in both."""
    places = [{(key[0], *key[2:]) for key, _ in table.lines if bool(key[1]) is of} for of in (False, True)]
    if not places[0] & places[1]:
        return (table,)
    parts = [
        _only(table, [at for at, (key, _) in enumerate(table.lines) if bool(key[1]) is of]) for of in (False, True)
    ]
    return (table,) if set(parts[0].columns) & set(parts[1].columns) else tuple(parts)


def _only(table: Table, kept: list[int]) -> Table:
    """So many of its lines, and the columns that they have."""
    lines = [table.lines[number] for number in kept]
    columns = [at for at in range(len(table.columns)) if any(cells[at] is not None for _, cells in lines)]
    return Table(
        table.rung,
        tuple(table.columns[at] for at in columns),
        tuple((key, tuple(cells[at] for at in columns)) for key, cells in lines),
        tuple(table.outcomes[number] for number in kept),
    )


def _chosen(columns: Iterable[str]) -> tuple[str, ...]:
    """All columns; of the errors those that people compare, since MSE says no more than RMSE."""
    return tuple(columns) if WORST not in columns else tuple(tag for tag in ERROR_TAGS if tag in columns)


def _by_output(metrics: Iterable[Metric]) -> dict[str, dict[str, Metric]]:
    found: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        found.setdefault(metric.tag.partition(":")[2], {})[_tag(metric)] = metric
    return found


def _tag(metric: Metric) -> str:
    return metric.tag.partition(":")[0]


def _title(metric: Metric, output: str) -> str:
    return metric.name.removesuffix(f" ({output})") if output else metric.name


def worst_lines(table: Table) -> Table:
    """Per kernel and output the line with the largest error over its bound."""
    best: dict[tuple[str, str], int] = {}
    for index, ((kernel, output, _, _), cells) in enumerate(table.lines):
        known = best.get((kernel, output))
        if known is None or _room(cells) > _room(table.lines[known][1]):
            best[kernel, output] = index
    kept = list(best.values())
    return Table(
        table.rung,
        table.columns,
        tuple(table.lines[index] for index in kept),
        tuple(table.outcomes[index] for index in kept),
    )


def _room(cells: tuple[Metric | None, ...]) -> float:
    metric = next((cell for cell in cells if cell and _tag(cell) == WORST), None)
    if metric is None:
        return -1.0
    return float("inf") if isinstance(metric.value, str) else metric.value
