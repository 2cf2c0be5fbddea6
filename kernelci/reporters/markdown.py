"""Markdown for GitHub: the comment that a maintainer reads in ten seconds, and the job's summary with more of the same.

Both come from report_templates/. Every value that a template prints is escaped unless a filter of `kernelci.inert`
made it. A page over its size limit is made again with less in it, the least important first; no bytes are ever cut.
"""

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment
from msgspec import Struct

from kernelci import digest, inert, publication, resources, second
from kernelci.comparison import ComparedRow, ComparedRows, TimedRow, measured, tally, times
from kernelci.model import BLOCKING, KernelReport, Report
from kernelci.publication import Block, Publication, Stopped
from kernelci.reasons import Outcome
from kernelci.reporters import Context
from kernelci.templating import FILTERS, wrong

# GitHub's limits, counted here in bytes of UTF-8, which are never fewer than its characters.
LIMITS = {"comment": 65_536, "summary": 2**20}
MARKER = "<!-- kernelci:report -->"
RUNGS = 12
NOTES = 60
SECOND = 100
SYMBOLS = {
    Outcome.PASSED: "✅",
    Outcome.FAILED: "❌",
    Outcome.SKIPPED: "➖",
    Outcome.BROKEN: "💥",
    Outcome.INVALID: "❓",
}
# Of a check's conclusion.
CONCLUSIONS = {"success": "✅", "failure": "❌", "action_required": "✋", "neutral": "❔", "skipped": "➖"}
STOPPED = 20  # kernels in the block of data
_URL = re.compile(r"https?://[A-Za-z0-9.:/_%~#-]{1,290}")


class Level(Struct, frozen=True):
    """How much a page holds."""

    tables: bool = True  # folded tables
    passed: bool = True  # lines of kernels and cases that passed
    logs: bool = True
    stops: int = 25
    kernels: int = 400
    lines: int = 400  # of a table
    message: int = 40  # lines of a message
    details: bool = True  # skipped, notes, environment


LEVELS: dict[str, tuple[Level, ...]] = {
    "comment": (
        Level(),
        Level(tables=False),
        Level(tables=False, passed=False),
        Level(tables=False, passed=False, logs=False),
        Level(tables=False, passed=False, logs=False, stops=12, kernels=100, lines=100),
        Level(tables=False, passed=False, logs=False, stops=6, kernels=50, lines=50, message=20),
        Level(tables=False, passed=False, logs=False, stops=3, kernels=20, lines=20, message=10),
        Level(tables=False, passed=False, logs=False, stops=1, kernels=5, lines=0, message=5, details=False),
    ),
}
LEVELS["summary"] = (Level(stops=200, kernels=2000, lines=4000), *LEVELS["comment"])


class Facts(Struct, frozen=True):
    """What every level chooses from, computed once."""

    headline: digest.Headline
    rungs: tuple[str, ...]
    stops: tuple[digest.Stop, ...]
    skipped: tuple[digest.Skipped, ...]
    notes: tuple[digest.Note, ...]
    errors: tuple[digest.Table, ...]
    resources: tuple[digest.Table, ...]
    times: ComparedRows
    measured: tuple[TimedRow, ...]

    @classmethod
    def of(cls, report: Report) -> "Facts":
        """The digest of a report."""
        tables = digest.tables(report)
        others = (digest.without_times(table) for table in tables if not digest.is_errors(table))
        return cls(
            digest.headline(report),
            digest.rung_names(report),
            digest.stops(report),
            digest.skipped(report),
            digest.notes(report),
            tuple(digest.worst_lines(table) for table in tables if digest.is_errors(table)),
            tuple(table for table in others if table.lines),
            times(report),
            measured(report),
        )


def render(report: Report, context: Context) -> str:
    """The page that the context asks for, within its limit. Raises ConfigError for a template that is wrong."""
    template = _template(context.page, context.root)
    facts = Facts.of(report)
    room = LIMITS[context.page] - len(_sealed("", report, context.publication).encode())
    for level in LEVELS[context.page]:
        page = _filled(template, view(report, facts, level, context))
        if len(page.encode()) <= room:
            return _sealed(page, report, context.publication)
    return _sealed(_bare(report), report, context.publication)


