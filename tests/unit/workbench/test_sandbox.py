"""Attacks from inside a candidate: each fails, or is contained, and the next candidate is unaffected.

Each is tried inside bubblewrap and where bubblewrap is hidden, if this machine has Landlock.
"""

import contextlib
import os
import re
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci import backends
from kernelci.errors import Stop
from kernelci.workbench import sandbox
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Call, Source
from kernelci.workbench.session import Limits, Session

NOTHING = Call({}, {}, {})
LEVELS = ("bubblewrap", "landlock")
MakeSession = Callable[..., Session]


def _environment(cache: Path) -> dict[str, str]:
    return backends.get("triton").environment(cache) | {"TRITON_INTERPRET": "1"}


@pytest.fixture(scope="module", params=LEVELS)
def reached(request: pytest.FixtureRequest) -> str:
    """The level that a test is at."""
    return str(request.param)


@pytest.fixture(scope="module")
def started(reached: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """A zygote at one level; skips where this machine doesn't reach it."""
    with pytest.MonkeyPatch.context() as patch:
        if reached == "landlock":
            patch.setenv("PATH", str(tmp_path_factory.mktemp("no-bubblewrap")))
        sandbox.level.cache_clear()
        found = sandbox.level()
        if found.name != reached:
            sandbox.level.cache_clear()
            pytest.skip(f"no {reached} here: {found.why}")
        made = Zygote("interpret", ("triton",), _environment, [ROOT])
    sandbox.level.cache_clear()
    assert made.wait_ready() == {}
    yield made
    made.close()


def _opened(zygote: Zygote, text: str) -> Session:
    source = Source("ours", "kernel.py", {"kernel.py": textwrap.dedent(text).encode()})
    return Session(zygote, source, "f", "triton", "cpu", Limits(30.0, 30.0, 2**31))


@pytest.fixture
def session(started: Zygote) -> Iterator[MakeSession]:
    """Make a session of a kernel file with this text, at that level."""
    made: list[Session] = []

    def make(text: str) -> Session:
        made.append(_opened(started, text))
        return made[-1]

    yield make
    for one in made:
        one.close()


ROOT = Path(__file__).resolve().parents[3]


UNREACHABLE = "Network is unreachable|Permission denied"  # no route there, or no socket to begin with


def test_ci_has_a_sandbox() -> None:
    assert sandbox.level().sandboxed or "CI" not in os.environ, sandbox.level().why


def _refused(session: MakeSession, body: str, error: str) -> None:
    """The body raises an error inside a candidate that matches this."""
    text = f"import os, socket, pathlib, ctypes\ndef f():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    with pytest.raises(Stop) as caught:
        session(text).call(NOTHING)
    found = re.search(error, caught.value.message) is not None
    assert ("raised", True) == (caught.value.reason, found), caught.value.message


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("socket.create_connection(('127.0.0.1', 22), 1)", UNREACHABLE),
        ("socket.create_connection(('10.0.0.1', 80), 1)", UNREACHABLE),
        ("socket.getaddrinfo('pypi.org', 443)", "gaierror"),
    ],
)
def test_no_network(session: MakeSession, body: str, error: str) -> None:
    _refused(session, body, error)


def test_the_hosts_loopback_is_out_of_reach(session: MakeSession) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _refused(session, f"socket.create_connection(('127.0.0.1', {port}), 1)", UNREACHABLE)


def test_sockets_of_the_host_that_have_no_file_are_out_of_reach(session: MakeSession) -> None:
    import socket

    name = f"\0kernelci-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        body = f"socket.socket(socket.AF_UNIX).connect({name!r})"
        _refused(session, body, "Connection refused|Permission denied|Operation not permitted")


@pytest.mark.parametrize(
    "path",
    [
        str(ROOT / "references" / "softmax.py"),
        str(ROOT / "pyproject.toml"),
        str(Path(__file__)),
        "/etc/passwd",
        "/etc/shadow",
        str(Path.home() / ".gitconfig"),
        "/root/.bashrc",
    ],
)
def test_files_of_the_project_and_the_host_are_not_there(session: MakeSession, path: str) -> None:
    _refused(session, f"pathlib.Path({path!r}).read_text()", "No such file|Permission denied")


@pytest.mark.parametrize(
    "path", ["/x", "/usr/x", "/etc/x", "/dev/x", "/proc/sys/kernel/core_pattern", "{kernelci}", "{package}"]
)
def test_nothing_else_is_writable(session: MakeSession, path: str) -> None:
    places = {"{kernelci}": str(Path(sandbox.__file__).with_name("x.py")), "{package}": f"{os.__file__}c"}
    error = "Error"
    _refused(session, f"open({places.get(path, path)!r}, 'w').write('x')", error)


