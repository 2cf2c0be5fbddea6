"""`kernelci init`: what a repository needs to adopt kernelci in one commit."""

import importlib.metadata
import json
import re
from importlib.resources import files
from pathlib import Path

from kernelci import config, whole
from kernelci.context.skill import skill_text
from kernelci.errors import ConfigError

FILES = {
    ".github/workflows/kernels.yml": "kernels.yml.j2",
    ".github/workflows/report.yml": "report.yml.j2",
    ".github/workflows/commands.yml": "commands.yml.j2",
    ".github/workflows/profile.yml": "profile.yml.j2",
    ".github/workflows/nightly.yml": "nightly.yml.j2",
    "kernelci.toml": "kernelci.toml.j2",
    "references/line.py": "reference.py.j2",
    "kernels/line/triton.py": "kernel.py.j2",
    "AGENTS.md": "AGENTS.md.j2",
    "skills/gpu-kernels/SKILL.md": "SKILL.md.j2",
}
_SOURCE = re.compile(r"(?P<repository>[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})@(?P<commit>[0-9a-f]{40})")
_URL = re.compile(r"(?:https://|ssh://git@|git@)github\.com[:/](?P<repository>[^/]+/[^/]+?)(?:\.git)?/?")


def create(root: Path, source: str = "") -> list[Path]:
    """Write all files; their paths. `source`: kernelci's OWNER/NAME@COMMIT. Raises ConfigError; overwrites nothing."""
    from jinja2 import Environment, StrictUndefined

    found = _SOURCE.fullmatch(source or installed_from())
    if found is None:
        raise ConfigError(
            f"{source or 'this installation'} does not say where kernelci comes from",
            hint="--source OWNER/NAME@COMMIT, with all 40 digits: workflows pin what they use",
        )
    _refuse_existing(root)
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    folder = files("kernelci") / "data" / "init"
    values = found.groupdict() | {"skill": skill_text(root)}
    texts = {name: (folder / template).read_text(encoding="utf-8") for name, template in FILES.items()}
    whole.lay(root, {Path(name): environment.from_string(text).render(values) for name, text in texts.items()})
    return [Path(name) for name in FILES]


def _refuse_existing(root: Path) -> None:
    """One file that is there already stops all of it, so that no half of it is left behind."""
    if not root.is_dir():
        raise ConfigError(f"no folder {root}", hint="name the repository's folder with --root")
    taken = [name for name in FILES if (root / name).exists() or (root / name).is_symlink()]
    taken += ["pyproject.toml [tool.kernelci]"] if config.in_pyproject(root) else []  # options stand in one file alone
    if taken:
        raise ConfigError(
            f"{', '.join(taken)} already there", hint="nothing was written; move it away, or adopt by hand"
        )
    blocked = [str(parent) for name in FILES for parent in Path(name).parents if _in_the_way(root / parent)]
    if blocked:
        raise ConfigError(f"{blocked[0]} is no folder of this repository", hint="nothing was written")


def _in_the_way(path: Path) -> bool:
    return path.is_symlink() or (path.exists() and not path.is_dir())


def installed_from() -> str:
    """OWNER/NAME@COMMIT where pip installed kernelci from a GitHub repository; else empty."""
    try:
        text = importlib.metadata.distribution("kernelci").read_text("direct_url.json") or "{}"
        found = json.loads(text)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ""
    url = _URL.fullmatch(str(found.get("url", "")))
    commit = found.get("vcs_info", {}).get("commit_id", "")
    return f"{url['repository']}@{commit}" if url and commit else ""
