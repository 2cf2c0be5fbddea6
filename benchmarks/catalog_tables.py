"""Tables of a recorded run: the clocks against each other, Nsight Compute against the benchmark, the roofline.

    python benchmarks/catalog_tables.py RESULTS.json [--write]

RESULTS.json is what `kernelci run --profile all` left on a GPU. Prints Markdown; --write puts it into
docs/measurements.md, and the roofline of all cases as docs/images/roofline.svg. Nothing is measured here: what a row
lacks is left empty, and a part without rows is left out.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import sections
from msgspec import Struct

from kernelci import inert, results, units
from kernelci.errors import KernelciError
from kernelci.model import Metric, Report, Row, Unit
from kernelci.reasons import Outcome
from kernelci.reporters import html

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "roofline.svg"
CLOCKS, LEDGER = 0.005, 0.03  # goals: events against the referee's clock (or its own interval), the ledger's sum
PROFILE, LEAST_NS = 0.05, 20_000.0  # in SM cycles; in time only where memory-bound and so long
EMPTY = ""


class Line(Struct, frozen=True):
    """A bench row, and what other rungs say of the same case: metrics by tag."""

    kernel: str
    case: str
    timed: dict[str, Metric]
    profiled: dict[str, Metric]
    placed: dict[str, Metric]
    text: str = ""

    @property
    def name(self) -> str:
        """Kernel and case, as all tables begin."""
        return f"{inert.line(self.kernel)} | {inert.line(self.case)}"

    @property
    def bound(self) -> str:
        """What the roofline says that it is bound by."""
        said = self.placed["attained"].description if "attained" in self.placed else ""
        return said.partition(";")[0].removeprefix("bound by ")


class Table(Struct, frozen=True):
    """A part of the page: its title, what it is, and Markdown's rows, the head first; `goal` tells what came of it."""

    title: str
    text: str
    rows: tuple[str, ...]
    goal: str = ""

    def markdown(self) -> str:
        """As the page has it."""
        return "\n".join((f"### {self.title}", "", self.text, "", *self.rows, *(("", self.goal) if self.goal else ())))


def lines(report: Report) -> Iterator[Line]:
    """All bench rows that passed and have a time."""
    for kernel in report.kernels:
        by_rung = {rung.rung: rung.rows for rung in kernel.rungs}
        for row in by_rung.get("benchmark", ()):
            timed = _by_tag(row)
            if row.outcome is not Outcome.PASSED or "time" not in timed:
                continue
            profiled, placed = (_of_case(by_rung.get(name, ()), row.case) for name in ("profile", "roofline"))
            text = placed.notes[0] if placed is not None and placed.notes else ""
            yield Line(kernel.name, row.case, timed, _by_tag(profiled), _by_tag(placed), text)


def _by_tag(row: Row | None) -> dict[str, Metric]:
    return {metric.tag: metric for metric in row.metrics} if row is not None else {}


def _of_case(rows: Iterable[Row], case: str) -> Row | None:
    return next((row for row in rows if row.case == case and row.outcome is Outcome.PASSED), None)


def clocks(some: list[Line]) -> Table | None:
    """Events against the referee's clock, and the ledger's sum against the time."""
    rows, agree, summed = [], [], []
    for line in some:
        events, wall, ledger = (line.timed.get(tag) for tag in ("time", "time_wall", "ledger_time"))
        if wall is None and ledger is None:
            continue
        apart, off = ratio(events, wall), ratio(ledger, events)
        if apart is not None and wall is not None:
            agree.append(abs(apart) <= max(CLOCKS, width(wall)))
        if off is not None:
            summed.append(abs(off) <= LEDGER)
        rows.append(
            f"| {line.name} | {shown(events)} | {shown(wall)}{interval(wall)} | {percent(apart)} | {shown(ledger)} "
            f"| {percent(off)} |"
        )
    head = (
        "| kernel | case | by events | by the referee's clock | events over it | ledger's sum | over the time |",
        "| :-- | :-- | --: | --: | --: | --: | --: |",
    )
    goal = "; ".join((
        f"Within 0.5 % or the referee's interval: {count(agree)}",
        f"the ledger's sum within 3 % of the time: {count(summed)}.",
    ))  # fmt: skip
    text = "A call by the candidate's events, by the referee's clock around windows (with its interval), by CUPTI."
    return Table("Clocks", text, (*head, *rows), goal) if rows else None


def profiles(some: list[Line]) -> Table | None:
    """Nsight Compute's figures against the benchmark's and the cost model's."""
    rows, cycles, times = [], [], []
    for line in (each for each in some if each.profiled):
        time, seen = line.timed["time"], line.profiled.get("profile_time")
        counted = line.profiled.get("sm_cycles") if "launches" not in line.profiled else None  # of the longest launch
        apart, ticks = ratio(seen, time), ratio(counted, line.timed.get("sm_cycles"))
        if ticks is not None:
            cycles.append(abs(ticks) <= PROFILE)
        if apart is not None and line.bound == "memory" and float(time.value) >= LEAST_NS:
            times.append(abs(apart) <= PROFILE)
        moved, formula = line.profiled.get("dram_bytes"), formula_bytes(line)
        rows.append(
            f"| {line.name} | {shown(time)} | {shown(seen)} | {percent(apart)} | {percent(ticks)} | {shown(moved)} "
            f"| {shown(formula)} | {share(ratio(moved, formula))} |"
        )
    head = (
        "| kernel | case | time | Nsight Compute's | over it | the same in SM cycles | DRAM bytes | by the formula "
        "| share |",
        "| :-- | :-- | --: | --: | --: | --: | --: | --: | --: |",
    )
    goal = "; ".join((
        f"Within 5 % in SM cycles: {count(cycles)}",
        f"in time, of those that are bound by memory and take 20 µs: {count(times)}.",
    ))  # fmt: skip
    text = (
        "Nsight Compute keeps no clock steady (`--clock-control none`). What a case writes may still lie in the L2 "
        "when a call ends, so DRAM bytes below the formula's are usual where a case is no larger than that."
    )
    return Table("Nsight Compute against the benchmark", text, (*head, *rows), goal) if rows else None


