"""One page that stands by itself: no script, no font and no style from elsewhere; for light and dark; works offline.

All text is cleaned and escaped; only charts that kernelci draws are markup.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup, escape
from msgspec import Struct

from kernelci import attached, charts, digest, inert, resources, second
from kernelci.charts import Point, Roof
from kernelci.comparison import ComparedRow, measured, tally, times
from kernelci.model import KernelReport, Metric, Report, Row, RungResult, by_tag
from kernelci.reasons import Outcome
from kernelci.reporters import Context
from kernelci.templating import FILTERS, wrong

TEMPLATE = "report.html.j2"
LINES = 600  # of one table
POINTS = 400
MESSAGE, LOG = 60, 40  # lines
# Rungs whose rows have sections of their own.
OWN_SECTIONS = ("benchmark", "roofline", "profile", "trace")


class Placed(Struct, frozen=True):
    """A line of the roofline's table."""

    kernel: str
    row: Row
    metrics: dict[str, Metric]
    text: str


def render(report: Report, context: Context) -> str:
    """The page. Raises ConfigError for a template that is wrong."""
    try:
        template = _environment(resources.template_folders(context.root)).get_template(TEMPLATE)
        return str(template.render(view(report, context))).rstrip() + "\n"
    except jinja2.TemplateError as error:
        raise wrong(error) from error


@functools.cache
def _environment(folders: tuple[Path, ...]) -> SandboxedEnvironment:
    environment = SandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= FILTERS | {
        "line": inert.line,
        "head": lambda text: inert.head(text, MESSAGE),
        "tail": lambda text: inert.tail(text, LOG),
        "coded": coded,
        "bar": bar,
        "href": href,
    }
    return environment


def _finalize(value: Any) -> Any:
    """What a template prints is cleaned before it is escaped."""
    if isinstance(value, Markup) or value is None:
        return value or ""
    return inert.clean(str(value))


def href(path: str) -> Markup:
    """A link to a file beside the page; the bare text where its path leads elsewhere."""
    plain = not path.startswith("/") and ".." not in path.split("/") and ":" not in path
    shown = escape(inert.line(path))
    return Markup('<a href="{0}">{1}</a>').format(path, shown) if plain else Markup(shown)


def coded(text: str) -> Markup:
    """A text with what stands in backticks as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(inert.clean(text)))))


def bar(time: ComparedRow) -> Markup:
    """A comparison's interval as a small chart."""
    delta = time.delta
    if delta is None or delta.low is None or delta.high is None:
        return Markup("")
    ends = [float(each) for each in (delta.low, delta.value, delta.high)]
    return Markup(charts.interval(ends[0], ends[1], ends[2], 0.005, str(time.verdict)))


def view(report: Report, context: Context) -> dict[str, Any]:
    """The names that the template can use."""
    found = times(report)
    placed = tuple(_placed(report))
    every = digest.tables(report)
    tables = [table for table in every if table.rung not in OWN_SECTIONS]
    return {
        "report": report,
        "verdict": digest.headline(report),
        "rungs": digest.rung_names(report),
        "ladder": [(kernel, {rung.rung: rung for rung in kernel.rungs}) for kernel in report.kernels],
        "stops": digest.stops(report),
        "lost": digest.lost(report),
        "second": second.lines(report),
        "caveat": second.CAVEAT,
        "offer": second.how() if second.is_offered(report) else "",
        "tally": tally(found),
        "sections": [
            ("Slower", found.slower),
            ("Unknown", found.unknown),
            ("Faster", found.faster),
            ("Same", found.same),
        ],
        "measured": measured(report),
        "chart": Markup(chart(report, placed)),
        "bars": Markup(charts.BAR_STYLE),
        "placed": placed[:LINES],
        "profiles": [table for table in every if table.rung == "profile"],
        "traces": [table for table in every if table.rung == "trace"],
        "traced": tuple(_rows(report, "trace")),
        "advised": tuple(_rows(report, "profile")),
        "tables": [(table, table.lines[:LINES]) for table in tables],
        "differences": attached.differences(report, context.files),
        "dumped": [(kernel, row) for kernel, row in _rows(report, "dump") if row.notes],
        "skipped": digest.skipped(report),
        "notes": digest.notes(report, rows=False),
        "artifacts": tuple(_artifacts(report)),
        "outcomes": list(Outcome),
    }


def _rows(report: Report, name: str) -> Iterator[tuple[KernelReport, Row]]:
    for kernel in report.kernels:
        for rung in kernel.rungs:
            yield from ((kernel, row) for row in rung.rows if rung.rung == name)


def _placed(report: Report) -> Iterator[Placed]:
    for kernel, row in _rows(report, "roofline"):
        yield Placed(kernel.name, row, by_tag(row.metrics), "; ".join(row.notes))


def _artifacts(report: Report) -> Iterator[tuple[str, list[Any]]]:
    """Files by kernel, those that people open first: charts, profiles, differences."""
    order = ("svg", "trace", "ncu-rep", "sass.diff", "ptx.diff", "sass", "ptx")
    for kernel in report.kernels:
        found = [artifact for rung in kernel.rungs for artifact in rung.artifacts]
        found.sort(key=lambda each: (order.index(each.kind) if each.kind in order else len(order), each.path))
        if found:
            yield kernel.name, found[:LINES]


def chart(report: Report, placed: Iterable[Placed]) -> str:
    """All cases of the report under the roofs of the types that they have."""
    rates = {
        (kernel.name, row.case): metric.value
        for kernel, row in _rows(report, "benchmark")
        for metric in row.metrics
        if metric.tag == "flops"
    }
    points = [point for each in placed if (point := _point(each, rates.get((each.kernel, each.row.case)))) is not None]
    roofs = {roof.name: roof for kernel in report.kernels for rung in kernel.rungs for roof in _roofs(rung)}
    return charts.roofline(points[:POINTS], list(roofs.values()))


def _point(placed: Placed, rate: Any) -> Point | None:
    intensity, attained = placed.metrics.get("intensity"), placed.metrics.get("attained")
    if intensity is None or attained is None or not isinstance(rate, float) or isinstance(intensity.value, str):
        return None
    bound = attained.description.removeprefix("bound by ").partition(";")[0]
    known = bound if bound in ("memory", "compute", "latency") else "memory"
    name, detail = inert.line(f"{placed.kernel} {placed.row.case}", 120), inert.line(placed.text)
    return Point(name, float(intensity.value), rate, known, detail)


def _roofs(rung: RungResult) -> Iterator[Roof]:
    if rung.rung != "roofline":
        return
    found = {metric.tag: float(metric.value) for metric in rung.metrics}
    for tag, peak in found.items():
        prefix, _, dtype = tag.partition(":")
        if dtype and prefix in ("matmul", "sheet_matmul"):
            sheet = prefix == "sheet_matmul"
            name = inert.line(f"{dtype}, {'datasheet' if sheet else 'measured'}")
            yield Roof(found.get("sheet_copy" if sheet else "copy", 0.0), peak, name, sheet)
