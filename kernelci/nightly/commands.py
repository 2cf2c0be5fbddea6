"""The verbs of the night: parse, call one function, print; `kernelci.cli` registers COMMANDS."""

import datetime
import os
from pathlib import Path

import click

from kernelci.nightly import BRANCH

FOLDER = click.Path(path_type=Path)
HISTORY = click.option("--history", "url", default="", metavar="URL", help="The history's repository; else `origin`.")
BRANCH_OPTION = click.option("--branch", default=BRANCH, show_default=True, help="The history's branch.")


@click.command()
@click.argument("kernels", nargs=-1)
@HISTORY
@BRANCH_OPTION
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.option("--gpus", default="", metavar="N|all|0,1", help="Spread the kernels over GPUs.")
@click.option("--rungs", default="", help="Only these rungs, comma-separated, and those that they stand on.")
@click.option("--push/--no-push", default=True, help="Whether the night goes onto the branch, or stays in --out.")
@click.pass_obj
def nightly(
    root: Path, /, kernels: tuple[str, ...], url: str, branch: str, out: Path, push: bool, **options: str
) -> int:
    """Climb the whole ladder with trusted code, and append what was measured to the history."""
    from kernelci.nightly import night

    found = night.of(root, os.environ, url, branch, push)
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    code = night.climb(root, out, kernels, given)
    for path in night.append([out], found):
        click.echo(f"{'pushed' if push else 'kept'} {path}")
    return code


@click.group()
def history() -> None:
    """The nights so far: a branch of small files."""


@history.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@HISTORY
@BRANCH_OPTION
@click.pass_obj
def append(root: Path, folders: tuple[Path, ...], url: str, branch: str) -> int:
    """Append the nightly reports in FOLDERS; what is there already is left as it is."""
    from kernelci.nightly import night

    for path in night.append(folders, night.of(root, os.environ, url, branch)):
        click.echo(f"pushed {path}")
    return 0


@history.command()
@click.argument("folder", type=FOLDER)
@HISTORY
@BRANCH_OPTION
@click.pass_obj
def fetch(root: Path, folder: Path, url: str, branch: str) -> int:
    """Write the whole history into FOLDER, which must be empty."""
    from kernelci.errors import NothingToDo
    from kernelci.nightly import night

    found = night.of(root, os.environ, url, branch)
    if found.branch is None or not found.branch.write(folder):
        raise NothingToDo(f"there is no branch {branch} yet", hint="`kernelci nightly` begins it")
    return 0


@history.command()
@HISTORY
@BRANCH_OPTION
@click.option("--keep", type=click.IntRange(min=60), default=0, help="Days to keep; else 800.")
@click.pass_obj
def compact(root: Path, url: str, branch: str, keep: int) -> int:
    """Merge the nights of past months into one file each, and drop what is older than --keep days."""
    from kernelci.nightly import night
    from kernelci.nightly.compacting import KEEP_DAYS, compaction

    found = night.of(root, os.environ, url, branch)
    if found.branch is not None:
        today = datetime.datetime.now(datetime.UTC).date()
        click.echo(found.branch.change(compaction(today, keep or KEEP_DAYS)))
    return 0


COMMANDS: tuple[click.Command, ...] = (nightly, history)
