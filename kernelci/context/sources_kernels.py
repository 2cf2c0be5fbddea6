"""The project's own kernels and references, and what the last report says of each: what was tried, and how it went."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from kernelci import catalog, config, digest, results, units
from kernelci.config import ContextSource
from kernelci.context.sources import Found, SourceFailed, chosen
from kernelci.errors import KernelciError
from kernelci.model import KernelReport, Report


def look(source: ContextSource, root: Path, folder: Path, offline: bool) -> Found:
    """The kernels as they are now. Raises SourceFailed."""
    try:
        options = config.load(root)
        found = catalog.scan(root, options)
    except KernelciError as error:
        raise SourceFailed(error.message) from error
    report = _report(root / options.out)
    files = [path for kernel in found.kernels for path in kernel.sources()] + list(found.references.values())
    listed = [(path.relative_to(root).as_posix(), path.read_bytes()) for path in files]
    listed = [(path, data) for path, data in listed if chosen(source, path)]
    listed += (
        [(f"results/{kernel.name}.md", _page(kernel, report).encode()) for kernel in report.kernels] if report else []
    )
    dsls = {path.relative_to(root).as_posix(): kernel.backend for kernel in found.kernels for path in kernel.sources()}
    made = hashlib.sha256(repr(listed).encode()).hexdigest()
    return Found(
        version="", fingerprint=made, files=lambda: iter(listed), license=source.license or "this project's", dsls=dsls
    )


def _report(out: Path) -> Report | None:
    """The last report; None where there is none that can be read."""
    try:
        return results.read(out)
    except KernelciError:
        return None


def _page(kernel: KernelReport, report: Report) -> str:
    """What one kernel's climb found, as a document."""
    where = ", ".join(filter(None, (report.environment.gpu or report.environment.machine, report.started_at)))
    head = [f"# Result of {kernel.name} ({kernel.backend}): {kernel.outcome}", "", f"`{kernel.path}` on {where}", ""]
    return "\n".join([*head, *_rungs(kernel), *_numbers(kernel, report)])


def _rungs(kernel: KernelReport) -> Iterator[str]:
    for rung in kernel.rungs:
        said = f": {rung.finding.reason}: {rung.finding.message[:500]}" if rung.finding else ""
        yield f"- {rung.rung} {rung.outcome}{said}"


def _numbers(kernel: KernelReport, report: Report) -> Iterator[str]:
    for table in digest.tables(report):
        for (name, output, case, target), cells in table.lines[:2000]:
            if name == kernel.name:
                values = (
                    f"{title} {units.metric(cell)}" for title, cell in zip(table.columns, cells, strict=True) if cell
                )
                yield f"- {table.rung} {' '.join(filter(None, (output, case, target)))}: {', '.join(values)}"
