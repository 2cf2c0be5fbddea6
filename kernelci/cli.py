"""The command line: verbs only. Each parses, calls one function, prints, and gives the exit code."""

import contextlib
import json
from pathlib import Path
from typing import Any

import click

import kernelci
from kernelci.context import commands as context_commands
from kernelci.errors import unwritten
from kernelci.hub import commands as hub_commands
from kernelci.nightly import commands as nightly_commands
from kernelci.runner import commands as runner_commands

FOLDER = click.Path(path_type=Path)
TIER = click.option(
    "--tier",
    type=click.Choice(["pr", "full"]),
    default="pr",
    show_default=True,
    help="full: also what takes long, such as sizes at the limit, all sanitizers, and a thousand repeats.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(kernelci.__version__, prog_name="kernelci")
@click.option("--root", type=FOLDER, default=Path(), show_default=".", help="The project's root folder.")
@click.pass_context
def cli(context: click.Context, root: Path) -> None:
    """CI for GPU kernels: compile, check, time and explain every kernel, and trust none of them.

    Exit codes: 0 all passed, 1 a kernel failed, 2 configuration, 3 nothing to do, 4 the runner is broken, 70 a bug,
    130 interrupted.
    """
    context.obj = root


def _climbing(function: Any) -> Any:
    """The options that `run` and `compile` share."""
    for option in reversed(
        (
            click.argument("kernels", nargs=-1),
            click.option("--target", "targets", multiple=True, help="Only these targets, for example sm_90a."),
            click.option("--out", type=FOLDER, help="Folder for the report and its artifacts."),
            click.option("--json", "as_json", is_flag=True, help="Print results.json instead of the table."),
            click.option("--all-configs", is_flag=True, help="Compile every case and tuning configuration."),
            click.option("--jobs", type=int, help="Compile processes at once; 0: one per core."),
            click.pass_obj,
        )
    ):
        function = option(function)
    return function


@cli.command()
@_climbing
@click.option("--rungs", default="", help="Only these rungs, comma-separated, and those that they stand on.")
@click.option("--case", default="", help="Only the case of this name.")
@click.option("--draw", default="", help="Only this draw, for example outliers:0.")
@click.option("--seed", default="", help="The run's seed, to repeat an earlier run's draws.")
@TIER
@click.option("--base", default="", metavar="REF", help="Compare with the kernels of this commit, branch or tag.")
@click.option("--base-folder", type=FOLDER, help="Compare with the project in this folder.")
@click.option("--gpus", metavar="N|all|0,1", help="Spread the kernels over GPUs: how many, all, or which.")
@click.option("--profile", metavar="changed|all|none|NAME", help="Rows that Nsight Compute looks into.")
@click.option("--on", "host", default="", metavar="HOST", help="Run there, by ssh; the report comes back here.")
@click.option("--no-table", "quiet", is_flag=True, hidden=True)
def run(root: Path, rungs: str, host: str, **options: Any) -> int:
    """Climb the ladder with KERNELS, or with all.

    KERNELS are names (softmax/triton), wildcards, references or files.
    """
    if host:
        from kernelci.remote.here import run_on

        return run_on(root, host, rungs=rungs, **options)
    return _climb(root, tuple(part.strip() for part in rungs.split(",")) if rungs else (), **options)


@cli.command(name="compile")
@_climbing
def compile_(root: Path, **options: Any) -> int:
    """Compile KERNELS for their targets, without a GPU. Dumps IR, PTX, SASS and CUBIN."""
    return _climb(root, ("precheck", "compile", "dump"), **options)


def _climb(root: Path, rungs: tuple[str, ...], quiet: bool = False, **options: Any) -> int:
    from kernelci import results
    from kernelci.climbing import climb
    from kernelci.progress import Live, unread
    from kernelci.reporters import console

    as_json = options.pop("as_json")
    with contextlib.nullcontext() if as_json else Live() as live:
        report, out = climb(root, rungs, live, **options)
    with unread():
        if as_json:
            click.echo(results.encode(report), nl=False)
        elif not quiet:
            console.show(report, out)
    return report.exit_code


@cli.command(hidden=True)
def hosted() -> int:
    """The far side of `run --on`: reads a project from standard input, and writes its report to standard output."""
    import sys

    from kernelci.remote.there import serve

    return serve(sys.stdin.buffer, sys.stdout.buffer)


@cli.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.pass_obj
def list_(root: Path, as_json: bool) -> int:
    """List the kernels and what their cards say."""
    from kernelci import listing

    rows, code = listing.rows(root)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        click.echo(listing.table(rows))
    return code


@cli.command()
@click.argument("folder", type=FOLDER)
@click.option("--format", "format_", default="console", help="console, html, csv, … (an unknown one lists them).")
@click.option("--output", type=FOLDER, help="Write to this file instead of standard output.")
@click.pass_obj
def report(root: Path, folder: Path, format_: str, output: Path | None) -> int:
    """Render the report in FOLDER (or a results.json) again."""
    from kernelci import reporters, results
    from kernelci.reporters import console

    found = results.read(folder)
    if format_ == "console" and output is None:  # in the terminal's own width and colours
        console.show(found)
        return 0
    rendered = reporters.render(format_, found, root, files=folder if folder.is_dir() else folder.parent)
    if output is not None:
        try:
            output.write_bytes(rendered if isinstance(rendered, bytes) else rendered.encode())
        except OSError as error:
            raise unwritten(output, error, "name another with --output") from error
    else:
        click.echo(rendered, nl=isinstance(rendered, str) and not rendered.endswith("\n"))
    return 0


@cli.command()
@click.argument("base", type=FOLDER)
@click.argument("head", type=FOLDER)
@click.option(
    "--lines", type=click.IntRange(min=0), default=40, show_default=True, help="Of each SASS and PTX difference."
)
@click.option("--json", "as_json", is_flag=True, help="Print causes, figures and counts as JSON.")
def diff(base: Path, head: Path, lines: int, as_json: bool) -> int:
    """Compare the machine code in two folders, BASE and HEAD. They are reports, or dumps."""
    import msgspec

    from kernelci.dumps import telling

    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(telling.answer(base, head)), indent=1))
    else:
        click.echo(telling.folders(base, head, lines))
    return 0


