"""The verbs that have to do with repositories, pull requests and GitHub; `kernelci.cli` registers COMMANDS."""

import json
from pathlib import Path
from typing import Any

import click

from kernelci.errors import HubError

FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--base", required=True, help="The commit whose references, rungs and configuration judge.")
@click.option("--head", default="HEAD", show_default=True, help="The commit whose kernels are judged.")
@click.option("--mode", type=click.Choice(["run", "compile"]), default="run", show_default=True)
@click.option("--only", multiple=True, metavar="KERNEL", help="Only this one of the kernels that the change touches.")
@click.option("--seed", default="", help="The run's seed; else a fresh one.")
@click.option("--second", is_flag=True, help="Hear the head's own judge too, in a sandbox: it proves nothing.")
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.pass_obj
def judge(root: Path, /, **options: Any) -> int:
    """Climb with the kernels that a change touches. The base judges, and nothing else of the head is run."""
    from kernelci.hub.climbing import climb_change
    from kernelci.hub.request import Request

    return climb_change(Request(project=root, **options)).exit_code


@click.command()
@click.option("--shards", type=int, default=1, show_default=True, help="At most so many shards.")
@click.option("--base", default="", help="Only kernels that the change from this commit touches.")
@click.option("--head", default="HEAD", show_default=True)
@click.option("--history", type=FOLDER, help="An earlier results.json, or its folder: balance by its durations.")
@click.option("--earlier", default="", metavar="OWNER/REPO#NUMBER", help="The same, by a pull request's newest report.")
@click.option("--seed", default="", help="The seed that all shards draw with; else a fresh one.")
@click.pass_obj
def plan(root: Path, shards: int, base: str, head: str, history: Path | None, earlier: str, seed: str) -> int:
    """Print a workflow's matrix as JSON. It says which shard climbs with which kernels."""
    from kernelci import results
    from kernelci.hub import plan as planning

    known = results.read(history) if history is not None else None
    if earlier and known is None:
        from kernelci.hub import earlier as earlier_runs
        from kernelci.hub import feedback as remote

        try:
            known = earlier_runs.report(*remote.place(earlier))
        except HubError as error:  # a plan that is not balanced is better than none
            click.echo(f"not balanced: {error.message}", err=True)
    click.echo(json.dumps(planning.matrix(planning.kernels_of(root, base, head), shards, known, seed)))
    return 0


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="Folder for the merged report.")
@click.option("--expect", type=int, default=0, help="Fail unless so many shards left a report.")
@click.option("--incomplete", default="", help="What the run did not do: a report with this is never green.")
def merge(folders: tuple[Path, ...], out: Path, expect: int, incomplete: str) -> int:
    """Merge the reports of shards into one. Mixtures of seeds or environments are refused."""
    from kernelci.hub.merge import merge as merge_

    return merge_(folders, out, expect, incomplete).exit_code


@click.command()
@click.option("--source", default="", metavar="OWNER/NAME@COMMIT", help="Where kernelci comes from; else as installed.")
@click.pass_obj
def init(root: Path, source: str) -> int:
    """Write workflows, configuration, a reference and a kernel. They go into the repository at --root."""
    from kernelci.hub.init import create

    for path in create(root, source):
        click.echo(f"wrote {path}")
    click.echo("next: kernelci audit, then commit")
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--repository", default="", metavar="OWNER/NAME", help="Its settings too; needs GITHUB_TOKEN.")
@click.pass_obj
def audit(root: Path, as_json: bool, repository: str) -> int:
    """Check that no workflow lets a kernel reach a token. Holds the repository's workflows against our rules."""
    from kernelci.hub import audit as auditing
    from kernelci.hub import workflow

    found = auditing.examine(root)
    if not workflow.paths(root):
        click.echo("no workflow in .github/workflows: `kernelci init` writes them", err=True)
    if repository:
        from kernelci.hub import settings
        from kernelci.hub.client import connect

        found = settings.examine(connect(repository)) + found
    click.echo(auditing.as_json(found) if as_json else auditing.table(found))
    return auditing.exit_code(found)


