"""GitHub's runner, fetched once: the version and the checksum that the configuration names, and no other."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.runner.workplace import RUN, remove
from kernelci.unpacking import unpack

SOURCE = (
    "https://github.com/actions/runner/releases/download/v{version}/actions-runner-linux-{machine}-{version}.tar.gz"
)
MARKER = ".kernelci-version"
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
LARGEST_BYTES = 2 * 2**30
TIMEOUT_S = 60.0


def install(options: RunnerOptions, source: str = SOURCE, archive: Path | None = None) -> Path:
    """Install into `installation`, which is replaced at once or not at all. `archive`: a copy that is here already.

    Raises ConfigError where version or checksum are not named or don't fit, RunnerBroken where it can't be had.
    """
    if not options.version or not options.sha256:
        hint = "set `version` and `sha256` in [tool.kernelci.runner]: the release's page at actions/runner names both"
        raise ConfigError("which version of GitHub's runner? None is named", hint=hint)
    to = Path(options.installation)
    if installed(to) == options.version:
        return to
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".runner-") as folder:
        packed = archive or _fetched(source, options, Path(folder) / "runner.tar.gz")
        if (found := digest(packed)) != options.sha256:
            raise ConfigError(f"the archive's SHA-256 is {found}, and not what is configured", hint="it is not used")
        unpacked = _unpacked(packed, Path(folder) / "runner")
        (unpacked / MARKER).write_text(options.version, encoding="utf-8")
        _replace(unpacked, to)
    return to


def installed(folder: Path) -> str:
    """The version that lies there; empty where there is none."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8").strip() if (folder / RUN).is_file() else ""
    except OSError:
        return ""


def digest(path: Path) -> str:
    """A file's SHA-256. Raises ConfigError where it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path}: {error}") from error


def _fetched(source: str, options: RunnerOptions, to: Path) -> Path:
    import requests

    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise ConfigError(f"GitHub's runner is not made for {os.uname().machine}")
    url = source.format(version=options.version, machine=machine)
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT_S) as answer, to.open("wb") as file:
            answer.raise_for_status()
            size = 0
            for part in answer.iter_content(2**20):
                size += len(part)
                if size > LARGEST_BYTES:
                    raise RunnerBroken(f"{url}: more than {LARGEST_BYTES / 2**30:.0f} GiB")
                file.write(part)
    except (requests.RequestException, OSError) as error:
        hint = "or fetch it elsewhere: kernelci runner setup --archive FILE"
        raise RunnerBroken(f"{url}: {type(error).__name__}: {str(error)[:150]}", hint=hint) from error
    return to


def _unpacked(packed: Path, to: Path) -> Path:
    """The archive's files, root's and not writable by others. Raises RunnerBroken."""
    try:
        with tarfile.open(packed) as archive:
            unpack(archive, to)
    except (OSError, tarfile.TarError) as error:
        raise RunnerBroken(f"the archive can't be unpacked: {error}") from error
    if not (to / RUN).is_file():
        raise RunnerBroken(f"the archive holds no {RUN}")
    to.chmod(0o755)
    return to


def _replace(new: Path, to: Path) -> None:
    old = to.with_name(f".{to.name}.old")
    remove(old)
    if to.exists():
        to.rename(old)
    new.rename(to)
    remove(old)


def users_missing(options: RunnerOptions, broker_user: str) -> list[str]:
    """Commands that make the users which are not there."""
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    wanted = [name for name in (options.user, broker_user) if name and not name.isdigit() and name not in known]
    shell = shutil.which("nologin") or "/usr/sbin/nologin"
    return [f"useradd --system --no-create-home --shell {shell} {name}" for name in wanted]
