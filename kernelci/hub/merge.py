"""One report from those of several shards: refuses what can't stand side by side in one table."""

import itertools
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from kernelci import results
from kernelci.budget import stated
from kernelci.config import BudgetOptions
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.model import KernelReport, Report

# What must agree, or the shards' numbers have nothing to do with each other.
_SAME: dict[str, Callable[[Report], object]] = {
    "the seed": lambda report: report.seed,
    "kernelci": lambda report: report.kernelci_version,
    "the machine": lambda report: report.environment.machine,
    "Python": lambda report: report.environment.python,
    "the GPU": lambda report: report.environment.gpu,
    "the target": lambda report: report.environment.target,
    "the driver": lambda report: report.environment.driver,
    "the isolation": lambda report: report.environment.isolation,
    "the versions": lambda report: report.environment.versions,
    "the base": lambda report: report.change.base if report.change else "",
    "the head": lambda report: report.change.head if report.change else "",
    "the judge's changes": lambda report: report.change.judge if report.change else (),
}


def merge(folders: Sequence[Path], out: Path, expected: int = 0, incomplete: str = "") -> Report:
    """Merge the folders' reports into one in `out`, with their dumps.

    Raises ConfigError for shards that don't belong together, and RunnerBroken where some are missing.
    """
    found = {str(folder): results.read(folder) for folder in folders}
    first = {name: report for name, report in found.items() if not _is_second(report)} or found
    if expected and len(first) < expected:
        raise RunnerBroken(f"{len(first)} of {expected} shards left a report", hint="see the jobs of the others")
    merged = marked(merged_report(list(first.values()), list(first)), incomplete)
    merged = with_second(merged, [report for report in found.values() if report.second is not None])
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        _copy_dumps(folder, out)
    results.write(merged, out)
    return merged


def merged_report(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """The reports as one; kernels by name. Raises ConfigError naming what differs."""
    if not reports:
        raise ConfigError("no report to merge", hint="name the shards' folders")
    for report, name in zip(reports[1:], names[1:], strict=True):
        _refuse_mixture(reports[0], names[0], report, name)
    kernels = sorted((kernel for report in reports for kernel in report.kernels), key=lambda kernel: kernel.name)
    _refuse_twins(kernels)
    known = reports[0].budget
    limits = BudgetOptions(gpu_minutes=known.gpu_minutes or 0.0, runs=known.runs or 0) if known else BudgetOptions()
    together = msgspec.structs.replace(reports[0], duration_s=sum(report.duration_s for report in reports))
    return msgspec.structs.replace(
        reports[0],
        budget=stated(together, limits).budget,
        started_at=min(report.started_at for report in reports),
        duration_s=max(report.duration_s for report in reports),
        kernels=tuple(kernels),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
    )


def _is_second(report: Report) -> bool:
    """Whether it comes from a job that only heard the second referee: another machine, another seed."""
    return report.second is not None and not report.kernels


def with_second(report: Report, heard: Sequence[Report]) -> Report:
    """The report with what second referees said of the same change. Raises ConfigError for another change's."""
    seconds = [each.second for each in heard if each.second is not None]
    if not seconds:
        return report
    for each in heard:
        _refuse_mixture(report, "the shards", each, "the second referee's", ("the base", "the head"))
    kernels = sorted((kernel for each in seconds for kernel in each.kernels), key=lambda kernel: kernel.name)
    _refuse_twins(kernels)
    why = "; ".join(dict.fromkeys(each.why for each in seconds if each.why))[:2000]
    return msgspec.structs.replace(report, second=msgspec.structs.replace(seconds[0], kernels=tuple(kernels), why=why))


def marked(report: Report, incomplete: str) -> Report:
    """The report with what its run left undone, if that is anything."""
    if not incomplete or report.change is None:
        return report
    change = msgspec.structs.replace(report.change, incomplete=incomplete)
    return msgspec.structs.replace(report, change=change)


def _refuse_mixture(
    first: Report, first_name: str, other: Report, name: str, facts: Iterable[str] = tuple(_SAME)
) -> None:
    for what in facts:
        of = _SAME[what]
        if of(first) != of(other):
            raise ConfigError(
                f"{what} differs: {of(first)!s:.200} in {first_name}, {of(other)!s:.200} in {name}",
                hint="merge only the shards of one `kernelci plan`, from machines of one kind",
                code="mixture",
            )


def _refuse_twins(kernels: Sequence[KernelReport]) -> None:
    for before, after in itertools.pairwise(kernels):
        if before.name == after.name:
            raise ConfigError(f"two shards report on {after.name}", hint="is a folder named twice?", code="mixture")


def _copy_dumps(folder: Path, out: Path) -> None:
    """The shard's artifacts; links are left behind."""
    for name in results.FOLDERS:
        source = (folder.parent if folder.is_file() else folder) / name
        if source.is_dir() and not source.is_symlink() and source.resolve() != (out / name).resolve():
            shutil.copytree(source, out / name, symlinks=True, dirs_exist_ok=True, ignore=_links)


def _links(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (Path(folder) / name).is_symlink()}
