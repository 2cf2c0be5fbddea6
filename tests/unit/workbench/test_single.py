"""A candidate that is a process of its own: the same answers as a forked one, behind a tool's command line or not."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import torch

from kernelci.errors import RunnerBroken, Stop
from kernelci.reference import Case, TensorSpec
from kernelci.workbench import sandbox, trial
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.protocol import Call, Done, Source
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.single import REPORT, Single

NOTHING = Call({}, {}, {})
# A tool as compute-sanitizer is one: starts the process, waits for it, and writes to a file of its own.
TOOL = """
import subprocess, sys
code = subprocess.call(sys.argv[2:], close_fds=False)
with open(sys.argv[1], "w") as file:
    print(f"the process ended with {code}", file=file)
sys.exit(code)
"""
MakeSession = Callable[..., tuple[Session, Single]]


def _wrapped(report: str) -> list[str]:
    return [sys.executable, "-I", "-c", TOOL, report]


@pytest.fixture
def start() -> Iterator[MakeSession]:
    """Make a session of a kernel file with this text, whose candidate is a single process."""
    made: list[tuple[Session, Single]] = []

    def make(
        text: str, call_s: float = 60.0, separate: bool = False, memory_bytes: int = 2**33
    ) -> tuple[Session, Single]:
        single = Single((), lambda cache: {}, wrap=_wrapped)
        source = Source("ours", "kernel.py", {"kernel.py": textwrap.dedent(text).encode()})
        limits = Limits(60.0, call_s, memory_bytes)
        made.append((Session(single, source, "f", "triton", "cpu", limits, separate=separate), single))
        return made[-1]

    yield make
    for session, single in made:
        session.close()
        single.close()


def _stop(session: Session) -> Stop:
    with pytest.raises(Stop) as caught:
        session.call(NOTHING)
    return caught.value


def test_process_is_kept_between_calls_and_ends_by_itself(start: MakeSession) -> None:
    session, single = start("calls = []\ndef f():\n    calls.append(1)\n    assert len(calls) < 3\n")
    assert (Done(), Done()) == (session.call(NOTHING), session.call(NOTHING))
    session._drop()
    assert "the process ended with 0\n" == single.reports()


@pytest.mark.parametrize(
    ("fault", "reason", "said"),
    [
        ("os._exit(7)", "exited", "exit code 7"),
        ("raise ValueError('no')", "raised", "ValueError: no"),
        ("held = b'x' * 2**30; time.sleep(60)", "out-of-memory", "more memory"),
        ("time.sleep(60)", "hang", "no answer within"),
    ],
)
def test_end(start: MakeSession, fault: str, reason: str, said: str) -> None:
    session, _ = start(f"import os, time\ndef f():\n    {fault}\n", call_s=4.0, memory_bytes=2**30)
    stop = _stop(session)
    assert (reason, True) == (stop.reason, said in stop.message), stop.message


def test_words_of_the_kernel_are_not_the_tools(start: MakeSession) -> None:
    session, single = start("import os\ndef f():\n    os.write(2, b'the end')\n    os._exit(3)\n")
    assert ("the end", "the process ended with 3\n") == (_stop(session).log, single.reports())


def test_process_that_does_not_start_is_the_runners_fault() -> None:
    single = Single((), lambda cache: {}, wrap=lambda report: ["/bin/false"])
    with closing(single), pytest.raises(RunnerBroken, match="did not start"):
        single.fork()


def test_backend_that_is_missing_is_the_runners_fault() -> None:
    single = Single(("no_such_backend",), lambda cache: {})
    with closing(single), pytest.raises(RunnerBroken, match="no_such_backend"):
        single.fork()


@pytest.mark.skipif(not sandbox.level().sandboxed, reason="no sandbox here")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("open('/usr/x', 'w')", "Read-only file system"),
        ("open('/report2', 'w')", "Read-only file system"),
        ("open('large', 'wb').truncate(2**31)", "File too large"),
    ],
)
def test_is_contained(start: MakeSession, body: str, error: str) -> None:
    session, _ = start(f"import socket\ndef f():\n    {body}\n")
    assert error in _stop(session).message


@pytest.mark.skipif(not sandbox.level().sandboxed, reason="no sandbox here")
def test_endless_report_is_stopped(start: MakeSession) -> None:
    session, single = start(
        f"def f():\n    with open({REPORT!r}, 'wb') as file:\n        while True: file.write(bytes(2**20))\n"
    )
    began = time.monotonic()
    assert "hang" != _stop(session).reason
    session._drop()
    assert (True, True) == (time.monotonic() - began < 30, len(single.reports()) <= 16 * 2**20 + 1)


def _scaled() -> Drawn:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    outputs = {"y": TensorSpec((3, 4), "float32")}
    return Drawn(Case("check", (("rows", 3),)), {"x": x, "factor": 3.0}, outputs, Truth({}, {}))


@pytest.mark.parametrize("separate", [False, True])
def test_values_go_there_and_back(start: MakeSession, separate: bool) -> None:
    session, _ = start("def f(x, factor, y):\n    y.copy_(x * factor)\n", separate=separate)
    (values,) = trial.repeats(session, _scaled(), 1)
    assert torch.equal(torch.arange(12).reshape(3, 4) * 3.0, values["y"])


def test_separate_tensors_have_memory_of_their_size(start: MakeSession) -> None:
    session, _ = start(
        """
        def f(x, factor, y):
            sizes = x.untyped_storage().nbytes(), y.untyped_storage().nbytes()
            assert sizes == (48, 48), sizes
            y.copy_(x)
        """,
        separate=True,
    )
    assert 1 == len(trial.repeats(session, _scaled(), 1))


def test_separate_returned_outputs(start: MakeSession) -> None:
    session, _ = start("def f(x, factor):\n    return x * factor\n", separate=True)
    (values,) = trial.repeats(session, _scaled(), 1)
    assert torch.equal(torch.arange(12).reshape(3, 4) * 3.0, values["y"])


def test_separate_in_place(start: MakeSession) -> None:
    x = torch.arange(4, dtype=torch.float32)
    outputs = {"x": TensorSpec((4,), "float32", "x")}
    drawn = Drawn(Case("check", (("rows", 4),)), {"x": x}, outputs, Truth({}, {}), mutates=("x",))
    session, _ = start("def f(x):\n    x += 1\n", separate=True)
    (values,) = trial.repeats(session, drawn, 1)
    assert torch.equal(x + 1, values["x"])


def test_write_to_a_separate_input_is_seen(start: MakeSession) -> None:
    session, _ = start("def f(x, factor, y):\n    y.copy_(x)\n    x[0, 0] = 9\n", separate=True)
    with pytest.raises(Stop) as caught:
        trial.repeats(session, _scaled(), 1)
    assert "input-changed" == caught.value.reason
