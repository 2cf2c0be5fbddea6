"""Install kernelci from its own checkout into a virtual environment, or use the one that is there: for action.yml.

Runs before anything is installed, so it is a file of its own that needs the standard library alone. Prints the
environment's interpreter.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

MARKER = ".kernelci-installed"
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
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-I", "-m", "venv", str(venv)], check=True)
    wanted = f"{source}[{extras}]" if extras else str(source)
    pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, *arguments, wanted], check=True, stdout=sys.stderr)
    (venv / MARKER).write_text("complete\n", encoding="utf-8")
    return python


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
