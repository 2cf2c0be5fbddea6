"""The near side of `run --on`: sends the project, shows progress, and lays the report where a run here leaves it."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from kernelci import basing, catalog, config, inert, results
from kernelci.basing import Base
from kernelci.config import Config
from kernelci.errors import ConfigError, RunnerBroken, unwritten
from kernelci.hub import limits, unpack
from kernelci.remote import packing, wire
from kernelci.remote.ssh import Link
from kernelci.remote.wire import Answer, Options, Request

STOP_S = 40.0  # how long a stopped run may take to end there


def run_on(
    root: Path,
    host: str,
    *,
    base: str = "",
    base_folder: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
    quiet: bool = False,
    **flags: Any,
) -> int:
    """Run on a host; the exit code of that run. The report folder lies here then. Raises KernelciError."""
    root = root.resolve()
    options = config.load(root, flags={"gpus": flags.get("gpus"), "profile": flags.get("profile")})
    found = catalog.scan(root, options)
    found.select(flags.get("kernels", ()))  # a wrong name is said at once
    asked = Options(**flags | {"kernels": tuple(_inside(root, name) for name in flags.get("kernels", ()))})
    folder = out if out is not None else root / options.out
    results.check_writable(folder)  # before anything is asked of another machine
    with tempfile.TemporaryFile() as archive:
        _pack(archive, root, options, base, base_folder)
        size = archive.seek(0, os.SEEK_END)
        archive.seek(0)
        request = Request(options=asked, size=size, environ=_environ(), has_base=bool(base or base_folder))
        answer, came = _there(host, options, request, archive, folder)
    if came:
        _show(folder, as_json)
    return answer.code


def _inside(root: Path, name: str) -> str:
    """A file's name as it is below the root."""
    return str(Path(name).relative_to(root)) if Path(name).is_absolute() and Path(name).is_relative_to(root) else name


def _environ() -> dict[str, str]:
    """Options that were set by variables: they hold for the run wherever it is."""
    known = {f"KERNELCI_{name.upper()}" for name in config.names()}
    return {name: value for name, value in os.environ.items() if name in known}


def _pack(archive: IO[bytes], root: Path, options: Config, base: str, base_folder: Path | None) -> None:
    with _side(root, options, base, base_folder) as side:
        trees = [("project", root, packing.project_files(root, options))]
        if side is not None:
            trees.append(("base", side.root, packing.project_files(side.root, side.options)))
        for _, folder, files in trees:
            packing.checked(files, folder, wire.PROJECT)
        packing.pack(archive, trees)


@contextlib.contextmanager
def _side(root: Path, options: Config, ref: str, folder: Path | None) -> Iterator[Base | None]:
    """The base, with a label in its folder where it comes from a commit: the other machine has no repository."""
    if ref and folder is None:
        with basing.opened(root, options, ref) as side:
            basing.labelled(side)
            yield side
    else:
        yield basing.in_folder(folder) if folder is not None else None


def _there(host: str, options: Config, request: Request, archive: IO[bytes], folder: Path) -> tuple[Answer, bool]:
    """Ask, wait, and fetch: the answer, and whether a report came. Raises KernelciError, and KeyboardInterrupt once a
    stopped run has ended."""
    with Link(host, options) as link:
        link.greet()
        interrupted = False
        try:
            _send(link, request, archive)
            link.keep_alive()
            line = link.answers.readline(wire.LINE_BYTES)
        except KeyboardInterrupt:
            interrupted = True
            print(f"stopping the run on {host} …", file=sys.stderr)
            link.hang_up()
            link.end_within(STOP_S)
            line = link.answers.readline(wire.LINE_BYTES)
        if not line.endswith(b"\n"):
            raise RunnerBroken(
                f"the connection to {host} ended before the report was here",
                hint="it ends the run there",
                code="remote",
            )
        answer = wire.decoded(line, Answer)
        came = _fetch(host, link.answers, answer, folder)
    if interrupted:
        raise KeyboardInterrupt
    return answer, came


def _send(link: Link, request: Request, archive: IO[bytes]) -> None:
    """The request and the project; where the other side stops reading, its answer says why."""
    if not link.send(wire.encoded(request)):
        return
    while chunk := archive.read(2**16):
        if not link.send(chunk):
            return


def _fetch(host: str, source: IO[bytes], answer: Answer, folder: Path) -> bool:
    """The report folder's content into its place, if there is a report. Raises KernelciError, also the other side's."""
    if answer.message:
        kind = ConfigError if answer.code == ConfigError.exit_code else RunnerBroken
        code = answer.error if answer.error in ("no-space", "artifact", "remote") else "remote"
        raise kind(f"{host}: {inert.line(answer.message)}", hint=inert.line(answer.hint), code=code)
    try:
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as partial:
            arrived = Path(partial) / "arrived.zip"
            with arrived.open("wb") as file:
                if answer.size > limits.DUMPS.archive_bytes or wire.copy(source, file, answer.size) < answer.size:
                    raise RunnerBroken(f"the report of {host} did not come whole", code="remote")
            unpack.everything(arrived, Path(partial) / "report", limits.DUMPS)
            if came := (Path(partial) / "report" / results.FILE_NAME).is_file():
                packing.replace(Path(partial) / "report", folder)
    except OSError as error:
        raise unwritten(folder, error) from error
    if answer.left_out:
        print(f"{answer.left_out:,} of the largest files stayed behind", file=sys.stderr)
    return came


def _show(folder: Path, as_json: bool) -> None:
    from kernelci.reporters import console

    report = results.read(folder)
    if as_json:
        sys.stdout.write((folder / results.FILE_NAME).read_text(encoding="utf-8"))
    else:
        console.show(report, folder)
