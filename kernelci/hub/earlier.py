"""What earlier runs of a pull request found, for planning the next one."""

import contextlib
import itertools

from kernelci.errors import ArtifactMissing, ReportError
from kernelci.hub import artifact
from kernelci.hub.client import Patience, connect
from kernelci.hub.pull import Pull, of_event, runs_of
from kernelci.model import Report

LOOKED_AT, WITH_REPORT = 100, 5  # newest runs; finished ones whose report is asked for


def report(repository: str, number: int, patience: Patience | None = None) -> Report | None:
    """The newest report that a pull request's runs have left; None where there is none. Raises KernelciError.

    Untrusted, and decoded as in `publish`: it decides which shard gets which kernels, and nothing else.
    """
    client = connect(repository, patience=patience)
    pull = of_event(number) or client.get(f"pulls/{number}", Pull)
    for run in itertools.islice(
        (run for run in runs_of(client, pull, LOOKED_AT) if run.status == "completed"), WITH_REPORT
    ):
        with contextlib.suppress(ArtifactMissing, ReportError):
            return artifact.report(client, artifact.listed(client, run), run)
    return None
