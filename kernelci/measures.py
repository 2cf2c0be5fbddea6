"""A report as plain rows of figures, for formats that other tools read."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kernelci import inert
from kernelci.model import KernelReport, Metric, Report, Row, RungResult

LABELS = ("kernel", "reference", "backend", "rung", "case", "target", "draw")
BENCHMARK, CORRECTNESS = "benchmark", "correctness"
TIME = "time"


class Measure(Struct, frozen=True):
    """One metric, or an outcome that has none, with all that says what it is of. Texts are one inert line."""

    kernel: str
    reference: str
    backend: str
    rung: str
    case: str
    target: str
    draw: str
    outcome: str
    reason: str
    verdict: str
    metric: str = ""
    name: str = ""
    unit: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def labels(self) -> dict[str, str]:
        """What tells it apart from others of its metric; empty ones are left out."""
        return {label: getattr(self, label) for label in LABELS if getattr(self, label)}


def of(report: Report) -> Iterator[Measure]:
    """Every metric of every row and rung; a row without any is one entry without a value."""
    for kernel in report.kernels:
        for rung in kernel.rungs:
            for row in (*rung.rows, None):
                yield from _of_row(kernel, rung, row)


def timed(report: Report) -> Iterator[tuple[Measure, Row]]:
    """The time of each bench row that passed and has one, with its row."""
    for kernel in report.kernels:
        rung = kernel.rung(BENCHMARK)
        for row in rung.rows if rung is not None else ():
            for measure in _of_row(kernel, rung, row) if rung is not None else ():
                if measure.metric == TIME and measure.value is not None and measure.outcome == "PASSED":
                    yield measure, row


def _of_row(kernel: KernelReport, rung: RungResult, row: Row | None) -> Iterator[Measure]:
    source = rung if row is None else row
    finding = source.finding
    plain = Measure(
        kernel=inert.line(kernel.name),
        reference=inert.line(kernel.reference),
        backend=inert.line(kernel.backend),
        rung=inert.line(rung.rung),
        case=inert.line(row.case) if row is not None else "",
        target=inert.line(row.target) if row is not None else "",
        draw=inert.line(row.draw) if row is not None else "",
        outcome=source.outcome.value,
        reason=finding.reason if finding is not None else "",
        verdict=row.verdict.value if row is not None else "",
    )
    if not source.metrics and (row is not None or not rung.rows):
        yield plain
    for metric in source.metrics:
        yield _with(plain, metric)


def _with(plain: Measure, metric: Metric) -> Measure:
    return replace(
        plain,
        metric=inert.line(metric.tag),
        name=inert.line(metric.name),
        unit=metric.unit.value,
        value=float(metric.value),
        low=None if metric.low is None else float(metric.low),
        high=None if metric.high is None else float(metric.high),
    )