@cli.command()
@click.argument("kernel")
@click.option("--target", default="", help="Compile for this target; else sm_90a, or the card's first.")
@click.pass_obj
def watch(root: Path, kernel: str, target: str) -> int:
    """Check KERNEL on each save. By precheck, compile and, for Triton, the interpreter."""
    from kernelci.watching import watch as start

    return start(root, kernel, target)


@cli.command()
@click.argument("name", metavar="REFERENCE/NAME")
@click.option("--backend", required=True, help="triton, tilelang, cutedsl or cuda.")
@click.pass_obj
def new(root: Path, name: str, backend: str) -> int:
    """Write a kernel that already passes precheck and compile."""
    from kernelci.starting import create

    for path in create(root, name, backend):
        click.echo(f"wrote {path}")
    click.echo(f"next: kernelci watch {name}")
    return 0


@cli.command(name="import")
@click.argument("script", type=FOLDER)
@click.option("--name", default="", help="Name of the reference; else the function's.")
@click.option("--entry", default="", help="The function that launches the kernel, where there are several.")
@click.option("--dry-run", is_flag=True, help="Show the files; write none.")
@click.pass_obj
def import_(root: Path, script: Path, name: str, entry: str, dry_run: bool) -> int:
    """Make a kernel and a reference of a SCRIPT with a torch check. The kernel gets a card; the reference is yours to
    complete."""
    from kernelci.importing import writing

    root = root.resolve()
    proposal = writing.propose(root, script, name, entry)
    if dry_run:
        for path, text in proposal.files.items():
            click.echo(f"--- {path}\n{text}")
    else:
        for path in writing.write(root, proposal):
            click.echo(f"wrote {path}")
    for line in proposal.left:
        click.echo(f"left: {line}")
    return 0


@cli.command()
@click.option("--runner", "as_runner", is_flag=True, help="As a host that takes jobs from GitHub.")
@click.pass_obj
def doctor(root: Path, as_runner: bool) -> int:
    """Say what this machine can and can't do, and why."""
    from kernelci.doctor import conclusion, examine, table

    if as_runner:
        from kernelci.runner.doctor import conclusion, examine
    checks = examine(root)
    click.echo(table(checks, conclusion))
    return 4 if any(check.essential and not check.passed for check in checks) else 0


@cli.command()
@click.option("--class", "classes", default="", help="Only these, for example A,B2,m05,honest.")
@click.option("--json", "as_json", is_flag=True, help="Print the score as JSON.")
@TIER
@click.option("--gpus", metavar="N|all|0,1", help="Spread the kernels over GPUs: how many, all, or which.")
@click.option("--out", type=FOLDER, help="Keep the results.json of all members here.")
def selftest(classes: str, as_json: bool, tier: str, gpus: str | None, out: Path | None) -> int:
    """Climb with kernels known to be bad or honest, and score it. Says which of them this installation judges rightly.

    After an interrupt the score of those that were judged by then is printed, and the exit code is 130.
    """
    import time

    from kernelci import score
    from kernelci import selftest as corpus

    began = time.monotonic()
    names = tuple(part.strip() for part in classes.split(",") if part.strip())
    found = corpus.run(
        names, tier, lambda line: click.echo(f"{time.monotonic() - began:5.0f} s  {line}", err=True), gpus, out
    )
    click.echo(score.as_json(found) if as_json else score.table(found))
    return found.exit_code


@cli.command()
@click.argument("kernel")
@click.option("--only", multiple=True, metavar="ID", help="Only this mutant, by id or number.")
@click.option("--limit", type=click.IntRange(min=0), default=0, help="At most so many, spread over all kinds; 0: all.")
@click.option("--seed", default="0", show_default=True, help="Chooses the mutants within the limit, and the draws.")
@click.option("--all-draws", is_flag=True, help="In the interpreter, try survivors under all draws, as a GPU does.")
@click.option("--budget", type=click.FloatRange(min=0), default=0.0, help="Begin no mutant after so many seconds.")
@click.option("--list", "only_list", is_flag=True, help="List the mutants; judge none.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_obj
def mutate(root: Path, /, kernel: str, only_list: bool, as_json: bool, budget: float, **options: Any) -> int:
    """Judge wrong variants of KERNEL. Those that survive show where the reference's cases are weak.

    After an interrupt what was judged by then is printed, and the exit code is 130.
    """
    from kernelci import mutating

    request = mutating.select(root, kernel, **options)
    if only_list:
        click.echo(mutating.listing(request))
        return 0
    click.echo(
        f"{len(request.mutants)} of {request.known} mutants; {request.kernel.name} itself climbs first", err=True
    )
    result = mutating.judge(root, request, budget, lambda line: click.echo(line, err=True))
    click.echo(mutating.rendered(result, as_json), nl=not as_json)
    return result.exit_code


@cli.command()
@click.argument("code", required=False)
def explain(code: str | None) -> int:
    """Explain a reason or an error by its CODE. Names the next step too; without CODE it lists them."""
    from kernelci import explaining

    click.echo(explaining.text(code))
    return 0


cli.add_command(context_commands.context)
cli.add_command(context_commands.mcp)
for command in (*hub_commands.COMMANDS, *nightly_commands.COMMANDS, *runner_commands.COMMANDS):
    cli.add_command(command)
