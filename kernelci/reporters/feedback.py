"""Feedback: what an agent needs of the report, as JSON; `kernelci feedback` prints the same for a pull request."""

from kernelci import feedback
from kernelci.model import Report
from kernelci.reporters import Context


def render(report: Report, context: Context) -> str:
    """The record of `kernelci.feedback`."""
    return feedback.encode(feedback.of(report))
