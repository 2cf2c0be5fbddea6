"""What `run` and `compile` do: read the project, make a plan, climb."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from kernelci import basing, catalog, config
from kernelci.basing import Base
from kernelci.config import Config
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
    base: str = "",
    base_folder: Path | None = None,
    gpus: str | None = None,
    profile: str | None = None,
) -> tuple[Report, Path]:
    """Climb with the project at `root`; the report and the folder it lies in. Raises KernelciError.

    `base`: a commit to compare with; `base_folder`: a folder that holds the project as it was there.
    """
    root = root.resolve()
    options = config.load(
        root, flags={"jobs": jobs, "gpus": gpus, "profile": profile, "out": str(out) if out else None}
    )
    found = catalog.scan(root, options)
    chosen = found.select(kernels)
    if not chosen:
        raise ConfigError(f"no kernel in {root / options.kernels}", hint="`kernelci new` makes one", code="no-kernels")
    folder = Path(options.out) if out else root / options.out
    with _side(root, options, base, base_folder) as side:
        from kernelci.ladder import Plan
        from kernelci.ladder import climb as start

        plan = Plan(
            chosen,
            folder,
            rungs,
            targets=targets,
            seed=seed,
            case=case,
            draw=draw,
            tier=tier,
            all_configs=all_configs,
        )
        if side is not None:
            change, notes = basing.change(side, found, kernels), basing.remarks(side, found, chosen)
            plan = msgspec.structs.replace(plan, base=side, change=change, notes=notes)
        return start(found, options, plan, progress), folder


def _side(root: Path, options: Config, ref: str, folder: Path | None) -> AbstractContextManager[Base | None]:
    """The other side of the comparison, if there is to be one."""
    if folder is not None:
        return nullcontext(basing.in_folder(folder))
    return basing.opened(root, options, ref) if ref else nullcontext()
