"""One runner's life: its folder, GitHub's runner in it, the job's admission, its end, and what is left of it.

GitHub's `run.sh` ends with 0 whatever happened, so how a job went is told by its hooks, and by nobody where they are
silent. Times are of the monotonic clock: a wall clock that jumps ends no job.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kernelci import inert
from kernelci.config import RunnerOptions
from kernelci.errors import RunnerBroken
from kernelci.runner import policy
from kernelci.runner.admission import Door, Reply, Word
from kernelci.runner.caches import Caches
from kernelci.runner.health import Fault, text
from kernelci.runner.keep import Keep
from kernelci.runner.policy import Claim
from kernelci.runner.records import Ended
from kernelci.runner.say import say
from kernelci.runner.workplace import RUN, Workplace, remove, strays

TICK_S = 0.2
ADMISSION_S = 120.0  # GitHub's runner downloads the job's actions before it calls the hook
LAST_WORDS_S = 2.0
DEPRECATED = 7  # what run.sh ends with where GitHub no longer serves its version, and only if it is asked to
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASSED_ON = ("LANG", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class Lived(Struct, frozen=True):
    """How a runner's life went."""

    how: Ended
    claim: Claim | None = None
    why: str = ""
    trusted: bool = False
    leftovers: int = 0
    faults: tuple[Fault, ...] = ()


class Parts(Struct, frozen=True):
    """What the host lends to each life."""

    options: RunnerOptions
    keep: Keep
    door: Door
    caches: Caches
    check: Callable[[], list[Fault]]
    """The machine's state just before a job."""
    entered: Callable[[Claim], None]
    """Told when a job is admitted."""
    stopping: Callable[[], bool]


class Life:
    """One runner, from its configuration to the clean machine."""

    def __init__(self, parts: Parts, name: str) -> None:
        self._parts, self._options, self._keep = parts, parts.options, parts.keep
        self.place = Workplace(Path(parts.options.state) / "jobs" / name, parts.keep.user)
        self._claim: Claim | None = None
        self._refused = ""
        self._faults: list[Fault] = []
        self._completed = False
        self._ends: float | None = None
        self._tail = ""

    def live(self, config: str) -> Lived:
        """Run GitHub's runner until its job is over, then clean up. Raises RunnerBroken."""
        how: Ended = "no job"
        leftovers = 0
        code: int | None = None
        try:
            self.place.make(Path(self._options.installation))
            process = self._start(config)
            how = self._watch(process)
            code = process.poll()
        finally:
            leftovers = self._end()
            self._clean(how)
        if code == DEPRECATED:
            said = (
                f"GitHub no longer serves version {self._options.version}: set a newer one, then kernelci runner setup"
            )
            self._faults.append(Fault(said, severe=True))
        trusted = self._claim is not None and policy.trusted(self._options, self._claim)
        why = self._refused or (inert.line(self._tail, 300) if how in ("no job", "broke off", "not admitted") else "")
        return Lived(how, self._claim, why, trusted, leftovers, tuple(self._faults))

    def _start(self, config: str) -> "subprocess.Popen[bytes]":
        with self.place.log.open("wb") as log:
            try:
                command = [str(self.place.runner / RUN)]
                return self._keep.start(
                    command, self.place.runner, self.place.temporary, self._environment(config), log
                )
            except OSError as error:
                raise RunnerBroken(
                    f"GitHub's runner can't be started: {error}", hint="kernelci doctor --runner"
                ) from error

    def _environment(self, config: str) -> dict[str, str]:
        """All that a job sees of this host. The configuration is no argument, since all users can read those."""
        names = (*PASSED_ON, *self._options.environment)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        home, temporary = str(self.place.home), str(self.place.temporary)
        return self._parts.caches.environment() | self._parts.door.environment | {
            "PATH": SYSTEM_PATH, "HOME": home, "TMPDIR": temporary, "USER": self._keep.user.name,
            "ACTIONS_RUNNER_INPUT_JITCONFIG": config, "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE": "1",
            "RUNNER_MANUALLY_TRAP_SIG": "1", **kept,
        }  # fmt: skip

    def _watch(self, process: "subprocess.Popen[bytes]") -> Ended:
        worked_since: float | None = None
        while process.poll() is None:
            self._parts.door.wait(TICK_S, self._ours, self._decide)
            now = time.monotonic()
            if self._parts.stopping():
                return "stopped"
            if self._refused:
                time.sleep(min(LAST_WORDS_S, self._options.stop_grace_s / 2))
                return self._stop(process, "refused")
            if self._ends is not None and now > self._ends:
                return self._stop(process, "time limit")
            if self._claim is None and self._keep.working():
                worked_since = worked_since or now
                if now - worked_since > ADMISSION_S:
                    return self._stop(process, "not admitted")
        if self._claim is None:
            return "refused" if self._refused else "no job"
        return "done" if self._completed else "broke off"

    def _stop(self, process: "subprocess.Popen[bytes]", how: Ended) -> Ended:
        """End the job at once; GitHub's listener has a little while to report that."""
        self._keep.strike()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self._options.stop_grace_s)
        return how

    def _ours(self, pid: int) -> bool:
        return pid in self._keep.pids()

    def _decide(self, word: Word) -> Reply:
        if word.kind == "completed":
            self._completed = self._claim is not None
            return Reply(self._completed)
        if self._claim is not None or self._refused:
            return Reply(False, "a runner takes one job")
        return self._admit(word.claim)

    def _admit(self, claim: Claim) -> Reply:
        self._refused = policy.refusal(self._options, claim)
        if not self._refused:
            self._faults += self._parts.check()
            self._refused = text(self._faults) or self._laid(claim)
        if self._refused:
            say(f"refused {claim.text}: {self._refused}")
            return Reply(False, self._refused)
        self._claim, self._ends = claim, time.monotonic() + self._options.time_limit_s
        self._parts.entered(claim)
        return Reply(True)

    def _laid(self, claim: Claim) -> str:
        try:
            self._parts.caches.lay(policy.cache_key(self._options, claim))
        except (OSError, subprocess.SubprocessError) as error:
            self._faults.append(Fault(f"the job's cache can't be laid out: {str(error)[:200]}"))
            return self._faults[-1].text
        return ""

    def _end(self) -> int:
        """End all that still runs; how many processes that were."""
        left = self._keep.pids()
        self._tail = self.place.tail()
        if survivors := self._keep.end():
            pids = ", ".join(map(str, sorted(survivors)[:5]))
            self._faults.append(Fault(f"processes can't be ended (pid {pids}): is a driver call stuck?", severe=True))
        self._keep.again()
        return len(left)

    def _clean(self, how: Ended) -> None:
        """Keep the cache of a job that came to its end; remove all else."""
        key = policy.cache_key(self._options, self._claim) if self._claim is not None and how == "done" else ""
        try:
            self._parts.caches.keep(key)
        except (OSError, subprocess.SubprocessError) as error:
            self._parts.caches.keep("")
            say(f"the job's cache is not kept: {str(error)[:200]}")
        for path in (self.place.folder, *strays(self._keep.user)):
            if not remove(path):
                self._faults.append(Fault(f"{path} can't be removed"))
