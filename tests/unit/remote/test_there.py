"""The far side, asked over plain pipes: what it refuses, and that it leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelci
from kernelci.errors import RunnerBroken
from kernelci.remote import wire
from kernelci.remote.wire import Answer, Options, Request

ROOT = Path(kernelci.__file__).parents[1]


def _asked(tmp_path: Path, data: bytes) -> tuple[bytes, bytes]:
    """What it greets with, and what it answers to these bytes."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kernelci", "hosted"]
    done = subprocess.run(command, input=data, capture_output=True, env=environ, timeout=60, check=True)
    greeting, _, rest = done.stdout.partition(b"\n")
    return greeting, rest


def test_it_greets_and_ends_with_nobody(tmp_path: Path) -> None:
    assert (f"kernelci hosted 1 {kernelci.__version__}".encode(), b"") == _asked(tmp_path, b"")


BAD = (
    (b"nonsense\n", "something else"),
    (wire.encoded(Request(options=Options(), size=100)) + b"short", "before the whole project"),
    (wire.encoded(Request(options=Options(), size=2**40)), "no space left"),
    (wire.encoded(Request(options=Options(), size=9)) + b"not a zip", "no zip archive"),
)


@pytest.mark.parametrize(("data", "why"), BAD, ids=[why for _, why in BAD])
def test_what_it_can_not_use_is_answered_and_leaves_nothing(data: bytes, why: str, tmp_path: Path) -> None:
    _, rest = _asked(tmp_path, data)

    answer = wire.decoded(rest, Answer)
    assert (True, 0) == (answer.code in (2, 4), answer.size)
    assert why in answer.message
    assert [] == list(tmp_path.iterdir())


@given(
    st.builds(
        Options,
        kernels=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        case=st.text(max_size=20),
        jobs=st.none() | st.integers(0, 99),
        profile=st.none() | st.text(max_size=9),
        all_configs=st.booleans(),
    )
)
def test_nothing_that_is_asked_becomes_another_option(options: Options) -> None:
    arguments = options.arguments()

    assert list(options.kernels) == arguments[arguments.index("--") + 1 :]
    allowed = {"--rungs", "--case", "--draw", "--seed", "--tier", "--jobs", "--gpus", "--profile", "--target"}
    assert set() == {each.split("=")[0] for each in arguments[: arguments.index("--")]} - {*allowed, "--all-configs"}
    assert options == wire.decoded(wire.encoded(Request(options=options, size=0)), Request).options


def test_an_answer_of_another_form() -> None:
    with pytest.raises(RunnerBroken, match="something else"):
        wire.decoded(b'{"code": 1, "more": 2}', Answer)
