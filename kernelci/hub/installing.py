"""Install kernelci from its own checkout into a virtual environment, or use the one that is there: for action.yml.

Runs before anything is installed, so it is a file of its own that needs the standard library alone. Prints the
environment's interpreter.
"""

import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

MARKER = ".kernelci-installed"
LIGHT = {"", "github", "nightly"}
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")
_INSTALLED_FROM = ("kernelci", "report_templates", "pyproject.toml", "tests/bad_kernels")


def key(source: Path, extras: str, arguments: list[str]) -> str:
    """What an environment is made from, as a hash: interpreter, the checkout's files, extras, pip's arguments."""
    digest = hashlib.sha256(repr((sys.version, sys.executable, extras, arguments)).encode())
    for name in _INSTALLED_FROM:
        place = source / name
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                content = file.read_bytes()
                digest.update(f"{file.relative_to(source)}:{len(content)}:".encode() + content)
    return digest.hexdigest()[:20]


def install(source: Path, folder: Path, extras: str, arguments: list[str]) -> Path:
    """The interpreter of an environment with kernelci; made anew where the last try did not end."""
    venv = folder / f"venv-{key(source, extras, arguments)}"
    python = venv / "bin" / "python"
    if (venv / MARKER).is_file() and python.exists():
        print(f"kernelci: the environment {venv} is unchanged and used again", file=sys.stderr)
        return python
    wanted = [*arguments, f"{source}[{extras}]" if extras else str(source)]
    ways = (_by_own_pip, _by_pip_inside) if _knows_python() else (_by_pip_inside,)
    for way in ways:
        shutil.rmtree(venv, ignore_errors=True)
        try:
            way(venv, [*wanted, *(() if _is_heavy(extras) else ("--no-compile",))])
            break
        except subprocess.CalledProcessError:
            if way is ways[-1]:
                raise
    (venv / MARKER).write_text("complete\n", encoding="utf-8")
    return python


def _is_heavy(extras: str) -> bool:
    """Whether it brings torch: its modules are compiled once here, since candidates can't write what they compile."""
    return not set(extras.split(",")) <= LIGHT


def _knows_python() -> bool:
    """Whether this interpreter has a pip that installs into another environment: 22.3 or newer."""
    try:
        major, minor = importlib.metadata.version("pip").split(".")[:2]
        return (int(major), int(minor)) >= (22, 3)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def _by_own_pip(venv: Path, wanted: list[str]) -> None:
    """An environment without a pip of its own: unpacking one takes longer than all that the light install fetches."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(venv)], check=True)
    command = [sys.executable, "-I", "-m", "pip", "--python", str(venv / "bin" / "python"), "install", *QUIET, *wanted]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _by_pip_inside(venv: Path, wanted: list[str]) -> None:
    subprocess.run([sys.executable, "-I", "-m", "venv", str(venv)], check=True)
    command = [str(venv / "bin" / "python"), "-I", "-m", "pip", "install", *QUIET, *wanted]
    subprocess.run(command, check=True, stdout=sys.stderr)


def main() -> int:
    """Read the action's inputs from the environment; exit code 4 where the installation fails."""
    source = Path(__file__).resolve().parents[2]
    places = ("KERNELCI_VENVS", "RUNNER_TOOL_CACHE", "RUNNER_TEMP")
    folder = Path(next(filter(None, map(os.environ.get, places)), "/tmp")) / "kernelci"
    try:
        arguments = shlex.split(os.environ.get("KERNELCI_ACTION_PIP", ""))
        print(install(source, folder, os.environ.get("KERNELCI_ACTION_EXTRAS", ""), arguments))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"::error title=kernelci could not be installed::{str(error).splitlines()[0][:300]}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
