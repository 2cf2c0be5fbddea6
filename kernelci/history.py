"""The history of nights: flat records, one a line, in small gzipped JSON-lines files that are never rewritten.

    nights/2026/11/2026-11-30_nvidia-h200_DIGEST.jsonl.gz     what one night's climb on one GPU found
    months/2026-11_nvidia-h200_DIGEST.jsonl.gz                the same nights, merged once the month is over
    events/2026/2026-11-30_DIGEST.jsonl                       what was made of them: re-measured, confirmed, settled

A file's name holds the digest of its content, so that writing something twice is writing it once.
"""

import datetime
import gzip
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec
from msgspec import Struct

from kernelci.errors import ReportError
from kernelci.model import Environment, KernelReport, Metric, Name, Report, Row, RungResult, Text, by_tag
from kernelci.reasons import Outcome

NIGHTS, MONTHS, EVENTS = "nights", "months", "events"
SUFFIX = ".jsonl.gz"
MAX_BYTES = 64 * 2**20
# The wheels that turn a backend's kernels into machine code; a new version of one starts a new segment.
COMPILERS = {
    "triton": ("triton",),
    "tilelang": ("tilelang", "nvidia-cuda-nvcc"),
    "cutedsl": ("nvidia-cutlass-dsl",),
    "cuda": ("nvidia-cuda-nvrtc", "cuda-core"),
}


