"""Attacks from inside a candidate: each fails, or is contained, and the next candidate is unaffected."""

import os
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelci.errors import Verdict
from kernelci.workbench import sandbox
from kernelci.workbench.protocol import Call
from kernelci.workbench.session import Session

NOTHING = Call({}, {}, {})
MakeSession = Callable[..., Session]
contained = pytest.mark.skipif(not sandbox.level().sandboxed, reason=f"no sandbox here: {sandbox.level().why}")


def test_ci_has_a_sandbox() -> None:
    assert sandbox.level().sandboxed or "CI" not in os.environ, sandbox.level().why


def _refused(session: MakeSession, body: str, error: str) -> None:
    """The body raises this error inside a candidate."""
    text = f"import os, socket, pathlib, ctypes\ndef f():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    with pytest.raises(Verdict) as caught:
        session(text).call(NOTHING)
    assert ("raised", True) == (caught.value.reason, error in caught.value.message), caught.value.message


@contained
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("socket.create_connection(('127.0.0.1', 22), 1)", "Network is unreachable"),
        ("socket.create_connection(('10.0.0.1', 80), 1)", "Network is unreachable"),
        ("socket.getaddrinfo('pypi.org', 443)", "gaierror"),
    ],
)
def test_no_network(session: MakeSession, body: str, error: str) -> None:
    _refused(session, body, error)


@contained
def test_the_hosts_loopback_is_out_of_reach(session: MakeSession) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _refused(session, f"socket.create_connection(('127.0.0.1', {port}), 1)", "Network is unreachable")


@contained
@pytest.mark.parametrize(
    "path",
    [
        str(Path(__file__).resolve().parents[3] / "references" / "softmax.py"),
        str(Path(__file__).resolve().parents[3] / "pyproject.toml"),
        str(Path(__file__)),
        "/etc/passwd",
        "/etc/shadow",
        str(Path.home() / ".gitconfig"),
        "/root/.bashrc",
    ],
)
def test_files_of_the_project_and_the_host_are_not_there(session: MakeSession, path: str) -> None:
    _refused(session, f"pathlib.Path({path!r}).read_text()", "No such file")


@contained
@pytest.mark.parametrize(
    "path", ["/x", "/usr/x", "/etc/x", "/dev/x", "/proc/sys/kernel/core_pattern", "{kernelci}", "{package}"]
)
def test_nothing_else_is_writable(session: MakeSession, path: str) -> None:
    places = {"{kernelci}": str(Path(sandbox.__file__).with_name("x.py")), "{package}": f"{os.__file__}c"}
    error = "Error"
    _refused(session, f"open({places.get(path, path)!r}, 'w').write('x')", error)


@contained
@pytest.mark.parametrize("place", ["/tmp/x", "/private/x", "/dev/shm/x"])
def test_what_one_candidate_leaves_the_next_does_not_find(session: MakeSession, place: str) -> None:
    leave, find = f"open({place!r}, 'w').write('x')", f"os.path.exists({place!r}) or 1/0"
    text = f"import os\ndef f(fault):\n    if fault:\n        {leave}\n    {find}\n"
    session(text).call(Call({}, {"fault": True}, {}))
    with pytest.raises(Verdict, match="ZeroDivisionError"):
        session(text).call(Call({}, {"fault": False}, {}))


@contained
@pytest.mark.parametrize(
    "body",
    [
        "open('/proc/1/mem', 'rb').read(1)",
        "os.kill(1, 9); open('/proc/1/environ', 'rb').read(1)",
        "for pid in set(filter(str.isdigit, os.listdir('/proc'))) - {str(os.getpid())}: open(f'/proc/{pid}/mem', 'rb')",
    ],
)
def test_memory_of_other_processes_is_out_of_reach(session: MakeSession, body: str) -> None:
    _refused(session, body, "Permission denied")


@contained
def test_only_its_own_processes_are_seen(session: MakeSession) -> None:
    _refused(session, "raise OSError(sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit()))", "[1, 2]")


@contained
def test_secrets_of_the_environment_do_not_come_in(session: MakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "{'GITHUB_TOKEN', 'SSH_AUTH_SOCK', 'HOME'}"
    _refused(session, f"raise OSError({names} & set(os.environ), os.environ['HOME'])", "{'HOME'}")


@contained
@pytest.mark.parametrize(
    "body",
    [
        "ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0 or 1/0",
        "ctypes.CDLL(None).mount(b'none', b'/', b'tmpfs', 0, b'') == 0 or 1/0",
        "ctypes.CDLL(None).umount2(b'/private', 2) == 0 or 1/0",
        "ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 or 1/0",
    ],
)
def test_no_way_back_to_capabilities(session: MakeSession, body: str) -> None:
    _refused(session, body, "ZeroDivisionError")


@contained
def test_a_fork_bomb_runs_into_the_limit_and_dies_with_its_candidate(session: MakeSession) -> None:
    marker = f"1000.{uuid.uuid4().int}"
    body = f"import subprocess\nwhile True:\n    subprocess.Popen(['sleep', '{marker}'])\n"
    _refused(session, body, "Resource temporarily unavailable")


@contained
def test_a_full_disk_is_its_own(session: MakeSession) -> None:
    body = """
    for n in range(9):
        with open(f'/private/{n}', 'wb') as file:
            for _ in range(1023):
                file.write(bytes(2**20))
    """
    _refused(session, body, "No space left")


@contained
def test_a_file_too_large(session: MakeSession) -> None:
    _refused(session, "with open('/private/x', 'wb') as file:\n    file.truncate(2**31)", "File too large")


@contained
def test_the_arena_can_not_be_shrunk(session: MakeSession) -> None:
    body = """
    for name in os.listdir('/proc/self/fd'):
        if 'kernelci-arena' in os.readlink(f'/proc/self/fd/{name}'):
            os.ftruncate(int(name), 0)
    """
    _refused(session, body, "Operation not permitted")


@contained
def test_a_candidate_that_forks_away_is_ended(session: MakeSession) -> None:
    with pytest.raises(Verdict) as caught:
        session(
            """
            import os, time
            def f():
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(99)
                os._exit(0)
            """
        ).call(NOTHING)
    assert "exited" == caught.value.reason
