"""The terminal: the final report. Whatever came from the kernel is inert."""

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernelci import digest, inert, second, units
from kernelci.comparison import ComparedRow, TimedRow, measured, tally, times
from kernelci.model import Metric, Report, RungResult, Verdict
from kernelci.reasons import REASONS, Outcome
from kernelci.reporters import Context

LOG_LINES = 20
MESSAGE_LINES = 40
STOPS = 50
NAMES = 6
RUNGS = 12
WORDS = 8  # rungs that have room for words in every cell
WHOLE_NAME = 16  # characters of a kernel's name that are kept whole beside more rungs: a rung's name gives way
NOTES = 10
TIMES = 40
LOG_WIDTH = 110  # of a file or a CI's log, which has no width of its own
_LOOK = {
    Outcome.PASSED: ("✓ passed", "green"),
    Outcome.FAILED: ("✗ FAILED", "bold red"),
    Outcome.SKIPPED: ("- skipped", "dim"),
    Outcome.BROKEN: ("! BROKEN", "bold magenta"),
    Outcome.INVALID: ("? INVALID", "bold yellow"),
}

_QUIET = (Outcome.PASSED, Outcome.SKIPPED)


def render(report: Report, context: Context) -> str:
    """The final report as text, with colours where the context asks for them."""
    buffer = io.StringIO()
    _print(report, context.folder, _console(buffer, context.width, context.color))
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def show(report: Report, folder: Path | str = "", stream: IO[str] | None = None) -> None:
    """Print the final report in the terminal's own width and colours; never fails on a narrow encoding."""
    stream = stream or sys.stdout
    own = Console(file=stream)
    width = own.width if own.is_terminal else max(own.width, LOG_WIDTH)
    context = Context(folder=str(folder), width=width, color=own.is_terminal and not own.no_color)
    stream.write(encodable(render(report, context), stream))
    stream.flush()


def encodable(text: str, stream: IO[str]) -> str:
    """The text with `?` for what the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _console(stream: IO[str], width: int, color: bool) -> Console:
    return Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def _print(report: Report, folder: str, console: Console) -> None:
    stops = digest.stops(report)
    console.print(_verdict(report))
    console.print(_lost(report))
    if report.kernels:
        console.print()
        console.print(ladder([(kernel.name, kernel.rungs) for kernel in report.kernels]))
    for stop in stops[:STOPS]:
        console.print()
        console.print(_stop(stop))
    if len(stops) > STOPS:
        console.print(Text(f"\nand {len(stops) - STOPS:,} more in results.json"))
    console.print(_times(report))
    console.print(_measured(report))
    console.print(_second(report))
    console.print(_skipped(report))
    console.print(_footer(report, folder))


def _second(report: Report) -> RenderableType:
    """What the change's own judge says, in words alone; where it could be heard, how."""
    if report.second is None:
        offer = second.how() if second.is_offered(report) else ""
        return Padding(_field("not heard", offer), (1, 0, 0, 0)) if offer else Group()
    parts: list[RenderableType] = [Text(second.CAVEAT, "dim")]
    parts += [Text(f"not heard in full: {inert.line(report.second.why)}")] if report.second.why else []
    for line in second.lines(report)[:TIMES]:
        why = second.reason(line)
        parts.append(Text(f"{inert.line(line.title)}  {line.word}{f': {why}' if why else ''}"))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _verdict(report: Report) -> RenderableType:
    found = digest.headline(report)
    text = Text.assemble(
        (f"{found.outcome.value}", _LOOK[found.outcome][1]), ("  " + inert.line(found.sentence), "bold")
    )
    alone = found.outcome is Outcome.SKIPPED  # else each stop says what comes next
    return Group(text, _field("next", found.next_step)) if alone else text