class Measure(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One kernel's case on one night. Times in ns, rates in byte/s and FLOP/s; None: not measured.

    A kernel that was not timed has a record for each case and target that it was compiled for, without times; one that
    was not compiled either has one record with no case. What compiling told is the most of any build of a case.
    """

    night: datetime.date
    started: Name
    kernel: Name
    outcome: Outcome
    case: Name = ""
    reason: Name = ""
    commit: Name = ""
    run: Name = ""
    gpu: Name = ""
    gpu_uuid: Name = ""
    target: Name = ""
    driver: Name = ""
    cuda: Name = ""
    dsl: Name = ""
    clocks: Name = ""
    source: Name = ""
    """The first digits of the kernel file's SHA-256."""
    time_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    warm_ns: float | None = None
    end_to_end_ns: float | None = None
    of_ceiling: float | None = None
    bandwidth: float | None = None
    flops: float | None = None
    psnr_db: float | None = None
    """The worst of all checked cases."""
    copy: float | None = None
    matmul: float | None = None
    """The night's own probes."""
    registers: float | None = None
    stack_bytes: float | None = None
    """Of a thread: what is spilled, and arrays that fit in no registers."""
    shared_bytes: float | None = None
    """Of a block: static and dynamic."""
    code_bytes: float | None = None
    compile_s: float | None = None
    """The rung's own time for the whole kernel; what was compiled before takes none."""
    error_ratio: float | None = None
    """The largest error over its bound, of all checked cases: above 1 fails."""


class Event(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was found out about one series (kernel, case, GPU) after the night itself. Fractions are head/base - 1.

    remeasured: a paired measurement of `good` against `bad`; dated: bisected to `bad`; acknowledged: somebody answers
    for it until `until`; environment: it is the machine's; false: somebody says it is none.
    """

    night: datetime.date
    kind: Literal["remeasured", "dated", "acknowledged", "environment", "false"]
    kernel: Name
    case: Name
    gpu: Name
    since: datetime.date
    """The first night of the change."""
    good: Name = ""
    bad: Name = ""
    verdict: Literal["SLOWER", "FASTER", "SAME", "UNKNOWN", ""] = ""
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    suspected: float | None = None
    """What the nights seemed to show."""
    text: Text = ""
    until: datetime.date | None = None


def answered(verdict: str, high: float | None, suspected: float | None) -> str:
    """What a paired measurement says of a suspicion: one that leaves it open, yet rules out half of it, denies it."""
    if verdict == "UNKNOWN" and high is not None and suspected is not None and 0 < suspected and high < suspected / 2:
        return "SAME"
    return verdict


def of_report(report: Report, night: datetime.date, commit: str = "", run: str = "") -> tuple[Measure, ...]:
    """A night's records."""
    return tuple(
        measure
        for kernel in report.kernels
        for measure in _of_kernel(kernel, _common(report, kernel, night, commit, run), report.environment.target)
    )


def _common(report: Report, kernel: KernelReport, night: datetime.date, commit: str, run: str) -> Measure:
    where, checked, compiled = report.environment, kernel.rung("correctness"), kernel.rung("compile")
    return Measure(
        night, report.started_at, kernel.name, kernel.outcome, commit=commit, run=run, gpu=where.gpu,
        gpu_uuid=where.gpu_uuid, target=where.target, driver=where.driver, cuda=where.cuda,
        dsl=_dsl(kernel.backend, where), clocks=_clocks(where), source=kernel.sha256[:16],
        psnr_db=min(_checked(checked, "psnr"), default=None),
        compile_s=_finite(compiled.duration_s) if compiled else None,
        error_ratio=max(_checked(checked, "worst_ratio", "rmse_ratio"), default=None),
    )  # fmt: skip


def _of_kernel(kernel: KernelReport, common: Measure, target: str) -> Iterator[Measure]:
    timed, built = kernel.rung("benchmark"), _built(kernel.rung("compile"), target)
    rows = [row for row in timed.rows if row.case] if timed else []
    if timed is None or not rows:
        yield from _untimed(kernel, common, built)
        return
    probes = {metric.tag: _number(metric) for metric in timed.metrics}
    matmul = next((value for tag, value in probes.items() if tag.startswith("matmul:bf") and value), None)
    common = msgspec.structs.replace(common, copy=probes.get("copy"), matmul=matmul or probes.get("matmul:float16"))
    for row in rows:
        yield _of_row(row, msgspec.structs.replace(common, **built.get((row.case, target), {})))


def _untimed(kernel: KernelReport, common: Measure, built: "_Built") -> Iterator[Measure]:
    common = msgspec.structs.replace(common, reason=_why(kernel))
    if not built:
        yield common
    for (case, target), known in built.items():
        yield msgspec.structs.replace(common, case=case, target=target, **known)


def _why(kernel: KernelReport) -> str:
    """Why it was not timed: what stopped it, else why the cases were not measured."""
    for rung in (kernel.stopped_at, kernel.rung("benchmark")):
        if rung is not None and rung.finding is not None:
            return rung.finding.reason
    return ""


_Built = Mapping[tuple[str, str], dict[str, float | None]]


def _built(compiled: RungResult | None, target: str) -> _Built:
    """What compiling told of each case and target; of one target alone where the night had a GPU."""
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in compiled.rows if compiled else ():
        if row.case and target in ("", row.target):
            known = found.setdefault((row.case, row.target), {})
            for name, value in _resources(row).items():
                known[name] = max(known.get(name) or 0.0, value)
    return found


def _resources(row: Row) -> dict[str, float]:
    values = {metric.tag: value for metric in row.metrics if (value := _number(metric)) is not None}
    shared = [values[tag] for tag in ("static_shared", "dynamic_shared") if tag in values]
    names = {"registers": "registers", "stack_bytes": "stack", "code_bytes": "code"}
    found = {name: values[tag] for name, tag in names.items() if tag in values}
    return found | ({"shared_bytes": sum(shared)} if shared else {})


def _of_row(row: Row, common: Measure) -> Measure:
    """A row that did not pass has no time: what was measured then can't be trusted."""
    reason = row.finding.reason if row.finding else ""
    common = msgspec.structs.replace(common, case=row.case, outcome=row.outcome, reason=reason)
    # A row that only the gate stopped was measured all right.
    if row.outcome is not Outcome.PASSED and reason != "slower":
        return common
    found = by_tag(row.metrics)
    time = found.get("time")
    return msgspec.structs.replace(
        common,
        time_ns=_number(time),
        low_ns=_finite(time.low) if time else None,
        high_ns=_finite(time.high) if time else None,
        warm_ns=_number(found.get("time_warm")),
        end_to_end_ns=_number(found.get("time_end_to_end")),
        of_ceiling=_number(found.get("of_ceiling")),
        bandwidth=_number(found.get("bandwidth")),
        flops=_number(found.get("flops")),
    )


def _number(metric: Metric | None) -> float | None:
    return _finite(metric.value) if metric is not None else None


def _finite(value: float | str | None) -> float | None:
    return float(f"{value:.6g}") if isinstance(value, int | float) and math.isfinite(value) else None


def _dsl(backend: str, where: Environment) -> str:
    names = COMPILERS.get(backend, (backend,))
    return ", ".join(f"{name} {where.versions[name]}" for name in names if name in where.versions)


def _clocks(where: Environment) -> str:
    """How fast the GPU may run, in words: clocks, power limit, ECC, MIG."""
    power = "" if where.power_limit_w is None else f"{where.power_limit_w:g} W"
    switches = (f"{name} {state}" for name, state in (("ECC", where.ecc), ("MIG", where.mig)) if state)
    return ", ".join(part for part in (where.clocks, power, *switches) if part)


def _checked(checked: RungResult | None, *tags: str) -> list[float]:
    """The values of metrics, each of one output, in all rows of a rung."""
    rows = checked.rows if checked else ()
    values = (_number(each) for row in rows for each in row.metrics if each.tag.partition(":")[0] in tags)
    return [value for value in values if value is not None]


def encode(records: Iterable[Measure | Event]) -> bytes:
    """One JSON object a line."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def night_file(measures: Sequence[Measure]) -> tuple[str, bytes]:
    """Where one night's records on one GPU go, and their bytes there. Raises ReportError where there are none."""
    if not measures:
        raise ReportError("no kernel was climbed: there is nothing to remember", code="nothing-to-do")
    first, text = measures[0], encode(measures)
    name = f"{NIGHTS}/{first.night:%Y/%m}/{first.night}_{slug(first.gpu)}_{digest(text)}{SUFFIX}"
    return name, packed(text)


def month_file(month: str, gpu: str, lines: bytes) -> tuple[str, bytes]:
    """Where a month's lines on one GPU go ("2026-11"; the GPU as its files' names have it), and their bytes there."""
    return f"{MONTHS}/{month}_{gpu}_{digest(lines)}{SUFFIX}", packed(lines)


def event_file(events: Sequence[Event]) -> tuple[str, bytes]:
    """Where events of one night go, and their bytes there."""
    text = encode(events)
    night = events[0].night
    return f"{EVENTS}/{night:%Y}/{night}_{digest(text)}.jsonl", text


def month_of(path: str) -> tuple[str, str] | None:
    """Month and GPU of a night's file ("2026-11", "nvidia-h200"); None for any other."""
    match = re.fullmatch(r"nights/\d{4}/\d\d/(\d{4}-\d\d)-\d\d_([a-z0-9.-]+)_[0-9a-f]{16}\.jsonl\.gz", path)
    return (match[1], match[2]) if match else None


def last_day(path: str) -> datetime.date | None:
    """The last day that a file may speak of; None for what is no file of ours."""
    name = PurePosixPath(path).name
    try:
        if path.startswith(f"{MONTHS}/"):
            year, month = int(name[:4]), int(name[5:7])
            return datetime.date(year + month // 12, month % 12 + 1, 1) - datetime.timedelta(days=1)
        return datetime.date.fromisoformat(name[:10])
    except ValueError:
        return None


def slug(text: str) -> str:
    """A name as a part of a file's name."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60] or "cpu"


def digest(text: bytes) -> str:
    """What names a content."""
    return hashlib.sha256(text).hexdigest()[:16]


def packed(text: bytes) -> bytes:
    """Gzipped, without a time of its own."""
    return gzip.compress(text, 9, mtime=0)


def unpacked(data: bytes, limit: int = MAX_BYTES) -> bytes:
    """The lines of a packed file. Raises ReportError for what is none, or too large."""
    import io
    import zlib

    try:
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ReportError(f"a file of the history can't be unpacked: {error}") from error
    if len(text) > limit:
        raise ReportError(f"a file of the history unpacks to more than {limit // 2**20} MiB")
    return text