def _bare(report: Report) -> str:
    """What is always short enough."""
    found = digest.headline(report)
    return f"{MARKER}\n## {SYMBOLS[found.outcome]} {inert.prose(found.sentence)}\n\nAll of it is in results.json.\n"


def _sealed(page: str, report: Report, where: Publication | None) -> str:
    """The page with the block of data at its end, where it is for a pull request."""
    if where is None:
        return page
    return f"{page}\n{publication.written(_block(page, report, where))}\n"


def _block(page: str, report: Report, where: Publication) -> Block:
    stopped = tuple(_stopped(kernel) for kernel in report.kernels if kernel.outcome in BLOCKING)
    return Block(
        state="current",
        pull=where.pull,
        sha=where.head_sha,
        run=where.run,
        attempt=where.attempt,
        conclusion=where.conclusion,
        rank=where.rank,
        outcome=report.outcome,
        hash=hashlib.sha256(page.encode()).hexdigest()[:32],
        kernels=len(report.kernels),
        stopped=stopped[:STOPPED],
    )


def _stopped(kernel: KernelReport) -> Stopped:
    rung = kernel.stopped_at
    finding = rung.finding if rung else None
    if rung is None or finding is None:
        return Stopped(kernel.name, kernel.outcome)
    case = next((row.case for row in rung.rows if row.finding == finding), "")
    return Stopped(kernel.name, kernel.outcome, rung.rung, finding.reason, case, digest.reproduce(finding)[:400])


def link(text: str, url: str) -> inert.Safe:
    """A link to a plain address; the text alone where the address is none."""
    shown = inert.prose(text)
    return inert.Safe(f"[{shown}]({url})") if _URL.fullmatch(url) else shown


def _template(page: str, root: Path | None) -> jinja2.Template:
    try:
        return _environment(resources.template_folders(root)).get_template(f"{page}.md.j2")
    except jinja2.TemplateError as error:
        raise wrong(error) from error


@functools.cache
def _environment(folders: tuple[Path, ...]) -> SandboxedEnvironment:
    environment = SandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters |= FILTERS | {
        "code": inert.code,
        "codes": inert.codes,
        "fence": inert.fence,
        "head": inert.head,
        "tail": inert.tail,
        "line": inert.line,
        "ours": inert.ours,
        "baseline": lambda found: inert.line(found.tag.removeprefix("speedup_"), 20),
        "symbol": SYMBOLS.__getitem__,
        "conclusion": CONCLUSIONS.__getitem__,
        "link": link,
    }
    return environment


def _finalize(value: Any) -> str:
    """What a template prints: escaped, unless it was made by one of our filters."""
    if isinstance(value, inert.Safe):
        return value
    return inert.prose("" if value is None else str(value))


def _filled(template: jinja2.Template, values: dict[str, Any]) -> str:
    try:
        page = template.render(values)
    except jinja2.TemplateError as error:
        raise wrong(error) from error
    return "\n".join(_without_double_blanks(page.split("\n"))).strip("\n") + "\n"


def _without_double_blanks(lines: list[str]) -> Iterator[str]:
    """Partials that print nothing leave blank lines; those within fences stay."""
    fence, before = "", "?"
    for line in lines:
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if len(ticks) >= 3 and (not fence or line == fence):
            fence = "" if fence else ticks
        if fence or line or before:
            yield line
        before = line


def view(report: Report, facts: Facts, level: Level, context: Context) -> dict[str, Any]:
    """The names that a template can use, with as much in them as the level allows."""
    kernels = _kernels(report, level)
    return {
        "marker": inert.Safe(MARKER),
        "report": report,
        "folder": context.folder,
        "publication": context.publication,
        "level": level,
        "verdict": facts.headline,
        "rungs": facts.rungs[:RUNGS],
        "ladder": [(kernel, {rung.rung: rung.outcome for rung in kernel.rungs}) for kernel in kernels],
        "legend": [outcome for outcome in Outcome if outcome in _outcomes(report)],
        "stops": facts.stops[: level.stops],
        "skipped": facts.skipped if level.details else (),
        "errors": [_short(table, level) for table in facts.errors],
        "resources": [_short(table, level) for table in facts.resources] if level.tables else [],
        "notes": facts.notes[:NOTES] if level.tables else (),
        "more_notes": max(len(facts.notes) - NOTES, 0),
        "artifacts": sum(len(rung.artifacts) for kernel in report.kernels for rung in kernel.rungs),
        "times": _times(facts.times, level),
        "tally": tally(facts.times),
        "measured": _measured(facts, level),
        "lost": digest.lost(report),
        "second": _second(report, level),
        "second_offer": second.how() if second.is_offered(report) and context.publication is None else "",
        "left_out": _left_out(report, facts, level, len(kernels)),
    }


