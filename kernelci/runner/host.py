"""The loop of a GPU host: is it well, register one runner, let it take one job, clean up, look again; and so on.

A host that fails several times in a row, or whose GPU is sick, stands still until somebody releases it. GitHub being
away is nobody's failure: the host waits.
"""

import fcntl
import os
import re
import secrets
import shutil
import socket
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from kernelci import inert
from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.runner import broker, hardware, health, users
from kernelci.runner.admission import Door
from kernelci.runner.broker import Answer, GitHubAway, Question
from kernelci.runner.caches import Caches
from kernelci.runner.health import Fault, Machine, Seen
from kernelci.runner.keep import Keep
from kernelci.runner.life import Life, Lived, Parts
from kernelci.runner.policy import Claim
from kernelci.runner.records import Job, Now, Phase, Quarantine, Records, stamp
from kernelci.runner.say import say
from kernelci.runner.workplace import free_bytes, remove, strays

LONGEST_WAIT_S = 900.0
RELEASE_S = 2.0
SETTLE_S = 0.5
Ask = Callable[[Path, Question], Answer]
Probe = Callable[[int], tuple[list[Fault], str]]


class Host:
    """Takes jobs one after the other. `probe` computes on so many GPUs; None where nothing is computed."""

    def __init__(
        self, options: RunnerOptions, machine: Machine, probe: Probe | None = None, ask: Ask = broker.ask
    ) -> None:
        if not options.workflows or not (options.repositories or "/" in options.repository):
            hint = "set `repository` (or `repositories`) and `workflows` in [tool.kernelci.runner]"
            raise ConfigError("no job would be admitted: no repository or no workflow is named", hint=hint)
        self.options, self._machine, self._probe, self._ask = options, machine, probe, ask
        self._state = Path(options.state).absolute()
        self._state.mkdir(parents=True, exist_ok=True)
        self._state.chmod(0o711)
        self.records = Records(self._records_folder())
        self._stop = threading.Event()
        self._lock = self._locked()
        group = f"kernelci-job-{zlib.crc32(str(self._state).encode()):08x}"
        seen = (self._state, Path(options.installation).absolute())
        self._keep = Keep(users.find(options.user), seen, group)
        self._caches = Caches(self._state, self._keep.user, options.pull_caches)
        self._door = Door(self._state)
        self._now = Now("checking", stamp(), threading.get_native_id(), weaknesses=self._keep.weaknesses)
        self._failures: list[str] = []
        self._waits = 0
        self._first = Seen()
        self._parts = Parts(
            options, self._keep, self._door, self._caches, self._quick, self._entered, self._stop.is_set
        )

    def _records_folder(self) -> Path:
        folder = self._state / "records"
        folder.mkdir(exist_ok=True)
        return folder

    def _locked(self) -> IO[bytes]:
        """Hold the state's folder until this process ends. Raises ConfigError where another one does."""
        lock = (self._state / "lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"another loop uses {self._state}", hint="kernelci runner status") from None
        return lock

    def stop(self) -> None:
        """End the job that runs, clean up, and return from `run`."""
        self._stop.set()

    def run(self, jobs: int | None = None) -> None:
        """Take jobs for ever, or so many runners' lives. Raises RunnerBroken in quarantine, where `jobs` is given."""
        os.umask(0o022)
        try:
            self._tidy()
            self._keep.again()
            self._look_afresh()
            while not self._stop.is_set() and jobs != 0:
                if self._released(jobs is None) and self._once() and jobs is not None:
                    jobs -= 1
        finally:
            self._door.close()
            self._tidy()
            self._enter("stopped")

    def _released(self, patient: bool) -> bool:
        """Whether there is no quarantine. Waits for its end, unless somebody waits for us."""
        found = self.records.quarantined()
        if found is None:
            return True
        if not patient:
            raise RunnerBroken(f"in quarantine: {found.reason}", hint="kernelci runner release", code="quarantine")
        if self._now.phase != "quarantine":
            self._enter("quarantine", text=found.reason)
        if not self._stop.wait(RELEASE_S) and self.records.quarantined() is None:
            say("released from quarantine")
            self._failures.clear()
            self._look_afresh()
        return False

    def _look_afresh(self) -> None:
        """What the machine is now: everything after this is held against it."""
        self._first = self._machine.look(fresh=True)
        labels = hardware.labels(self._first.hardware, self.options.labels)
        weak = (*self._keep.weaknesses, *health.remarks(self._first))
        self._now = msgspec.structs.replace(self._now, labels=labels, weaknesses=weak)

    def _once(self) -> bool:
        """One runner's life, or a failure; whether a runner lived."""
        self._enter("checking")
        if faults := self._thorough():
            self._failed(faults)
            return False
        name = f"{broker.PREFIX}{_hostname()}-{secrets.token_hex(4)}"
        try:
            answer = self._ask(Path(self.options.broker), Question(name, self._now.labels))
            if faults := health.skew(self.options, answer.github_time_s, time.time()):
                self._failed(faults)
                return False
            self._live(name, answer.config)
        except GitHubAway as away:
            self._enter("waiting for GitHub", text=str(away))
            say(f"GitHub is away: {away}")
            self._wait()
            return False
        except RunnerBroken as error:
            self._failed([Fault(f"{error.message}{f' ({error.hint})' if error.hint else ''}")])
            return False
        return True

    def _live(self, name: str, config: str) -> None:
        began = stamp()
        self._enter("waiting for a job", job=name)
        lived = Life(self._parts, name).live(config)
        self._enter("cleaning", job=name)
        faults = [*lived.faults, *self._settled()]
        self.records.add(_job(name, began, lived, faults))
        said = inert.line(lived.claim.text if lived.claim else lived.why, 300)
        left = f"; ended {lived.leftovers} processes that it left" if lived.leftovers else ""
        say(f"{name}: {lived.how}{left}: {said}")
        if self._stop.is_set():
            return
        if faults or _is_failure(lived):
            self._failed(faults or [Fault(f"GitHub's runner: {lived.how}: {lived.why}")])
        elif lived.how != "refused":
            self._failures.clear()
            self._waits = 0

    def _failed(self, faults: list[Fault]) -> None:
        """Count a failure of the host: wait, or stand still."""
        text = inert.line(health.text(faults), 500)
        self._failures.append(text)
        severe = any(fault.severe for fault in faults)
        count = len(self._failures)
        if severe or count >= self.options.failures:
            reason = text if severe else f"{count} failures in a row, the last: {text}"
            self.records.quarantine(Quarantine(stamp(), reason, tuple(self._failures[-10:])))
            say(f"quarantine: {reason}")
            self._failures.clear()
            return
        say(f"failure {count} of {self.options.failures}: {text}")
        self._enter("checking", text=text)
        self._wait()

    def _wait(self) -> None:
        self._waits = min(self._waits + 1, 10)
        self._stop.wait(min(self.options.retry_s * 2.0 ** (self._waits - 1), LONGEST_WAIT_S))

    def _entered(self, claim: Claim) -> None:
        self._enter("running", job=self._now.job, text=claim.text)
        say(f"admitted {claim.text}")

    def _enter(self, phase: Phase, job: str = "", text: str = "") -> None:
        self._now = msgspec.structs.replace(
            self._now, phase=phase, since=stamp(), job=job, text=inert.line(text, 500), failures=len(self._failures)
        )
        self.records.enter(self._now)

    def _quick(self) -> list[Fault]:
        """What can be seen within a moment: while a job waits for its admission, and after each one."""
        return [*health.gpu_faults(self.options, self._first, self._machine.look()), *self._disk()]

    def _settled(self) -> list[Fault]:
        """As `_quick`, when the driver has had a while to take away what ended processes held."""
        last = time.monotonic() + self.options.stop_grace_s
        while (faults := self._quick()) and not any(fault.severe for fault in faults) and time.monotonic() < last:
            self._stop.wait(SETTLE_S)
        return faults

    def _thorough(self) -> list[Fault]:
        """All that is looked at before the host offers itself."""
        faults = self._quick()
        if faults or self._probe is None:
            return faults
        faults, missing = self._probe(len(self._first.gpus))
        if missing and missing not in self._now.weaknesses:
            self._now = msgspec.structs.replace(self._now, weaknesses=(*self._now.weaknesses, missing))
        return faults

    def _disk(self) -> list[Fault]:
        """Whether there is space; caches are given up for it, the least useful first."""
        short = self._short()
        while short and self._caches.drop_one():
            say(f"a cache was dropped: {short}")
            short = self._short()
        return [Fault(short)] if short else []

    def _short(self) -> str:
        free, least = free_bytes(self._state), self.options.disk_free_bytes
        return (
            f"{free / 2**30:.1f} GiB are free at {self._state}, less than {least / 2**30:.1f}" if free < least else ""
        )

    def _tidy(self) -> None:
        """What an earlier run that was itself killed may have left."""
        self._keep.end()
        remove(self._caches.active)
        for path in (*(self._state / "jobs").glob("*"), *strays(self._keep.user)):
            remove(path)


def _hostname() -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:30].strip("-") or "host"


def _is_failure(lived: Lived) -> bool:
    """Whether the host, not the job, is to blame. A stranger's job that broke off may have ended its own runner."""
    return lived.how in ("no job", "not admitted") or (lived.how == "broke off" and lived.trusted)


def _job(name: str, began: str, lived: Lived, faults: list[Fault]) -> Job:
    return Job(
        name, began, stamp(), lived.how, lived.claim.text if lived.claim else "", inert.line(lived.why, 300),
        lived.trusted, lived.leftovers, tuple(inert.line(fault.text, 300) for fault in faults[:10]),
    )  # fmt: skip


def commands_missing() -> list[str]:
    """Programs of the system that the host calls, and that are not there."""
    return [name for name in ("cp", "rm", "find", "chown", "setpriv", "unshare") if shutil.which(name) is None]
