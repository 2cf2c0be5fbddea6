"""A real candidate process: however it ends, the referee learns how, and the next call finds a fresh one."""

import contextlib
import os
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelci.errors import RunnerBroken, Stop
from kernelci.workbench import sandbox
from kernelci.workbench.arena import Arena
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Call, Done, Load, Source
from kernelci.workbench.session import Session

NOTHING = Call({}, {}, {})
FAULT, WORK = Call({}, {"fault": True}, {}), Call({}, {"fault": False}, {})
MakeSession = Callable[..., Session]


def _stop(session: Session, call: Call = NOTHING) -> Stop:
    with pytest.raises(Stop) as caught:
        session.call(call)
    return caught.value


def _faulty(fault: str) -> str:
    """A kernel that does this when it is asked to."""
    return f"""
        import ctypes, os, signal, sys, time
        def f(fault):
            if fault:
                {fault}
    """


SANDBOXED = sandbox.level().name != "process"
# Without a warden a SIGKILL of its own can't be told from the kernel's, which comes when memory runs out.
KILLED_ITSELF = ("exited", "exit code 137") if SANDBOXED else ("out-of-memory", "was killed")
ENDS = [
    ("os._exit(0)", "exited", "exit code 0"),
    ("os._exit(7)", "exited", "exit code 7"),
    ("sys.exit(0)", "exited", "exit code 0"),
    ("sys.exit('enough')", "exited", "exit code 1"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV"),
    ("ctypes.string_at(0)", "crashed", "SIGSEGV"),
    ("os.abort()", "crashed", "SIGABRT"),
    ("os.kill(os.getpid(), signal.SIGKILL)", *KILLED_ITSELF),
    ("os.killpg(0, signal.SIGTERM)", "crashed", "SIGTERM"),
    ("raise MemoryError()", "out-of-memory", "MemoryError"),
    ("raise ValueError('no')", "raised", "ValueError: no"),
    ("raise type('NeedsData', (Exception,), {})()", "raised", "NeedsData"),
    ("raise KeyboardInterrupt", "exited", "exit code 1"),
]


@pytest.mark.parametrize(("fault", "reason", "said"), ENDS)
def test_end(session: MakeSession, fault: str, reason: str, said: str) -> None:
    stop = _stop(session(_faulty(fault)), FAULT)
    assert (reason, True) == (stop.reason, said in stop.message)


@pytest.mark.parametrize("fault", [fault for fault, _, _ in ENDS])
def test_next_call_finds_a_process_that_works(session: MakeSession, fault: str) -> None:
    made = session(_faulty(fault))
    _stop(made, FAULT)
    assert Done() == made.call(WORK)


@pytest.mark.parametrize("wait", ["time.sleep(1000)", "import re; re.match('(a+)+b', 'a' * 64)"])
def test_hang(session: MakeSession, wait: str) -> None:
    stop = _stop(session(_faulty(wait), call_s=1.0), FAULT)
    assert ("hang", "no answer within 1 s") == (stop.reason, stop.message)


def test_stack_of_a_hang_is_in_the_log(session: MakeSession) -> None:
    stop = _stop(session(_faulty("time.sleep(1000)"), call_s=1.0), FAULT)
    assert 'kernel0.py", line 5 in f' in stop.log


def test_call_after_a_hang(session: MakeSession) -> None:
    made = session(_faulty("time.sleep(1000)"), call_s=10.0)
    made.limits.call_s = 0.5
    _stop(made, FAULT)
    made.limits.call_s = 30.0
    assert Done() == made.call(WORK)


def test_last_words_are_kept(session: MakeSession) -> None:
    stop = _stop(
        session(
            "import os\ndef f():\n    print('x' * 20_000, flush=True)\n    os.write(2, b'the end')\n    os._exit(3)\n"
        )
    )
    assert (True, 8000) == (stop.log.endswith("the end"), len(stop.log))


def test_an_exception_names_file_and_line(session: MakeSession) -> None:
    stop = _stop(session("def f():\n    x = 1\n    return g(x)\ndef g(x):\n    return x / 0\n"))
    assert ("kernel0.py", 5, True) == (Path(stop.file).name, stop.line, "ZeroDivisionError" in stop.log)


def test_file_that_can_not_be_imported(session: MakeSession) -> None:
    stop = _stop(session("x = 1\nraise OSError('gone')\n"))
    assert ("compile-error", 2) == (stop.reason, stop.line)


def test_entry_that_is_not_there(session: MakeSession) -> None:
    assert "no attribute 'f'" in _stop(session("def g(): pass\n")).message


def test_state_of_one_kernel_is_not_seen_by_another(session: MakeSession) -> None:
    session("import math\nmath.pi = 3\ndef f():\n    pass\n").call(NOTHING)
    assert Done() == session("import math\ndef f():\n    assert math.pi > 3\n").call(NOTHING)


def test_process_is_kept_between_calls(session: MakeSession) -> None:
    made = session("calls = []\ndef f():\n    calls.append(1)\n    assert len(calls) == 1, 'second'\n")
    made.call(NOTHING)
    assert "second" in _stop(made).message


def test_memory_limit(session: MakeSession) -> None:
    made = session("def f():\n    held = [bytearray(2**24) for _ in range(2**10)]\n", memory_bytes=2**28)
    assert "out-of-memory" == _stop(made).reason


def test_memory_limit_on_tensors(session: MakeSession) -> None:
    made = session("import torch\ndef f():\n    torch.empty(2**30, dtype=torch.uint8)\n", memory_bytes=2**28)
    assert "out-of-memory" == _stop(made).reason


@pytest.mark.parametrize("session_of_its_own", [False, True])
@pytest.mark.parametrize("ending", ["time.sleep(1000)", "os._exit(0)"])
def test_children_end_with_it(session: MakeSession, ending: str, session_of_its_own: bool) -> None:
    if session_of_its_own and not SANDBOXED:
        pytest.skip("only the sandbox contains a process that leaves its group")
    marker = f"1000.{uuid.uuid4().int}"
    made = session(
        f"""
        import os, subprocess, time
        def f():
            subprocess.Popen(["sleep", "{marker}"], start_new_session={session_of_its_own})
            time.sleep(0.2)
            {ending}
        """,
        call_s=3.0,
    )
    _stop(made)
    assert _ends(marker)


def _ends(marker: str, patience_s: float = 20.0) -> bool:
    """Whether no process has this in its command line before patience ends."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if not any(marker.encode() in _command_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
            return True
        time.sleep(0.01)
    return False


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_noise_on_the_channel_is_refused(session: MakeSession) -> None:
    made = session(
        """
        import os, socket
        def f():
            for name in os.listdir("/proc/self/fd"):
                try:
                    if os.readlink(f"/proc/self/fd/{name}").startswith("socket"):
                        os.write(int(name), b"\\x00\\x00\\x00\\x03abc")
                except OSError:
                    pass
        """
    )
    assert "refused" == _stop(made).reason


def test_zygote_that_can_not_start_is_the_runners_fault() -> None:
    broken = Zygote("interpret", ("triton",), lambda cache: {"PYTHONHASHSEED": "no number"})
    os.kill(broken._process.pid, 9)
    with pytest.raises(RunnerBroken, match="process ended"):
        broken.fork()
    broken.close()


def test_backend_that_can_not_be_imported_is_named() -> None:
    started = Zygote("interpret", ("no_such_backend",), lambda cache: {})
    missing = started.wait_ready()
    started.close()
    assert "no_such_backend" in missing


def test_a_zygote_outlives_the_thread_that_asked_for_it() -> None:
    with ThreadPoolExecutor(1) as threads:
        started = threads.submit(Zygote, "interpret", (), lambda cache: {}).result()
        started.wait_ready()
    time.sleep(0.1)  # for the signal that must not come
    alive = started._process.poll()
    started.close()
    assert alive is None


def test_closing_the_zygote_ends_a_candidate_that_hangs() -> None:
    started = Zygote("interpret", (), lambda cache: {})
    arena, marker = Arena("cpu", 4096), f"1000.{uuid.uuid4().int}"
    text = f"import subprocess\nsubprocess.run(['sleep', '{marker}'])\n"
    candidate = started.fork(arena.fd)
    candidate._channel.send(Load(Source("ours", "k.py", {"k.py": text.encode()}), "f", "triton", "cpu", arena.size))
    end = time.monotonic() + 30
    while _ends(marker, 0.05) and time.monotonic() < end:
        pass
    started.close()
    arena.close()
    assert _ends(marker)


def _together(session: Session, *calls: Call) -> list[str]:
    """What became of calls that were made together: a reason each, empty for none."""
    return [found.reason if isinstance(found, Stop) else "" for found in session.call_all(calls)]


def test_calls_together_are_made_in_order(session: MakeSession) -> None:
    made = session("seen = []\ndef f(n):\n    seen.append(n)\n    assert seen == list(range(n + 1))\n")
    assert [""] * 3 == _together(made, *(Call({}, {"n": number}, {}) for number in range(3)))


def test_after_an_exception_the_next_call_is_made(session: MakeSession) -> None:
    assert ["", "raised", ""] == _together(session(_faulty("raise ValueError('no')")), WORK, FAULT, WORK)


def test_after_a_worse_fault_none_is_made(session: MakeSession) -> None:
    made = session(_faulty("raise MemoryError()"))
    assert (["", "out-of-memory"], [""]) == (_together(made, WORK, FAULT, WORK), _together(made, WORK))


@pytest.mark.parametrize(("fault", "reason", "said"), [end for end in ENDS if not end[0].startswith("raise ")])
def test_the_end_of_calls_together(session: MakeSession, fault: str, reason: str, said: str) -> None:
    with pytest.raises(Stop) as caught:
        session(_faulty(fault)).call_all([WORK, FAULT, WORK])
    assert (reason, True) == (caught.value.reason, said in caught.value.message)


def test_calls_together_that_hang(session: MakeSession) -> None:
    with pytest.raises(Stop) as caught:
        session(_faulty("time.sleep(1000)"), call_s=0.5).call_all([WORK, FAULT, WORK])
    assert ("hang", "no answer within 1 s") == (caught.value.reason, caught.value.message)


def test_calls_together_that_are_not_all_answered(session: MakeSession) -> None:
    text = """
        import gc
        from kernelci import candidate
        def f():
            for one in gc.get_objects():
                if type(one).__name__ == "LoadedKernel":
                    one.call_all = lambda message: candidate.AllDone(())
    """
    made = session(text)
    made.call(NOTHING)
    with pytest.raises(Stop) as caught:
        made.call_all([NOTHING, NOTHING])
    assert ("refused", "0 answers to 2 calls") == (caught.value.reason, caught.value.message)


def test_a_renewed_session_remembers_nothing(session: MakeSession) -> None:
    made = session("seen = []\ndef f():\n    seen.append(0)\n    assert len(seen) == 1\n")
    made.call(NOTHING)
    made.renew()
    assert Done() == made.call(NOTHING)


def test_a_life_ends_with_a_fault(session: MakeSession) -> None:
    made = session(_faulty("os._exit(7)"))
    lives = [made.life]
    for call in (WORK, FAULT, WORK):
        with contextlib.suppress(Stop):
            made.call(call)
        lives.append(made.life)
    assert [0, 1, 0, 2] == lives
