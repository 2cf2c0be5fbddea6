"""A real zygote that runs Triton's interpreter, started once per test process."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci import backends
from kernelci.reference import Reference, load
from kernelci.workbench import nvml
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Probe
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.slots import Bank, layout

from .made_banks import COUNT, MakeBank, Written

MakeSession = Callable[..., Session]
Opener = Callable[[Arena], Session]


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


@pytest.fixture
def opener(zygote: Zygote) -> Callable[..., Opener]:
    """Make what starts fresh candidates of a kernel file with this text on an arena."""

    def make(text: str, call_s: float = 30.0) -> Opener:
        source = Source("ours", "kernel.py", {"kernel.py": textwrap.dedent(text).encode()})
        limits = Limits(30.0, call_s, 2**31)
        return lambda arena: Session(zygote, source, "f", "triton", "cpu", limits, arena=arena)

    return make


@pytest.fixture
def probe(zygote: Zygote) -> Iterator[Callable[[Arena], Probe]]:
    """What starts a probe of the clock's own cost on an arena."""
    made: list[Probe] = []

    def opened(arena: Arena, source: Source, entry: str) -> Session:
        return Session(zygote, source, entry, "triton", "cpu", Limits(30.0, 30.0, 2**31), arena=arena)

    def start(arena: Arena) -> Probe:
        made.append(Probe(arena, opened))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def watch() -> Callable[[], nvml.Watch]:
    """Watches a GPU that is not there."""
    return lambda: nvml.Watch(nvml.Device("GPU-none"))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Reference]:
    """Load a reference file with this text."""

    def make(text: str, name: str = "some") -> Reference:
        path = tmp_path / f"{name}.py"
        path.write_text(
            "import torch\nfrom kernelci.reference import alias, bench, like, tensor\n" + text, encoding="utf-8"
        )
        return load(path)

    return make


@pytest.fixture
def bank(written: Written) -> Iterator[MakeBank]:
    """Make a bank for the case of a reference with this text."""
    arenas: list[Arena] = []

    def make(text: str, count: int = COUNT, seed: str = "s") -> Bank:
        reference = written(text)
        (case,) = reference.cases()
        arenas.append(Arena("cpu", count * layout(reference, case).stride))
        return Bank(reference, case, arenas[-1], count, seed)

    yield make
    for arena in arenas:
        arena.close()
