"""Starts the processes of a host, with this machine's own GPUs, users and sockets."""

import os
import signal
import sys
from pathlib import Path

from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, NothingToDo, RunnerBroken
from kernelci.runner import probe, users
from kernelci.runner.broker import Broker
from kernelci.runner.health import Nvidia
from kernelci.runner.host import Host
from kernelci.runner.status import records


def run(options: RunnerOptions, jobs: int | None) -> None:
    """The loop, until a signal ends it, or for so many jobs. Raises ConfigError, RunnerBroken."""
    user = users.find(options.user)
    command = [sys.executable, "-P", "-m", probe.MODULE]
    if user.apart:
        who = [f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "--no-new-privs"]
        command = ["setpriv", *who, *command]
    host = Host(options, Nvidia(), (lambda count: probe.run(command, count)) if options.probe else None)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: host.stop())
    host.run(jobs)


def broker(options: RunnerOptions, credentials: Path, api: str) -> None:
    """The broker, until it is ended. Raises ConfigError, TokenError, RunnerBroken."""
    from kernelci.runner.registrar import Registrar, from_credentials

    serves = users.number(options.host_user)
    if os.geteuid() == serves:
        raise ConfigError(f"the broker runs as {options.host_user}, whom it serves", hint="run it as a user of its own")
    registrar = Registrar(options.repository, options.group, from_credentials(credentials, options, api), api)
    try:
        serving = Broker(registrar, Path(options.broker), serves)
    except OSError as error:
        raise RunnerBroken(
            f"{options.broker}: {error}", hint="its folder is made by the unit", code="broker"
        ) from error
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serving.serve()


def release(options: RunnerOptions) -> str:
    """End the quarantine. Raises NothingToDo where there is none."""
    found = records(options).quarantined()
    if found is None:
        raise NothingToDo("there is no quarantine")
    try:
        records(options).release()
    except OSError as error:
        raise ConfigError(f"not released: {error}", hint="as the user of the loop") from error
    return f"released; it was: {found.reason}"