def ladder(kernels: Iterable[tuple[str, Iterable[RungResult]]]) -> Table:
    """A line per kernel, a column per rung that somebody asked for; symbol and word, so that it reads without colour.

    Where there are many rungs, what passed or was skipped has its symbol alone, and a rung that was skipped for all of
    them has no column: why it was stands below.
    """
    climbs = [(name, {rung.rung: rung for rung in rungs}) for name, rungs in kernels]
    every = dict.fromkeys(rung for _, rungs in climbs for rung in rungs)
    asked = [name for name in every if any(_was_asked(rungs.get(name)) for _, rungs in climbs)]
    if len(asked) > WORDS:
        asked = [name for name in asked if any(_was_climbed(rungs.get(name)) for _, rungs in climbs)] or asked
    names = tuple(asked or every)[:RUNGS]
    wide = len(names) <= WORDS
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2 if wide else 1, 0, 0))
    whole = not wide and max(len(name) for name, _ in climbs) <= WHOLE_NAME
    table.add_column("kernel", overflow="fold", no_wrap=whole)
    for name in names:
        table.add_column(Text(inert.line(name)), no_wrap=wide, overflow="fold")
    for kernel, rungs in climbs:
        table.add_row(Text(inert.line(kernel)), *(_cell(rungs.get(name), wide) for name in names))
    return table


def _was_asked(result: RungResult | None) -> bool:
    return result is not None and not (result.finding is not None and result.finding.reason == "not-requested")


def _was_climbed(result: RungResult | None) -> bool:
    return result is None or result.outcome is not Outcome.SKIPPED


def _cell(result: RungResult | None, wide: bool) -> Text:
    if result is None:
        return Text("…", style="dim")
    word, style = _LOOK[result.outcome]
    return Text(word if wide or result.outcome not in _QUIET else word[:1], style=style)


def _field(label: str, text: str, style: str = "") -> RenderableType:
    """`label  text`, with the text's own lines kept under each other."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=9)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), Text(text, style=style))
    return Padding(grid, (0, 0, 0, 2))


def _stop(stop: digest.Stop) -> RenderableType:
    found, reason = stop.finding, REASONS[stop.finding.reason]
    word, style = _LOOK[stop.rung.outcome]
    name, rung = inert.line(stop.kernel.name), inert.line(stop.rung.rung)
    parts: list[RenderableType] = [
        Text.assemble((word, style), (f"  {name} at {rung}: {reason.title}", "bold"), (f"  [{found.reason}]", "dim"))
    ]
    if found.file:
        parts.append(_field("file", inert.line(found.file) + (f":{found.line}" if found.line else "")))
    if stop.row:
        parts.append(_field("case", inert.line(digest.place(stop.row))))
    parts.append(_field("message", inert.head(found.message, MESSAGE_LINES)))
    if stop.others:
        parts.append(_field("also", units.listed([inert.line(digest.place(row)) for row in stop.others], NAMES)))
    if found.log:
        parts.append(Padding(Text("the kernel's own output (untrusted), last lines:", style="dim"), (0, 0, 0, 2)))
        parts.append(_quoted(inert.tail(found.log, LOG_LINES)))
    if command := digest.reproduce(found):
        parts.append(_field("reproduce", command, "bold"))
    parts.append(_field("next", reason.next_step))
    return Group(*parts)


def _quoted(text: str) -> RenderableType:
    """Each line behind a bar; what wraps stays to the right of it, so that no line can pass for one of ours."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold", style="dim")
    for line in text.split("\n"):
        grid.add_row("│", Text(line))
    return Padding(grid, (0, 0, 0, 2))


def _lost(report: Report) -> RenderableType:
    """What the base has and the head has not, first of all."""
    removed = report.change.removed if report.change is not None else ()
    names = units.listed([inert.line(name) for name in removed], NAMES)
    lines = [Text(f"removed: {names}", style="bold yellow")] if removed else []
    found = digest.lost(report)
    for kernel, row in found[:NAMES]:
        why = f", {inert.line(row.why)}" if row.why else ""
        lines.append(Text(f"{row.how}: {inert.line(kernel)} {inert.line(row.case)}{why}", style="bold yellow"))
    if len(found) > NAMES:
        lines.append(Text(f"and {len(found) - NAMES:,} more rows that the base has"))
    return Group(*lines)


_VERDICTS = {Verdict.SLOWER: "bold red", Verdict.UNKNOWN: "yellow", Verdict.FASTER: "green", Verdict.SAME: "dim"}