@pytest.mark.parametrize("place", ["'/tmp/{}'", "os.environ['HOME'] + '/{}'", "'/dev/shm/{}'"])
def test_what_one_candidate_leaves_the_next_does_not_find(session: MakeSession, place: str) -> None:
    place = place.format(uuid.uuid4().hex)
    leave, find = f"open({place}, 'w').write('x')", f"os.path.exists({place}) or 1/0"
    body = f"with contextlib.suppress(PermissionError):\n        {leave} if fault else {find}"
    text = f"import os, contextlib\ndef f(fault):\n    {body}\n"
    session(text).call(Call({}, {"fault": True}, {}))
    with pytest.raises(Stop, match="ZeroDivisionError"):
        session(text).call(Call({}, {"fault": False}, {}))


# What the kernel itself keeps for a user, beside files: keys, and message queues. Calls by their numbers on x86_64.
KEPT = {
    "key": ("syscall(248, b'user', b'ours', b'x', 1, -4)", "syscall(250, 10, -4, b'user', b'ours', 0)"),
    "queue": ("syscall(240, b'ours', 0o102, 0o600, None)", "syscall(240, b'ours', 0o2, 0o600, None)"),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
@pytest.mark.parametrize("kind", KEPT)
def test_what_one_candidate_leaves_in_the_system_the_next_does_not_find(session: MakeSession, kind: str) -> None:
    leave, find = KEPT[kind]
    body = f"libc.{leave} if fault else libc.{find} >= 0 or 1/0"
    text = f"import ctypes\nlibc = ctypes.CDLL(None)\ndef f(fault):\n    {body}\n"
    session(text).call(Call({}, {"fault": True}, {}))
    with pytest.raises(Stop, match="ZeroDivisionError"):
        session(text).call(Call({}, {"fault": False}, {}))


@pytest.mark.parametrize(
    "body",
    [
        "open('/proc/1/mem', 'rb').read(1)",
        "os.kill(1, 9); open('/proc/1/environ', 'rb').read(1)",
        "for pid in set(filter(str.isdigit, os.listdir('/proc'))) - {str(os.getpid())}: open(f'/proc/{pid}/mem', 'rb')",
    ],
)
def test_memory_of_other_processes_is_out_of_reach(session: MakeSession, body: str) -> None:
    _refused(session, body, "Permission denied|Operation not permitted")


def test_only_its_own_processes_are_seen(session: MakeSession, reached: str) -> None:
    if reached == "landlock":  # their numbers are, and no more
        _refused(session, f"open('/proc/{os.getpid()}/cmdline')", "Permission denied")
    else:
        _refused(
            session, "raise OSError(sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit()))", r"\[1, 2\]"
        )


def test_secrets_of_the_environment_do_not_come_in(session: MakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "{'GITHUB_TOKEN', 'SSH_AUTH_SOCK', 'HOME'}"
    _refused(session, f"raise OSError({names} & set(os.environ), os.environ['HOME'])", "{'HOME'}")


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


def test_a_fork_bomb_runs_into_the_limit_and_dies_with_its_candidate(started: Zygote) -> None:
    marker = f"1000.{uuid.uuid4().int}"
    body = f"import subprocess\nwhile True:\n    subprocess.Popen(['sleep', '{marker}'])\n"
    text = f"def f():\n{textwrap.indent(body, '    ')}"
    with contextlib.closing(_opened(started, text)) as bomb, pytest.raises(Stop) as caught:
        bomb.call(NOTHING)
    said = caught.value.message + caught.value.log
    assert "Resource temporarily unavailable" in said or "more than 512 processes" in said
    deadline = time.monotonic() + 10
    while _running(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [] == _running(marker)


def _running(marker: str) -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker in _command(path)]


def _command(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def test_a_full_disk_is_its_own(session: MakeSession, reached: str) -> None:
    if reached == "landlock":
        assert "disk is bounded by the file only" in sandbox.LACKS
        return
    body = """
    for n in range(9):
        with open(f'/private/{n}', 'wb') as file:
            for _ in range(1023):
                file.write(bytes(2**20))
    """
    _refused(session, body, "No space left")


def test_a_file_too_large(session: MakeSession) -> None:
    body = "with open(os.environ['HOME'] + '/x', 'wb') as file:\n    file.truncate(2**31)"
    _refused(session, body, "File too large")


def test_the_arena_can_not_be_shrunk(session: MakeSession) -> None:
    body = """
    for name in os.listdir('/proc/self/fd'):
        if 'kernelci-arena' in os.readlink(f'/proc/self/fd/{name}'):
            os.ftruncate(int(name), 0)
    """
    _refused(session, body, "Operation not permitted")


def test_a_candidate_that_forks_away_is_ended(session: MakeSession) -> None:
    with pytest.raises(Stop) as caught:
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


def test_another_kernelci_on_the_module_path_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "kernelci").mkdir()
    (tmp_path / "kernelci" / "__init__.py").touch()
    own = Path(sandbox.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": f"{own}{os.pathsep}{tmp_path}"}
    ask = "from kernelci.workbench import sandbox; print(sandbox.import_paths())"
    code = subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True).stdout
    found = [sys.executable, "-I", "-c", f"{code}\nimport kernelci; print(kernelci.__file__)"]
    told = subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()
    assert (str(tmp_path) in code, own / "kernelci" / "__init__.py") == (True, Path(told))
