"""roofline: how far each bench case is from what this GPU can do, what binds it, and whether to go on."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelci import charts, gpus, roofline
from kernelci.charts import Point, Roof
from kernelci.comparison import ADVISES
from kernelci.errors import Stop
from kernelci.gpus import Gpu
from kernelci.model import Artifact, Metric, Row, RungResult, Unit, by_tag, number
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.roofline import Ceilings, Place, Work
from kernelci.rungs import Findings, Referee, kept, rung
from kernelci.workbench import timing

FOLDER = "roofline"
WIDE = 128  # bits a thread in a load
LOW_OCCUPANCY = 0.25
Metrics = Mapping[str, Metric]


@rung("roofline", after=("benchmark",), needs=("gpu",))
def place_all(referee: Referee) -> Findings:
    """One row per bench case that was timed."""
    measured = referee.climbed["benchmark"]
    gpu = gpus.by_name(referee.device.name)
    found, points, roofs = Findings(), list[Point](), dict[str, Roof]()
    for row in measured.rows:
        case = referee.reference.case_of(row.case)
        time = by_tag(row.metrics).get("time")
        if case is None or time is None or row.outcome is not Outcome.PASSED:
            continue
        ceilings = _ceilings(measured, gpu, timing.dtype_of_case(case))
        work = _work(referee, case, time, row.case)
        placed = roofline.place(work, ceilings, tuple(_hints(referee, row.case)), referee.config.roofline_stop)
        found.rows.append(Row(Outcome.PASSED, row.case, metrics=tuple(_metrics(placed)), notes=(placed.text,)))
        points.append(Point(row.case, work.intensity, 1e9 * work.flops / work.time_ns, str(placed.bound), placed.text))
        roofs |= _roofs(ceilings, timing.dtype_of_case(case))
    if not found.rows:
        raise Stop("not-measured", "no bench case has a time that can be trusted")
    found.artifacts += _chart(referee, points, list(roofs.values()))
    found.metrics += _all_ceilings(measured, gpu)
    return found


def _value(found: Metrics, tag: str) -> float:
    return float(found[tag].value) if tag in found else 0.0


def _ceilings(measured: RungResult, gpu: Gpu | None, dtype: str) -> Ceilings:
    """What was measured in this run; the datasheet's peak where a dtype's was not."""
    found = by_tag(measured.metrics)
    peak = _value(found, f"matmul:{dtype}")
    sheet = gpu.peak(dtype) if gpu else 0.0
    return Ceilings(
        _value(found, "copy"),
        peak or sheet,
        gpu.memory_bandwidth_bytes_per_s if gpu else 0.0,
        sheet,
        _value(found, "empty"),
        peak_measured=peak > 0,
        l2_bytes=gpu.l2_bytes if gpu else 0,
    )


def _work(referee: Referee, case: Case, time: Metric, name: str) -> Work:
    cost = timing.cost_of(referee.reference, case)
    profile = referee.climbed.get("profile")
    rows = profile.rows if profile is not None else ()
    counted = next((by_tag(row.metrics) for row in rows if row.case == name), {})
    dram = _value(counted, "dram_bytes") if "dram_bytes" in counted else None
    return Work(cost.flops, cost.bytes or 0.0, float(time.value), dram)


def _hints(referee: Referee, case: str) -> Iterator[str]:
    """What the profile says, else what the machine code shows."""
    profile = referee.climbed.get("profile")
    for row in profile.rows if profile is not None else ():
        if row.case == case:
            yield from (note.removeprefix(ADVISES) for note in row.notes if note.startswith(ADVISES))
    for name in ("dump", "compile"):
        rung_ = referee.climbed.get(name)
        rows = [row for row in rung_.rows if row.target == referee.device.target] if rung_ is not None else []
        for built in [row for row in rows if _alike(row.case, case)][:1]:
            yield from _of_code(by_tag(built.metrics))


def _alike(built: str, case: str) -> bool:
    """Whether a build speaks for a case: of the same dtype and parameters."""
    return built == case or built.partition("-")[2] == case.partition("-")[2]


def _of_code(found: Metrics) -> Iterator[str]:
    if "spills" in found:
        yield f"registers spill ({int(_value(found, 'spills'))} loads and stores of the stack)"
    if 0 < _value(found, "load_bits") < WIDE:
        yield f"loads are {int(_value(found, 'load_bits'))} bits wide, {WIDE} are possible"
    if 0 < _value(found, "occupancy") < LOW_OCCUPANCY and "tensor" not in found:
        yield f"occupancy is {100 * _value(found, 'occupancy'):.3g} %: {found['occupancy'].description}"


def _metrics(placed: Place) -> Iterator[Metric]:
    bound = f"bound by {placed.bound}; {placed.advice}"
    yield Metric("attained", number(placed.attained), Unit.FRACTION, "attained", bound)
    if placed.of_datasheet:
        yield Metric("of_datasheet", number(placed.of_datasheet), Unit.FRACTION, "of the datasheet's")
    text = "the least time at the ceilings that were measured in this run"
    yield Metric("limit", number(placed.limit_ns), Unit.NANOSECONDS, "limit", text)
    yield Metric("intensity", number(placed.work.intensity), Unit.NONE, "FLOP/byte", "of the cost formula")
    if placed.work.dram_bytes is not None and placed.work.bytes:
        share = number(placed.work.dram_bytes / placed.work.bytes)
        yield Metric("dram_share", share, Unit.RATIO, "DRAM bytes", "that Nsight Compute counted, over the formula's")


def _all_ceilings(measured: RungResult, gpu: Gpu | None) -> Iterator[Metric]:
    """The ceilings: measured in this run, and the datasheet's."""
    for metric in measured.metrics:
        kind, _, dtype = metric.tag.partition(":")
        if kind not in ("copy", "matmul"):
            continue
        yield metric
        sheet = gpu.memory_bandwidth_bytes_per_s if gpu else 0.0
        if gpu is not None and kind == "matmul":
            sheet = gpu.peak(dtype)
        if sheet:
            yield Metric(f"sheet_{metric.tag}", sheet, metric.unit, f"{metric.name}, datasheet")


def _roofs(ceilings: Ceilings, dtype: str) -> dict[str, Roof]:
    measured = Roof(ceilings.bytes_per_s, ceilings.flops_per_s, f"{dtype}, measured in this run")
    sheet = Roof(ceilings.sheet_bytes_per_s, ceilings.sheet_flops_per_s, f"{dtype}, datasheet", sheet=True)
    return {dtype: measured, f"{dtype} sheet": sheet}


def _chart(referee: Referee, points: list[Point], roofs: list[Roof]) -> list[Artifact]:
    drawn = charts.roofline(points, roofs)
    if not drawn:
        return []
    return [kept(referee, Path(FOLDER) / f"{referee.kernel.name}.svg", drawn.encode(), "svg")]