def _times(report: Report) -> RenderableType:
    """Head against base, slower first; what is the same is only counted."""
    found = times(report)
    if not tally(found):
        return Group()
    changed = (*found.slower, *found.unknown, *found.faster)
    parts: list[RenderableType] = [Text(), Text(f"times against base: {tally(found)}", style="bold")]
    if changed:
        with_q = any(time.q for time in changed[:TIMES])
        table = _plain_table(("verdict", "kernel", "case"), ("base", "head", "change", *(("q",) if with_q else ())))
        for time in changed[:TIMES]:
            table.add_row(*_changed(time, with_q))
        parts.append(table)
        parts += [_field("note", _why(time)) for time in changed[:TIMES] if time.cause]
    if len(changed) > TIMES:
        parts.append(Text(f"and {len(changed) - TIMES:,} more in results.json"))
    return Group(*parts)


def _plain_table(left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _changed(time: ComparedRow, with_q: bool) -> list[Text]:
    names = (inert.line(time.kernel), inert.line(time.case), _value(time.base), _value(time.head))
    change = units.change(time.delta) if time.delta else ""
    q = (units.chance(time.q) if time.q else "",) if with_q else ()
    word = Text(time.verdict.value, style=_VERDICTS[time.verdict])
    return [word, *map(Text, (*names, change, *q))]


def _why(time: ComparedRow) -> str:
    return f"{inert.line(time.kernel)} {inert.line(time.case)}: {inert.line(time.cause, 200)}"


def _value(found: Metric | None) -> str:
    return units.value(found.value, found.unit) if found is not None else ""


def _measured(report: Report) -> RenderableType:
    """Times that have nothing to compare with."""
    rows = measured(report)
    if not rows:
        return Group()
    parts: list[RenderableType] = [Text()]
    table = _plain_table(("kernel", "case"), ("time", "end to end", "attained"))
    table.add_column("speed-up over", overflow="fold")
    for row in rows[:TIMES]:
        table.add_row(*_measured_row(row))
    parts.append(table)
    if len(rows) > TIMES:
        parts.append(Text(f"and {len(rows) - TIMES:,} more in results.json"))
    return Group(*parts)


def _measured_row(row: TimedRow) -> list[Text]:
    over = (f"{inert.line(each.tag.removeprefix('speedup_'), 20)} {_value(each)}" for each in row.speedups)
    shown = (units.plus_minus(row.time), _value(row.end_to_end), _value(row.attained), ", ".join(over))
    return [Text(each) for each in (inert.line(row.kernel), inert.line(row.case), *shown)]


def _skipped(report: Report) -> RenderableType:
    groups = digest.skipped(report)
    if not groups:
        return Group()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("skipped because", no_wrap=True)
    table.add_column("what", overflow="fold")
    table.add_column("next", overflow="fold")
    for group in groups:
        reason = REASONS[group.reason]
        table.add_row(Text(reason.title), Text(_what(group)), Text(reason.next_step, style="dim"))
    return Group(Text(), table)


def _what(group: digest.Skipped) -> str:
    parts = [inert.line(rung) for rung in group.rungs]
    if group.cases:
        parts.append(f"{group.cases:,} case{'' if group.cases == 1 else 's'}")
    what = f"{units.listed(parts, NAMES)} of {units.listed([inert.line(name) for name in group.kernels], 3)}"
    others = f" (and {len(group.messages) - 1:,} more)" if len(group.messages) > 1 else ""
    return f"{what}\n{inert.line(group.messages[0])}{others}"


def _footer(report: Report, folder: str) -> RenderableType:
    where = report.environment
    parts = (where.gpu or "no GPU", where.machine, f"Python {where.python}", where.isolation)
    lines = [Text(), Text(inert.line(" · ".join(part for part in parts if part)), style="dim")]
    lines += [Text(f"note: {inert.line(note)}") for note in report.notes]
    remarks = [note for note in digest.notes(report, rows=False) if not note.text.startswith(digest.SECONDS)]
    lines += [Text(f"note: {_remark(note)}", style="dim") for note in remarks[:NOTES]]
    if len(remarks) > NOTES:
        lines.append(Text(f"and {len(remarks) - NOTES:,} more notes in results.json", style="dim"))
    if folder:
        lines.append(Text(f"report: {inert.line(folder)} ({units.elapsed(report.duration_s)})"))
    return Group(*lines)


def _remark(note: digest.Note) -> str:
    names = units.listed([inert.line(name) for name in note.kernels], 3)
    return f"{names} at {inert.line(note.rung)}: {inert.line(note.text)}"
