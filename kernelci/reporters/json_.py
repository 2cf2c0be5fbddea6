"""JSON: the bytes of results.json, for programs and agents."""

from kernelci import results
from kernelci.model import Report
from kernelci.reporters import Context


def render(report: Report, context: Context) -> bytes:
    """The report as it stands on disk."""
    return results.encode(report)
