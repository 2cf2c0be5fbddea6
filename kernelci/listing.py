"""What `list` shows: every kernel and its card, read as text."""

from pathlib import Path
from typing import Any

from kernelci import backends, catalog, config, gpus


def rows(root: Path) -> tuple[list[dict[str, Any]], int]:
    """One record per kernel, and the exit code: 2 where a card can't be read."""
    root = root.resolve()
    found = catalog.scan(root, config.load(root))
    records = [_record(kernel, root, found.references) for kernel in found.kernels]
    return records, 2 if any(record["error"] for record in records) else 0


def _record(kernel: catalog.Kernel, root: Path, references: dict[str, Path]) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "reference": kernel.reference,
        "backend": kernel.backend,
        "entry": kernel.card.entry if kernel.card else "",
        "targets": list(kernel.card.targets) if kernel.card else [],
        "regions": list(kernel.card.regions) if kernel.card else [],
        "path": str(kernel.path.relative_to(root)),
        "error": _error(kernel, references),
    }


def _error(kernel: catalog.Kernel, references: dict[str, Path]) -> str:
    """What in its card would stop the kernel before anything is compiled, or nothing."""
    if kernel.card is None:
        return kernel.error
    if kernel.reference not in references:
        return f"no reference {kernel.reference!r}"
    if kernel.backend not in backends.names():
        return f"no backend {kernel.backend!r}"
    return gpus.unknown(kernel.card.targets)


def table(records: list[dict[str, Any]]) -> str:
    """The records as aligned columns."""
    if not records:
        return "no kernels"
    lines = [("KERNEL", "BACKEND", "TARGETS", "FILE")]
    for record in records:
        targets = ", ".join(record["targets"]) or "all configured"
        lines.append((record["name"], record["backend"] or "?", targets, record["path"]))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    texts = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line[:3], widths, strict=True)), line[3]])
        for line in lines
    ]
    texts += [f"{record['path']}: {record['error']}" for record in records if record["error"]]
    return "\n".join(texts)
