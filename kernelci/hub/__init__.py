"""What talks to GitHub, and what a workflow runs there. The names of a run's artifacts are agreed on here."""

REPORT = "kernelci-report"
DUMPS = "kernelci-dumps"
PART = "kernelci-part"


def artifact_name(kind: str, attempt: int) -> str:
    """The fixed name of an artifact of an attempt: `kernelci-report-1` holds results.json and nothing else."""
    return f"{kind}-{attempt}"
