"""What `run` and `compile` do: read the project, make a plan, climb."""

from pathlib import Path
from typing import Any

from kernelci import catalog, config
from kernelci.errors import ConfigError
from kernelci.model import Report


def climb(
    root: Path,
    rungs: tuple[str, ...],
    progress: Any = None,
    *,
    kernels: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
    out: Path | None = None,
    all_configs: bool = False,
    jobs: int | None = None,
    case: str = "",
    draw: str = "",
    seed: str = "",
    tier: str = "pr",
) -> tuple[Report, Path]:
    """Climb with the project at `root`; the report and the folder it lies in. Raises KernelciError."""
    root = root.resolve()
    options = config.load(root, flags={"jobs": jobs, "out": str(out) if out else None})
    found = catalog.scan(root, options)
    chosen = found.select(kernels)
    if not chosen:
        raise ConfigError(f"no kernel in {root / options.kernels}", hint="`kernelci new` makes one", code="no-kernels")
    from kernelci.ladder import Plan
    from kernelci.ladder import climb as start

    folder = Path(options.out) if out else root / options.out
    plan = Plan(chosen, folder, rungs, targets, seed, case, draw, tier, all_configs)
    return start(found, options, plan, progress), folder