def roofline(report: Report, some: list[Line]) -> Table | None:
    """Where each case stands under the roof."""
    rows = [
        f"| {line.name} | {shown(line.placed.get('intensity'))} | {shown(line.placed.get('attained'))} "
        f"| {shown(line.placed.get('of_datasheet'))} | {shown(line.timed['time'])} | {shown(line.placed.get('limit'))} "
        f"| {line.bound} | {inert.line(line.text, 300).replace('|', '/')} |"
        for line in some
        if line.placed
    ]
    head = (
        "| kernel | case | FLOP/byte | attained | of the datasheet's | time | limit | bound by | verdict |",
        "| :-- | :-- | --: | --: | --: | --: | --: | :-- | :-- |",
    )
    text = f"Ceilings {ceilings(report)}. ![All cases under the roof](images/{PICTURE.name})"
    return Table("Roofline", text, (*head, *rows)) if rows else None


def ceilings(report: Report) -> str:
    """What the GPU reached in this run, beside the datasheet's."""
    found: dict[str, Metric] = {}
    for kernel in report.kernels:
        for metric in (metric for rung in kernel.rungs if rung.rung == "roofline" for metric in rung.metrics):
            found.setdefault(metric.tag, metric)
    said = [
        f"{inert.line(metric.name)} {shown(metric)}"
        + (f" ({shown(found[f'sheet_{tag}'])} by the datasheet)" if f"sheet_{tag}" in found else "")
        for tag, metric in found.items()
        if not tag.startswith("sheet_")
    ]
    return "as measured in the run: " + (", ".join(said) or "none")


def formula_bytes(line: Line) -> Metric | None:
    """The bytes of the cost model, which the row has as a rate."""
    rate, time = line.timed.get("bandwidth"), line.timed["time"]
    if rate is None:
        return None
    return Metric("bytes", float(rate.value) * float(time.value) * 1e-9, Unit.BYTES, "bytes")


def ratio(some: Metric | None, other: Metric | None) -> float | None:
    """One over the other, less one; None where one is missing or 0."""
    if some is None or other is None or not float(other.value):
        return None
    return float(some.value) / float(other.value) - 1


def width(metric: Metric) -> float:
    """Half of an interval, of the value."""
    if metric.low is None or metric.high is None or not float(metric.value):
        return 0.0
    return (float(metric.high) - float(metric.low)) / 2 / float(metric.value)


def interval(metric: Metric | None) -> str:
    """± half of the interval, where there is one."""
    return f" ± {units.significant(100 * width(metric), 2)} %" if metric is not None and width(metric) else EMPTY


def shown(metric: Metric | None) -> str:
    """A value as reports show it."""
    return units.value(metric.value, metric.unit) if metric is not None else EMPTY


def percent(value: float | None) -> str:
    """A signed difference."""
    return f"{100 * value:+.2f} %" if value is not None else EMPTY


def share(value: float | None) -> str:
    """One over the other, from what `ratio` says."""
    return f"{100 * (1 + value):.4g} %" if value is not None else EMPTY


def count(good: list[bool]) -> str:
    """How many of how many."""
    return f"{sum(good)} of {len(good)} rows" if good else "no row tells"


def chart(report: Report) -> str:
    """All cases under the roof, as the HTML report draws it; empty where no case has a place."""
    placed = [
        html.Placed(kernel.name, row, _by_tag(row), "; ".join(row.notes))
        for kernel in report.kernels
        for rung in kernel.rungs
        if rung.rung == "roofline"
        for row in rung.rows
    ]
    return html.chart(report, placed)


def section(report: Report) -> str:
    """The part of the page between its marks."""
    some = list(lines(report))
    found = [table for table in (clocks(some), profiles(some), roofline(report, some)) if table is not None]
    where = report.environment
    driver = f", driver {inert.line(where.driver)}" if where.driver else ""
    head = (
        f"{inert.line(report.started_at)[:10]}, {inert.line(where.gpu) or 'no GPU'}{driver}, one run: {len(some)} "
        "rows; `python benchmarks/catalog_tables.py RESULTS.json --write`."
    )
    return "\n\n".join(("## The catalog, rung by rung", head, *(table.markdown() for table in found)))


def main() -> None:
    """Print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="a results.json, or the folder that holds it")
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md and docs/images")
    asked = parser.parse_args()
    try:
        report = results.read(asked.results)
    except KernelciError as error:
        raise SystemExit(f"{error.message}: {error.hint}" if error.hint else error.message) from None
    text, drawn = section(report), chart(report)
    print(text)
    if asked.write:
        sections.write("catalog_tables", text)
        if drawn:
            PICTURE.write_text(drawn + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
