"""Two folders of dumps compared, as an agent asks for it: within the project only."""

from pathlib import Path

from kernelci.dumps import telling
from kernelci.errors import ConfigError


def inside(root: Path, name: str) -> Path:
    """A folder of the project. Raises ConfigError for one that is not there, or not in it."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ConfigError(f"{name!r} is outside the project", hint="name a folder in it")
    if not path.is_dir():
        raise ConfigError(f"no folder {name!r}")
    return path


def compared(base: Path, head: Path) -> str:
    """Builds of two folders against each other, with what changed in the machine code."""
    return telling.folders(base, head, lines=0)