@click.command()
@click.option("--base", required=True, help="The branch or commit that the pull request wants to change.")
@click.option("--head", default="HEAD", show_default=True, help="The pull request's own branch or commit.")
@click.option("--mode", type=click.Choice(["run", "compile"]), default="run", show_default=True)
@click.option(
    "--second", is_flag=True, help="As after an owner's label: hear the change's own judge too, in a sandbox."
)
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.pass_obj
def rehearse(root: Path, base: str, head: str, mode: Any, out: Path, second: bool) -> int:
    """Play a pull request here, and print its comment. It goes through both workflows, on this machine."""
    from kernelci.hub.rehearse import rehearse as play

    comment, code = play(root, base, head, mode, out, second)
    click.echo(f"report: {out}", err=True)  # the climb's own folder, which it named, is gone
    click.echo(comment, nl=False)
    return code


@click.command()
@click.option("--project", default="", metavar="PATH", help="The project's folder within the repository.")
@click.option("--login", default="", help="Whose comments are ours; else the token's user, or the Actions bot.")
@click.pass_obj
def publish(root: Path, project: str, login: str) -> int:
    """Post a finished run's report on its pull request. One comment, one check, one status; on `workflow_run`.

    Takes GITHUB_EVENT_PATH, GITHUB_TOKEN and GITHUB_API_URL. The exit code says whether it was posted: 0 posted
    (whatever the verdict), 2 event, token or artifact can't be used, 3 superseded, 4 GitHub or the run failed.
    """
    from kernelci.hub.publish import publish as post

    click.echo(post(root, f"{project.strip('/')}/" if project.strip("/") else "", login).text)
    return 0


@click.command()
@click.argument("place", metavar="OWNER/REPO#NUMBER")
@click.option("--wait", is_flag=True, help="Wait until there is a report, at most an hour.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `report --format feedback` gives locally.")
@click.option("--artifacts", type=FOLDER, help="Unpack dumps, profiles and traces of the run below this folder.")
def feedback(place: str, wait: bool, as_json: bool, artifacts: Path | None) -> int:
    """Say what the newest head of a pull request got. Also what may be done next. Needs GITHUB_TOKEN or GH_TOKEN."""
    from kernelci import feedback as records
    from kernelci.hub import feedback as remote
    from kernelci.hub.client import connect

    repository, number = remote.place(place)
    found = remote.fetch(connect(repository), number, wait, artifacts)
    click.echo(records.encode(found) if as_json else remote.text(found), nl=not as_json)
    return remote.exit_code(found)


@click.command()
@click.option("--login", default="", help="Whose comments are ours; else the token's user, or the Actions bot.")
def answer(login: str) -> int:
    """Carry out and answer a `/kernelci …` comment. On `workflow_dispatch`: tell what a profile that was asked for
    came to. Checks nothing out."""
    import os

    from kernelci.hub import event, profiled, slash

    found = profiled.tell if profiled.is_one(event.load(os.environ)) else slash.answer
    click.echo(found(os.environ, login))
    return 0


@click.command()
@click.argument("place", metavar="OWNER/REPO#NUMBER")
@click.option("--base", default="", metavar="COMMIT", help="Read the configuration from this commit at --root.")
@click.pass_obj
def budget(root: Path, place: str, base: str) -> int:
    """Say what a pull request has left of its GPU time. By the base's configuration. Exit code 3: nothing is left."""
    from kernelci import budget as budgets
    from kernelci.hub import feedback as remote
    from kernelci.hub import spending

    repository, number = remote.place(place)
    left = spending.asked(root, repository, number, base)
    click.echo(f"{budgets.sentence(left)}{f': {spending.MORE}' if budgets.is_spent(left) else ''}")
    return 3 if budgets.is_spent(left) else 0


COMMANDS: tuple[click.Command, ...] = (judge, plan, merge, init, audit, rehearse, publish, feedback, budget, answer)
