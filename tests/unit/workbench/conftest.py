"""A real zygote that runs Triton's interpreter, started once per test process."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci import backends
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session

MakeSession = Callable[..., Session]


def _environment(cache: Path) -> dict[str, str]:
    return backends.get("triton").environment(cache) | {"TRITON_INTERPRET": "1"}


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """The untrusted side, ready to fork."""
    started = Zygote("interpret", ("triton",), _environment)
    assert started.wait_ready() == {}
    yield started
    started.close()


@pytest.fixture
def session(zygote: Zygote) -> Iterator[MakeSession]:
    """Make a session of a kernel file with this text."""
    made: list[Session] = []

    def make(text: str, entry: str = "f", call_s: float = 30.0, memory_bytes: int = 2**31) -> Session:
        source = Source("ours", f"kernel{len(made)}.py", {f"kernel{len(made)}.py": textwrap.dedent(text).encode()})
        made.append(Session(zygote, source, entry, "triton", "cpu", Limits(30.0, call_s, memory_bytes)))
        return made[-1]

    yield make
    for one in made:
        one.close()
