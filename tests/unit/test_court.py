"""What a run's referees share."""

import pytest

from kernelci.config import Config
from kernelci.court import load_limit_s


@pytest.mark.parametrize(("backend", "limit_s"), [("triton", 60.0), ("torch", 120.0)])
def test_importing_may_take_as_long_as_compiling_where_it_builds(backend: str, limit_s: float) -> None:
    assert limit_s == load_limit_s(Config(load_timeout_s=60.0, compile_timeout_s=120.0), backend)
