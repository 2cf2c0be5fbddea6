"""A repository to push to, and records to push."""

import datetime
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.history import Measure
from kernelci.reasons import Outcome

FIRST = datetime.date(2026, 1, 1)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """A bare repository without a branch."""
    place = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(place)], check=True)
    return str(place)


@pytest.fixture
def measure() -> Callable[..., Measure]:
    """A record of the n-th night of 2026."""

    def make(night: int, time: float | None = 1000.0, **more: Any) -> Measure:
        day = FIRST + datetime.timedelta(days=night)
        fields = {"case": "c", "gpu": "NVIDIA H200", "driver": "580", "commit": f"{night:040x}", **more}
        return Measure(
            day, f"{day}T02:00:00+00:00", fields.pop("kernel", "softmax/a"), Outcome.PASSED, time_ns=time, **fields
        )

    return make
