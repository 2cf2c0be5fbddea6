"""What a reader wants of a profile: a few figures of one call, from the metrics of its launches."""

from collections.abc import Iterator, Sequence

from kernelci import units
from kernelci.model import Metric, Unit, by_tag
from kernelci.workbench import ncu_report
from kernelci.workbench.ncu_report import Launch

F = Unit.FRACTION
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg")
# tag, name, unit, description, NVIDIA's names for it: the first that there is.
_OF_LONGEST: tuple[tuple[str, str, Unit, str, tuple[str, ...]], ...] = (
    ("memory_use", "memory pipes", F, "of the memory system's peak",
     ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",)),
    ("dram_use", "DRAM", F, "of DRAM's peak bandwidth",
     ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed")),
    ("l2_use", "L2", F, "of the L2's peak", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)),
    ("l2_hits", "L2 hits", F, "of the sectors asked of the L2", ("lts__t_sector_hit_rate.pct",)),
    ("sm_use", "SM", F, "of the SMs' peak throughput", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    ("issue_use", "issue", F, "of cycles in which a scheduler issues",
     ("smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__inst_issued.avg.pct_of_peak_sustained_active",
      "smsp__issue_active.avg.pct")),
    ("achieved_occupancy", "achieved occupancy", F, "of the warps that an SM can hold",
     ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    ("sm_cycles", "SM cycles", Unit.COUNT, "that the kernel took",
     ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg")),
)  # fmt: skip
_TENSOR = ("sm__pipe_tensor", "sm__inst_executed_pipe_tensor")
_CONFLICTS = ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum")
_SHARED = ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts.sum")
_EXCESSIVE = (
    "derived__memory_l2_theoretical_sectors_global_excessive",
    "memory_l2_theoretical_sectors_global_excessive",
)
_SECTORS = ("memory_l2_theoretical_sectors_global", "derived__memory_l2_theoretical_sectors_global")
TOP_STALLS = 3
LEAST_STALL = 0.05


def figures(launches: Sequence[Launch]) -> tuple[Metric, ...]:
    """A call's figures: sums over its launches, and of the longest launch how it used the GPU. Empty for no launch."""
    if not launches:
        return ()
    longest = max(launches, key=lambda each: each.first(*DURATION) or 0.0)
    return (*_sums(launches), *_longest(longest))


def _sums(launches: Sequence[Launch]) -> Iterator[Metric]:
    durations = [each.first(*DURATION) for each in launches]
    known = [each for each in durations if each is not None]
    if known:
        yield Metric("profile_time", sum(known), Unit.NANOSECONDS, "time in the profile", "sum of a call's kernels")
    moved = [read + written for each in launches for read, written in [_dram(each)]]
    if known and any(each.first("dram__bytes_read.sum") is not None for each in launches):
        yield Metric("dram_bytes", sum(moved), Unit.BYTES, "DRAM bytes", "read and written by a call's kernels")
        if sum(known):
            rate = 1e9 * sum(moved) / sum(known)
            yield Metric("dram_rate", rate, Unit.BYTES_PER_SECOND, "DRAM rate", "bytes over the time in the profile")
    if len(launches) > 1:
        yield Metric("launches", len(launches), Unit.COUNT, "kernels", "of one call")


def _dram(launch: Launch) -> tuple[float, float]:
    return launch.first("dram__bytes_read.sum") or 0.0, launch.first("dram__bytes_write.sum") or 0.0


def _longest(launch: Launch) -> Iterator[Metric]:
    for tag, name, unit, text, names in _OF_LONGEST:
        value = launch.first(*names)
        if value is not None:
            yield Metric(tag, value, unit, name, text)
    tensor = [value for name, value in launch.metrics.items() if _is_tensor(name)]
    if tensor:
        yield Metric("tensor_use", max(tensor), F, "tensor cores", "of cycles in which their pipe is active")
    yield from _share("bank_conflicts", "bank conflicts", "of shared memory's wavefronts", launch, _CONFLICTS, _SHARED)
    yield from _share(
        "uncoalesced", "uncoalesced", "of global sectors that were not needed", launch, _EXCESSIVE, _SECTORS
    )
    for reason, share in ncu_report.stalls(launch)[:TOP_STALLS]:
        if share >= LEAST_STALL:
            yield Metric(f"stall_{reason.replace(' ', '_')}", share, F, f"stall: {reason}", "of all waiting of warps")


def _is_tensor(name: str) -> bool:
    return name.startswith(_TENSOR) and name.endswith(".avg.pct_of_peak_sustained_active")


def _share(
    tag: str, name: str, text: str, launch: Launch, part: tuple[str, ...], whole: tuple[str, ...]
) -> Iterator[Metric]:
    counted, total = launch.first(*part), launch.first(*whole)
    if counted is not None and total:
        yield Metric(tag, min(counted / total, 1.0), F, name, text)


# Figures that explain a time: growing makes slower (+1), or falling does (-1).
DIRECTIONS = {
    "dram_bytes": 1, "bank_conflicts": 1, "uncoalesced": 1, "launches": 1,
    "dram_use": -1, "tensor_use": -1, "issue_use": -1, "achieved_occupancy": -1, "l2_hits": -1, "sm_use": -1,
}  # fmt: skip
LEAST = 0.02  # of the time, or of a share: less explains nothing


def explained(base: Sequence[Metric], head: Sequence[Metric]) -> tuple[str, ...]:
    """What changed from base's call to head's in words, what explains most of the change of time first."""
    before = by_tag(base)
    found: list[tuple[float, str]] = []
    slower = _ratio(before.get("profile_time"), next((each for each in head if each.tag == "profile_time"), None)) >= 1
    for metric in head:
        old = before.get(metric.tag)
        way = 1 if metric.tag.startswith("stall_") else DIRECTIONS.get(metric.tag)
        if old is None or way is None:
            continue
        weight = _weight(old, metric)
        towards = (float(metric.value) > float(old.value)) == (way > 0)
        if weight >= LEAST:
            found.append((weight + (towards == slower), f"{metric.name} {_text(old)} -> {_text(metric)}"))
    return tuple(text for _, text in sorted(found, key=lambda each: -each[0]))


def _ratio(base: Metric | None, head: Metric | None) -> float:
    return float(head.value) / float(base.value) if base is not None and head is not None and base.value else 1.0


def _weight(base: Metric, head: Metric) -> float:
    """How large a change is: of shares their difference, of amounts their relative change, at most 1."""
    old, new = float(base.value), float(head.value)
    if head.unit is F:
        return min(abs(new - old), 1.0)
    return min(abs(new - old) / max(old, new, 1e-30), 1.0)


def _text(metric: Metric) -> str:
    return units.value(metric.value, metric.unit)
