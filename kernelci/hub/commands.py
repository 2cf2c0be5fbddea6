"""The verbs that have to do with repositories, pull requests and GitHub; `kernelci.cli` registers COMMANDS."""

import json
from pathlib import Path
from typing import Any

import click

FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--base", required=True, help="The commit whose references, rungs and configuration judge.")
@click.option("--head", default="HEAD", show_default=True, help="The commit whose kernels are judged.")
@click.option("--mode", type=click.Choice(["run", "compile"]), default="run", show_default=True)
@click.option("--only", multiple=True, metavar="KERNEL", help="Only this one of the kernels that the change touches.")
@click.option("--seed", default="", help="The run's seed in hexadecimal.")
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.pass_obj
def judge(root: Path, /, **options: Any) -> int:
    """Climb with the kernels that a change touches, by the base's judge: nothing else of the head is run."""
    from kernelci.hub.climbing import Request, climb_change

    return climb_change(Request(project=root, **options)).exit_code


@click.command()
@click.option("--shards", type=int, default=1, show_default=True, help="At most so many shards.")
@click.option("--base", default="", help="Only kernels that the change from this commit touches.")
@click.option("--head", default="HEAD", show_default=True)
@click.option("--history", type=FOLDER, help="An earlier results.json, or its folder: balance by its durations.")
@click.option("--seed", default="", help="The seed that all shards draw with; else a fresh one.")
@click.pass_obj
def plan(root: Path, shards: int, base: str, head: str, history: Path | None, seed: str) -> int:
    """Print a workflow's matrix as JSON: which shard climbs with which kernels."""
    from kernelci import results
    from kernelci.hub import plan as planning

    earlier = results.read(history) if history is not None else None
    click.echo(json.dumps(planning.matrix(planning.kernels_of(root, base, head), shards, earlier, seed)))
    return 0


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="Folder for the merged report.")
@click.option("--expect", type=int, default=0, help="Fail unless so many shards left a report.")
@click.option("--incomplete", default="", help="What the run did not do: a report with this is never green.")
def merge(folders: tuple[Path, ...], out: Path, expect: int, incomplete: str) -> int:
    """Merge the reports of shards into one; mixtures of seeds or environments are refused."""
    from kernelci.hub.merge import merge as merge_

    return merge_(folders, out, expect, incomplete).exit_code


@click.command()
@click.pass_obj
def init(root: Path) -> int:
    """Write workflows, configuration, a reference and a kernel into the repository at --root."""
    from kernelci.hub.init import create

    for path in create(root):
        click.echo(f"wrote {path}")
    click.echo("next: kernelci audit, then commit")
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.pass_obj
def audit(root: Path, as_json: bool) -> int:
    """Check the repository's workflows against the rules that keep untrusted kernels away from tokens."""
    from kernelci.hub import audit as auditing

    found = auditing.examine(root)
    click.echo(auditing.as_json(found) if as_json else auditing.table(found))
    return auditing.exit_code(found)


@click.command()
@click.option("--base", required=True, help="The branch or commit that the pull request wants to change.")
@click.option("--head", default="HEAD", show_default=True, help="The pull request's own branch or commit.")
@click.option("--mode", type=click.Choice(["run", "compile"]), default="run", show_default=True)
@click.option("--out", type=FOLDER, default=Path("kernelci-report"), show_default=True)
@click.pass_obj
def rehearse(root: Path, base: str, head: str, mode: Any, out: Path) -> int:
    """Play a pull request through both workflows on this machine, and print the comment that it would get."""
    from kernelci.hub.rehearse import rehearse as play

    comment, code = play(root, base, head, mode, out)
    click.echo(comment, nl=False)
    return code


COMMANDS: tuple[click.Command, ...] = (judge, plan, merge, init, audit, rehearse)
