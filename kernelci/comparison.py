"""Times of head against base: what a benchmark row's metrics say, as one of FASTER, SLOWER, SAME, UNKNOWN. Pure.

A row is a comparison where it has the metric `delta` (a fraction, head over base less one, with its interval) and
`floor` (what is too small to matter). `time_base`, `time_head`, `roofline_base` and `roofline_head` are shown if there.
"""

from collections.abc import Iterator

from msgspec import Struct

from kernelci.model import Metric, Report, Row, Verdict


class Time(Struct, frozen=True):
    """One row's comparison."""

    kernel: str
    case: str
    target: str
    verdict: Verdict
    delta: Metric
    base: Metric | None
    head: Metric | None
    roofline: tuple[Metric | None, Metric | None]
    cause: str


class Times(Struct, frozen=True):
    """All comparisons of a report by verdict, the largest effect first."""

    slower: tuple[Time, ...] = ()
    unknown: tuple[Time, ...] = ()
    faster: tuple[Time, ...] = ()
    same: tuple[Time, ...] = ()


def times(report: Report) -> Times:
    """Every comparison in a report."""
    found = sorted(_all(report), key=lambda each: -abs(_number(each.delta.value)))
    by = {verdict: tuple(each for each in found if each.verdict is verdict) for verdict in Verdict}
    return Times(by[Verdict.SLOWER], by[Verdict.UNKNOWN], by[Verdict.FASTER], by[Verdict.SAME])


def _all(report: Report) -> Iterator[Time]:
    for kernel in report.kernels:
        for rung in kernel.rungs:
            for row in rung.rows:
                metrics = {metric.tag: metric for metric in row.metrics}
                if "delta" in metrics:
                    yield _time(kernel.name, row, metrics)


def _time(kernel: str, row: Row, metrics: dict[str, Metric]) -> Time:
    get = metrics.get
    roofline = (get("roofline_base"), get("roofline_head"))
    cause = row.finding.message if row.finding else next(iter(row.notes), "")
    verdict = row.verdict or judged(metrics["delta"], get("floor"))
    return Time(
        kernel, row.case, row.target, verdict, metrics["delta"], get("time_base"), get("time_head"), roofline, cause
    )


def judged(delta: Metric, floor: Metric | None) -> Verdict:
    """SLOWER or FASTER where the whole interval lies beyond the floor, SAME where it lies within, else UNKNOWN."""
    if delta.low is None or delta.high is None:
        return Verdict.UNKNOWN
    low, high = _number(delta.low), _number(delta.high)
    limit = abs(_number(floor.value)) if floor else 0.0
    if low > limit:
        return Verdict.SLOWER
    if high < -limit:
        return Verdict.FASTER
    return Verdict.SAME if -limit <= low <= high <= limit else Verdict.UNKNOWN


def _number(value: float | str) -> float:
    return float(value)