def _second(report: Report, level: Level) -> dict[str, Any] | None:
    """What the second referee says, those rows first that did not pass; None where it was not heard."""
    found = report.second
    if found is None:
        return None
    every = sorted(second.lines(report), key=lambda line: line.stop is None)
    kept = every[: min(level.lines, SECOND)]
    parts = {name: getattr(found, name) for name in ("by", "isolation", "why", "log")}
    return {**parts, "lines": kept, "more": len(every) - len(kept), "caveat": second.CAVEAT}


def _kernels(report: Report, level: Level) -> list[KernelReport]:
    """The kernels of the ladder's table; where not all fit, those that did not pass come first."""
    found = [kernel for kernel in report.kernels if level.passed or kernel.outcome is not Outcome.PASSED]
    if len(found) <= level.kernels:
        return found
    return sorted(found, key=lambda kernel: kernel.stopped_at is None)[: level.kernels]


def _outcomes(report: Report) -> set[Outcome]:
    return {rung.outcome for kernel in report.kernels for rung in kernel.rungs}


def _short(table: digest.Table, level: Level) -> dict[str, Any]:
    """A table with as many lines as the level allows, those that did not pass first."""
    order = sorted(range(len(table.lines)), key=lambda index: table.outcomes[index] is Outcome.PASSED)
    if not level.passed:
        order = [index for index in order if table.outcomes[index] is not Outcome.PASSED]
    kept = order[: level.lines]
    lines = [(table.outcomes[index], *table.lines[index]) for index in kept]
    return {"rung": table.rung, "columns": table.columns, "lines": lines, "more": len(table.lines) - len(kept)}


def _times(found: ComparedRows, level: Level) -> list[dict[str, Any]]:
    """The sections of times, the gravest first; what did not change is folded, and left out with the tables."""
    sections: tuple[tuple[str, tuple[ComparedRow, ...], bool], ...] = (
        ("Regressions", found.slower, False),
        ("Improvements", found.faster, False),
        ("Unknown: more blocks are needed to tell", found.unknown, False),
        ("Unchanged", found.same if level.tables else (), True),
    )
    return [_section(title, lines, folded, level) for title, lines, folded in sections]


def _section(title: str, lines: tuple[ComparedRow, ...], folded: bool, level: Level) -> dict[str, Any]:
    """A section's lines, and which columns have anything in them."""
    kept = lines[: level.lines]
    return {
        "title": title,
        "lines": kept,
        "more": len(lines) - len(kept),
        "folded": folded,
        "targets": len({time.target for time in kept}) > 1,
        "q": any(time.q for time in kept),
        "roofline": any(any(time.roofline) for time in kept),
        "causes": any(time.cause for time in kept),
    }


def _measured(facts: Facts, level: Level) -> dict[str, Any]:
    """Times with nothing to compare with; folded where there are comparisons, which matter more."""
    lines = facts.measured[: level.lines] if level.passed else ()
    return {
        "lines": lines,
        "more": len(facts.measured) - len(lines),
        "folded": bool(tally(facts.times)) or not level.tables,
        "end_to_end": any(each.end_to_end for each in lines),
        "attained": any(each.attained for each in lines),
        "speedups": any(each.speedups for each in lines),
        "notes": any(each.notes for each in lines),
    }


def _left_out(report: Report, facts: Facts, level: Level, kernels: int) -> list[str]:
    """What this page lacks, in words; empty where it holds everything."""
    stops, rungs = len(facts.stops) - level.stops, len(facts.rungs) - RUNGS
    facts_of_length = (
        (not level.tables, "folded tables"),
        (kernels < len(report.kernels), f"{len(report.kernels) - kernels:,} kernels of the ladder"),
        (not level.logs, "logs"),
        (stops > 0, f"{stops:,} lesser failures"),
        (rungs > 0, f"{rungs:,} more rungs"),
        (not level.details, "skipped rungs and environment"),
    )
    return [text for holds, text in facts_of_length if holds]
