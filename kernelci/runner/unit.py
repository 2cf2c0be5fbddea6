"""systemd's units for the host and its broker, from templates that the wheel carries."""

import shlex
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.resources import folder

BROKER_USER = "kernelci-broker"
HOST, BROKER = "kernelci-runner.service", "kernelci-broker.service"
CREDENTIALS = ("token", "app.pem")


def units(options: RunnerOptions, root: Path, credentials: Path) -> dict[str, str]:
    """Each unit's text by its file name. `root`: the folder of the configuration; `credentials`: that of the token."""
    given = [name for name in CREDENTIALS if (credentials / name).is_file()] or [CREDENTIALS[0]]
    facts = {
        "command": shlex.join([sys.executable, "-P", "-m", "kernelci", "--root", str(root.absolute()), "runner"]),
        "options": options,
        "credentials": [(name, credentials.absolute() / name) for name in given],
        "broker_user": BROKER_USER,
        "broker_folder": Path(options.broker).parent.name,
    }
    if Path(options.broker).parent.parent != Path("/run"):
        raise ConfigError(f"broker = {options.broker!r}: systemd makes its folder in /run", hint="/run/NAME/socket")
    made = Environment(loader=FileSystemLoader(folder("runner")), undefined=StrictUndefined, keep_trailing_newline=True)
    return {name: made.get_template(f"{name}.j2").render(facts) for name in (BROKER, HOST)}


def write(found: dict[str, str], to: Path) -> list[Path]:
    """Write the units. Raises RunnerBroken."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (to / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunnerBroken(f"{to} can't be written: {error}", hint="as root, or name another with --to") from error
    return [to / name for name in found]
