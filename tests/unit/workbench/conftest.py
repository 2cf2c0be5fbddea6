"""A real zygote that runs Triton's interpreter, started once per test process."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci import backends
from kernelci.workbench.process import Zygote
from kernelci.workbench.session import Limits, Session

MakeSession = Callable[..., Session]


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The untrusted side, ready to fork."""
    environment = backends.get("triton").environment(tmp_path_factory.mktemp("dsl")) | {"TRITON_INTERPRET": "1"}
    started = Zygote("interpret", ("triton",), environment)
    assert started.wait_ready() == {}
    yield started
    started.close()


@pytest.fixture
def session(zygote: Zygote, tmp_path: Path) -> Iterator[MakeSession]:
    """Make a session of a kernel file with this text."""
    made: list[Session] = []

    def make(text: str, entry: str = "f", call_s: float = 30.0, memory_bytes: int = 2**31) -> Session:
        path = tmp_path / f"kernel{len(made)}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        made.append(Session(zygote, path, entry, "triton", "cpu", {}, Limits(30.0, call_s, memory_bytes)))
        return made[-1]

    yield make
    for one in made:
        one.close()
