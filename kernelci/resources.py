"""Files that come with kernelci: in the wheel under kernelci/data/, in a checkout in its root or in tests/."""

from pathlib import Path

from kernelci.errors import RunnerBroken

TEMPLATES = "report_templates"
CORPUS = "bad_kernels"
_PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Our own folder of that name. Raises RunnerBroken where the installation lacks it."""
    places = (_PACKAGE / "data" / name, _PACKAGE.parent / name, _PACKAGE.parent / "tests" / name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise RunnerBroken(f"kernelci's own folder {name} is missing", hint="install kernelci again")
    return found


def template_folders(root: Path | None = None) -> tuple[Path, ...]:
    """Where templates are looked for, file by file: the project's own report_templates first, then ours."""
    ours = folder(TEMPLATES)
    own = root / TEMPLATES if root is not None else ours
    return (own, ours) if own.is_dir() and own.resolve() != ours.resolve() else (ours,)
