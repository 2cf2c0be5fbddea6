"""The verbs of a GPU host: parse, call one function, print; `kernelci.cli` registers COMMANDS."""

from pathlib import Path

import click

from kernelci.config import RunnerOptions, load

FOLDER = click.Path(path_type=Path)
CREDENTIALS = click.option(
    "--credentials", type=FOLDER, default=Path("/etc/kernelci"), show_default=True,
    help="Folder with `token`, or the App's key `app.pem`.",
)  # fmt: skip


def _options(root: Path) -> RunnerOptions:
    return load(root).runner


@click.group()
def runner() -> None:
    """A GPU host that takes one job at a time from GitHub. It is clean before and after each.

    Its configuration is [runner] in the file kernelci.toml of the folder --root, which no job can write.
    """


@runner.command()
@click.option("--archive", type=FOLDER, help="GitHub's runner as a file; else it is fetched from its release.")
@click.option("--script", is_flag=True, help="Print the script that sets a whole machine up; do nothing.")
@click.pass_obj
def setup(root: Path, archive: Path | None, script: bool) -> int:
    """Install GitHub's runner in the configured version. Says what else is missing."""
    from kernelci import resources
    from kernelci.runner import installing, unit

    if script:
        click.echo((resources.folder("runner") / "setup.sh").read_text(encoding="utf-8"), nl=False)
        return 0

    options = _options(root)
    click.echo(f"GitHub's runner {options.version} lies in {installing.install(options, archive=archive)}")
    for line in installing.users_missing(options, unit.BROKER_USER):
        click.echo(f"next: {line}")
    click.echo("next: kernelci runner unit, then kernelci doctor --runner")
    return 0


@runner.command()
@click.option("--jobs", type=click.IntRange(min=1), help="Stop after so many; else never.")
@click.pass_obj
def run(root: Path, jobs: int | None) -> int:
    """Take jobs, one after the other. Ends the job and cleans up when it is told to stop."""
    from kernelci.runner import starting

    starting.run(_options(root), jobs)
    return 0


@runner.command()
@CREDENTIALS
@click.option("--api", default="https://api.github.com", envvar="GITHUB_API_URL", show_default=True)
@click.pass_obj
def broker(root: Path, credentials: Path, api: str) -> int:
    """Hold the token, and configure a runner for each job. Runs as a user of its own."""
    from kernelci.runner import starting

    starting.broker(_options(root), credentials, api)
    return 0


@runner.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def status(root: Path, as_json: bool) -> int:
    """Say where the host is, and why it takes no jobs. Exit codes: 0 it does, 3 no loop runs, 4 quarantine."""
    from kernelci.runner import status as telling

    found = telling.find(_options(root))
    click.echo(telling.as_json(found) if as_json else telling.text(found))
    return found.exit_code


@runner.command()
@click.pass_obj
def release(root: Path) -> int:
    """Take jobs again after a quarantine. Exit code 3 where there is none."""
    from kernelci.runner import starting

    click.echo(starting.release(_options(root)))
    return 0


@runner.command()
@click.option("--to", type=FOLDER, help="Write the units into this folder, for example /etc/systemd/system.")
@CREDENTIALS
@click.pass_obj
def unit(root: Path, to: Path | None, credentials: Path) -> int:
    """Print systemd's units for the loop and for the broker. Or write them, with --to."""
    from kernelci.runner import unit as units

    found = units.units(_options(root), root, credentials)
    if to is None:
        for name, text in found.items():
            click.echo(f"# {name}\n{text}")
        return 0
    for path in units.write(found, to):
        click.echo(f"wrote {path}")
    click.echo(f"next: systemctl daemon-reload && systemctl enable --now {' '.join(found)}")
    return 0


COMMANDS: tuple[click.Command, ...] = (runner,)
