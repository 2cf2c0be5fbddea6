"""The verbs of the night: parse, call one function, print; `kernelci.cli` registers COMMANDS."""

import datetime
import os
from pathlib import Path
from typing import Any

import click

from kernelci.nightly import BRANCH

FOLDER = click.Path(path_type=Path)
HISTORY = click.option(
    "--history",
    "url",
    default="",
    envvar="KERNELCI_HISTORY",
    metavar="URL",
    help="The history's repository; else KERNELCI_HISTORY, else `origin`.",
)
BRANCH_OPTION = click.option("--branch", default=BRANCH, show_default=True, help="The history's branch.")


@click.command()
@click.argument("kernels", nargs=-1)
@HISTORY
@BRANCH_OPTION
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.option("--gpus", default="", metavar="N|all|0,1", help="Spread the kernels over GPUs.")
@click.option("--rungs", default="", help="Only these rungs, comma-separated, and those that they stand on.")
@click.option("--before", type=FOLDER, help="The history so far: what seems to have changed is measured again.")
@click.option("--push/--no-push", default=True, help="Whether the night goes onto the branch, or stays in --out.")
@click.pass_obj
def nightly(
    root: Path,
    /,
    kernels: tuple[str, ...],
    url: str,
    branch: str,
    out: Path,
    before: Path | None,
    push: bool,
    **options: str,
) -> int:
    """Climb the whole ladder, and append it to the history. Only with code that is trusted."""
    from kernelci import results
    from kernelci.nightly import night, telling
    from kernelci.nightly.detect import BUDGET

    found = night.of(root, os.environ, url, branch, push)
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    code = night.climb(root, out, kernels, given)
    if before is not None:
        click.echo(telling.answers(night.remeasure(root, before, out, found, BUDGET)), nl=False)
    for path in night.append([out], found):
        click.echo(f"{'pushed' if push else 'kept'} {path}")
    click.echo(telling.untimed(results.read(out)), nl=False)
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
    """Append the nightly reports in FOLDERS. What is there already is left as it is."""
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
@click.option("--keep", type=click.IntRange(min=60), help="Days to keep; else 800.")
@click.pass_obj
def compact(root: Path, url: str, branch: str, keep: int | None) -> int:
    """Merge the nights of each past month into one file. Drops what is older than --keep days."""
    from kernelci.nightly import night
    from kernelci.nightly.compacting import KEEP_DAYS, compaction

    found = night.of(root, os.environ, url, branch)
    if found.branch is not None:
        today = datetime.datetime.now(datetime.UTC).date()
        click.echo(found.branch.change(compaction(today, keep or KEEP_DAYS)))
    return 0


