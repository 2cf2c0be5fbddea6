"""What `kernelci runner status` tells: where the host is, why it stands still, its last jobs."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci.config import RunnerOptions
from kernelci.runner.records import Job, Now, Quarantine, Records

LAST = 10


class Status(Struct, frozen=True):
    """All of it."""

    now: Now | None
    alive: bool
    quarantine: Quarantine | None
    jobs: tuple[Job, ...]

    @property
    def exit_code(self) -> int:
        """0 where jobs are taken; 3 where no loop runs, 4 in quarantine."""
        if self.quarantine is not None:
            return 4
        return 0 if self.alive else 3


def records(options: RunnerOptions) -> Records:
    """The host's records."""
    return Records(Path(options.state) / "records")


def find(options: RunnerOptions) -> Status:
    """What the records say, and whether the loop still runs."""
    found = records(options)
    now = found.now()
    alive = now is not None and now.phase != "stopped" and os.path.exists(f"/proc/{now.pid}")
    return Status(now, alive, found.quarantined(), tuple(found.jobs()[-LAST:]))


def as_json(status: Status) -> str:
    """The record as JSON."""
    return msgspec.json.format(msgspec.json.encode(status), indent=1).decode()


def text(status: Status) -> str:
    """The record as lines."""
    lines = [_where(status)]
    if status.quarantine is not None:
        lines.append(f"quarantine since {status.quarantine.since}: {status.quarantine.reason}")
        lines += [f"  - {failure}" for failure in status.quarantine.failures]
        lines.append("  next: mend it, then `kernelci runner release`")
    if status.now is not None:
        lines.append(f"labels: {', '.join(status.now.labels)}")
        lines += [f"weaker than it could be: {text}" for text in status.now.weaknesses]
    lines += ["last jobs:"] * bool(status.jobs)
    return "\n".join([*lines, *(_job(job) for job in reversed(status.jobs))])


def _where(status: Status) -> str:
    now = status.now
    if now is None:
        return "no loop has run here"
    if not status.alive:
        ended = "it stopped" if now.phase == "stopped" else f"the last was {now.phase}, and did not stop in order,"
        return f"no loop runs; {ended} at {now.since}"
    more = "".join(f", {part}" for part in (now.job, now.text) if part)
    failures = f"; {now.failures} failures in a row" if now.failures else ""
    return f"{now.phase} since {now.since}{more}{failures}"


def _job(job: Job) -> str:
    left = f", {job.leftovers} processes ended" if job.leftovers else ""
    faults = f"; then: {'; '.join(job.faults)}" if job.faults else ""
    return f"  {job.ended}  {job.how:<12}  {job.job or job.runner}{f': {job.why}' if job.why else ''}{left}{faults}"
