"""Annotations for a GitHub job: the ten that matter most, as commands that no text of a report can break out of."""

from collections.abc import Iterator

from kernelci import digest, inert
from kernelci.model import Report
from kernelci.reasons import REASONS
from kernelci.reporters import Context

# GitHub shows ten annotations of a step and drops the others in silence.
LIMIT = 10
_LINES = 12


def render(report: Report, context: Context) -> str:
    """One line per annotation: what stopped a kernel, at the line of its file, then changes of the judge."""
    found = list(_ranked(report))
    more = len(found) - LIMIT
    if more > 0:
        found = found[: LIMIT - 1]
        found.append(_command("notice", "", 0, "kernelci", f"{more + 1:,} more in the job's summary"))
    return "".join(f"{each}\n" for each in found)


def _ranked(report: Report) -> Iterator[str]:
    change = report.change
    if change is not None and change.removed:
        yield _command("warning", "", 0, "kernels removed", ", ".join(change.removed))
    for kernel, row in digest.lost(report):
        yield _command("warning", "", 0, f"{kernel}: row {row.how}", f"{inert.line(row.case)} {inert.line(row.why)}")
    seen = set()
    for stop in digest.stops(report):
        if stop.kernel.name not in seen:  # the first failing line of each kernel; the rest is in the summary
            seen.add(stop.kernel.name)
            file, line = inert.line(stop.finding.file), stop.finding.line
            title = f"{stop.kernel.name} at {stop.rung.rung}: {REASONS[stop.finding.reason].title}"
            yield _command("error", file or stop.kernel.path, line, title, inert.head(stop.finding.message, _LINES))
    for each in change.judge if change is not None else ():
        said = f"This {each.role} judges kernels, so the base's version was used. An owner has to look at the change."
        yield _command("warning", each.path, 0, f"{each.role} {each.change}", said)


def _command(level: str, file: str, line: int, title: str, message: str) -> str:
    """`::error file=…,line=…,title=…::message`, escaped as the runner unescapes it."""
    places = [f"file={_property(file)}"] if file else []
    places += [f"line={line}"] if file and line else []
    return f"::{level} {','.join([*places, f'title={_property(inert.line(title, 120))}'])}::{_data(message)}"


def _data(text: str) -> str:
    return inert.clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(inert.line(text, 300)).replace(":", "%3A").replace(",", "%2C")