@history.command()
@click.argument("folder", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def suspects(folder: Path, as_json: bool) -> int:
    """List what seems to have changed in the history in FOLDER. Also what the machine itself explains."""
    import msgspec

    from kernelci.nightly import detect, telling
    from kernelci.nightly.series import events, load

    found = detect.tonight(load(folder), events(folder))
    click.echo(msgspec.json.encode(found) if as_json else telling.tonight(found), nl=as_json)
    return 0


@history.command()
@click.argument("folder", type=FOLDER)
@click.option("--gpu", required=True, help="Only what was measured on this model, which this machine has.")
@click.option("--budget", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@HISTORY
@BRANCH_OPTION
@click.pass_obj
def remeasure(root: Path, folder: Path, gpu: str, budget: int, url: str, branch: str) -> int:
    """Measure again what seems to have changed. The last good commit against tonight's, in pairs, on this GPU."""
    from kernelci import history as papers
    from kernelci.nightly import detect, night, telling
    from kernelci.nightly.remeasure import events as decided
    from kernelci.nightly.remeasure import measurer
    from kernelci.nightly.series import events, load

    found = detect.tonight([each for each in load(folder) if each.gpu == gpu], events(folder), budget)
    answers = decided(found.suspects, measurer(root))
    where = night.of(root, os.environ, url, branch).branch
    if answers and where is not None:
        where.add(dict([papers.event_file(answers)]), f"{len(answers)} suspicions decided")
    click.echo(telling.answers(answers), nl=False)
    return 0


@history.command()
@click.argument("kernel")
@click.option("--case", required=True, help="A case of the change.")
@click.option("--gpu", required=True, help="The GPU model that it was seen on.")
@click.option("--since", required=True, type=click.DateTime(["%Y-%m-%d"]), help="When it began, as the issue says.")
@click.option("--as", "kind", required=True, type=click.Choice(["acknowledged", "environment", "false"]))
@click.option("--reason", required=True, help="Why; the issue shows it.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="The last day on which it is acknowledged.")
@HISTORY
@BRANCH_OPTION
@click.pass_obj
def mark(
    root: Path,
    /,
    kernel: str,
    case: str,
    gpu: str,
    since: datetime.datetime,
    kind: Any,
    reason: str,
    until: datetime.datetime | None,
    url: str,
    branch: str,
) -> int:
    """Say what a change of KERNEL was. One that somebody answers for, the machine's doing, or none."""
    from kernelci import history as papers
    from kernelci.nightly import night
    from kernelci.nightly.marking import marking

    today = datetime.datetime.now(datetime.UTC).date()
    last = until.date() if until else None
    event = papers.Event(today, kind, kernel, case, gpu, since.date(), text=reason[:1000], until=last)
    where = night.of(root, os.environ, url, branch).branch
    if where is not None:
        where.change(marking(event, today))
        click.echo(f"marked {kind}: the next night's issues and pages say so")
    return 0


@history.command()
@click.argument("folder", type=FOLDER)
@click.option("--repository", required=True, metavar="OWNER/NAME", help="Where the issues are; needs GITHUB_TOKEN.")
@click.option("--login", default="", help="Whose issues are ours; else the token's user, or the Actions bot.")
def alert(folder: Path, repository: str, login: str) -> int:
    """Bring the repository's issues in step with the history. FOLDER holds it; each change has one issue."""
    from kernelci.hub.client import connect
    from kernelci.nightly import alert as alerting
    from kernelci.nightly.changes import changes
    from kernelci.nightly.series import events, load

    today = datetime.datetime.now(datetime.UTC).date()
    done = alerting.sync(connect(repository), changes(load(folder), events(folder), today), login)
    click.echo(alerting.text(done, today), nl=False)
    return 0


@click.command()
@click.argument("kernel")
@click.option("--case", required=True, help="The case that became slower.")
@click.option("--good", required=True, metavar="REF", help="A commit where it was not.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REF", help="A commit where it is.")
@click.option("--gpu", default="", help="Remember the commit in the history as that of the change on this GPU model.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="With --gpu: when the change began.")
@HISTORY
@BRANCH_OPTION
@click.option("--list", "only_list", is_flag=True, help="List the commits that could have done it; measure none.")
@click.pass_obj
def bisect(
    root: Path,
    /,
    kernel: str,
    case: str,
    good: str,
    bad: str,
    gpu: str,
    since: datetime.datetime | None,
    url: str,
    branch: str,
    only_list: bool,
) -> int:
    """Find the commit that made KERNEL slower. Measures each candidate against the good one on this GPU.

    Exit codes: 0 found, 1 several commits are left, or it stays open, 3 it is not slower, or no commit touches it.
    """
    from kernelci import catalog, config
    from kernelci.nightly import bisect as searching
    from kernelci.nightly import night, telling
    from kernelci.nightly.remeasure import measurer

    catalog.scan(root, config.load(root)).select((kernel,))  # a name that no kernel has is said at once
    commits = searching.candidates(root, kernel, good, bad)
    if only_list:
        click.echo("".join(f"{commit}\n" for commit in commits), nl=False)
        return 0
    measure = measurer(root)
    found = searching.search(commits, lambda commit: measure(kernel, case, good, commit))
    if len(found.commits) == 1 and gpu and since:
        today = datetime.datetime.now(datetime.UTC).date()
        where = night.of(root, os.environ, url, branch).branch
        searching.remember(where, found, (kernel, case, gpu), since.date(), today)
    click.echo(telling.bisected(found), nl=False)
    return 1 if found.is_open else {0: 3, 1: 0}.get(len(found.commits), 1)


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--out", type=FOLDER, default=Path("kernelci-site"), show_default=True)
@click.option("--repository", default="", metavar="OWNER/NAME", help="For links to commits.")
@click.pass_obj
def dashboard(root: Path, folder: Path, out: Path, repository: str) -> int:
    """Write static pages that show the history in FOLDER. Every kernel on every GPU, night by night."""
    from kernelci.nightly import dashboard as building

    written = building.build(folder, out, repository, root)
    click.echo(f"wrote {written[0]} and {len(written) - 1} more pages")
    return 0


COMMANDS: tuple[click.Command, ...] = (nightly, history, bisect, dashboard)
