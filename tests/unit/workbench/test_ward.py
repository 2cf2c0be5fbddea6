"""What a candidate restricts itself to where no bubblewrap is there."""

import os
import platform
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kernelci.workbench import landlock, namespaces, sandbox, seccomp, ward

NOBODY = 65534
here = pytest.mark.skipif(landlock.version() < landlock.NEEDED, reason="no Landlock here")


def _inside(tmp_path: Path, body: str, user: int = -1) -> subprocess.CompletedProcess[str]:
    """Run the body in a restricted process, under its warden, as a zygote's fork would."""
    rules = ward.encoded(ward.Rules(tuple(map(str, sandbox.reachable(()))), (), str(tmp_path), user))
    start = f"import os, signal\nos.setsid()\nfrom kernelci.workbench import ward\nward.enter({rules!r}, 0)\n"
    code = f"{sandbox.import_paths()}\n{start}{textwrap.dedent(body)}"
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)


@here
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os.kill({test}, 0)", "PermissionError"),
        ("open('/proc/{test}/environ')", "PermissionError"),
        ("os.setpriority(os.PRIO_PROCESS, {test}, 5)", "PermissionError"),
        ("import resource; resource.prlimit({test}, resource.RLIMIT_NOFILE)", "PermissionError"),
        ("import socket; socket.socket(socket.AF_UNIX).connect('/run/docker.sock')", "PermissionError"),
        ("import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "PermissionError"),
        ("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "PermissionError"),
        ("os.sched_setaffinity({test}, [0])", "PermissionError"),
        ("os.truncate(ward.__file__, 0)", "PermissionError"),
        ("os.link(ward.__file__, 'mine')", "cross-device"),
        ("os.setxattr(ward.__file__, 'user.x', b'x')", "PermissionError"),
        ("os.symlink('/etc/passwd', 'link'); open('link')", "PermissionError"),
        ("os.mkfifo('/var/tmp/fifo')", "PermissionError"),
    ],
)
def test_refused(tmp_path: Path, body: str, said: str) -> None:
    assert said in _inside(tmp_path, body.format(test=os.getpid())).stderr


@here
def test_numbered_calls_are_refused(tmp_path: Path) -> None:
    numbers = [row[platform.machine() == "aarch64"] for row in seccomp._table()["refused"].values()]
    done = _inside(
        tmp_path,
        f"""
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        for number in {[number for number in numbers if number >= 0]}:
            assert (-1, errno.EPERM) == (libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno()), number
        """,
    )
    assert (0, "") == (done.returncode, done.stderr)


@here
def test_modes_and_times_of_files_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(0o600)
    before = file.stat()
    done = _inside(tmp_path, f"os.chmod({str(file)!r}, 0o777), os.utime({str(file)!r}, (1, 1))")
    assert (0, before.st_mode, before.st_mtime) == (done.returncode, file.stat().st_mode, file.stat().st_mtime)


@here
def test_what_honest_kernels_need(tmp_path: Path) -> None:
    done = _inside(
        tmp_path,
        """
        import socket, subprocess, tempfile, threading
        open('x', 'w').write('x'), open('/dev/null', 'w').write('x'), open('/dev/urandom', 'rb').read(1)
        os.mkdir('d'), os.rename('x', 'd/x'), os.remove('d/x'), os.rmdir('d')
        one, other = socket.socketpair()
        subprocess.run(['/bin/sh', '-c', 'exit 0'], check=True, start_new_session=True)
        with tempfile.NamedTemporaryFile(dir='.') as file:
            file.write(b'x')
        thread = threading.Thread(target=os.getpid)
        thread.start(), thread.join()
        print(open('/proc/self/status').read(4), open('/proc/meminfo').read(3))
        """,
    )
    assert (0, "Name Mem\n", "") == (done.returncode, done.stdout, done.stderr)


@here
@pytest.mark.parametrize("body", ["os._exit(7)", "os.kill(os.getpid(), signal.SIGSEGV)", "pass"])
def test_the_warden_ends_as_its_candidate_and_drops_its_folder(tmp_path: Path, body: str) -> None:
    expected = {"os._exit(7)": 7, "pass": 0}.get(body, -signal.SIGSEGV)
    assert (expected, []) == (_inside(tmp_path, body).returncode, list(tmp_path.iterdir()))


@here
def test_a_daemon_is_ended_with_its_candidate(tmp_path: Path) -> None:
    done = _inside(
        tmp_path,
        """
        import time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                time.sleep(99)
            os._exit(0)
        time.sleep(0.5)
        """,
    )
    assert not Path("/proc", done.stdout.strip()).exists()


@here
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_becomes_nobody_where_all_is_open_to_all(tmp_path: Path) -> None:
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o711)
    done = _inside(tmp_path, "os.write(1, f'{os.getresuid()} {os.stat(chr(46)).st_uid}'.encode())", NOBODY)
    assert f"({NOBODY}, {NOBODY}, {NOBODY}) {NOBODY}" == done.stdout


@here
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_has_no_capabilities(tmp_path: Path) -> None:
    done = _inside(tmp_path, "print([line[7:-1] for line in open('/proc/self/status') if line.startswith('Cap')])")
    assert str(["0" * 16] * 5) == done.stdout.strip().replace("\\t", "")


def test_what_holds_a_hidden_folder_is_granted_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("venv/lib", "venv/project/references", "venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(sandbox, "_wanted", lambda: (tmp_path,))
    found = sandbox.reachable([tmp_path / "venv" / "project"])
    assert {tmp_path / "venv" / "lib", tmp_path / "venv" / "bin"} == set(found)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("scoped", [True, False])
def test_jumps_stay_within_the_program(machine: str, scoped: bool) -> None:
    found = seccomp.program(machine, 7, scoped)
    after = [place + 1 + max(one[1], one[2]) for place, one in enumerate(found)]
    assert max(after) <= len(found) < 4096


@here
def test_without_scopes_signals_stay_inside_by_the_filter(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            namespaces.check(landlock._libc.prctl(38, 1, 0, 0, 0), "prctl")
            seccomp.install(seccomp.program(platform.machine(), os.getpid(), False))
            os.kill(os.getpid(), 0)
            os.kill(os.getppid(), 0)
        except PermissionError:
            code = 0
        finally:
            os._exit(code)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_an_instruction_is_eight_bytes() -> None:
    assert 8 == struct.calcsize("HBBI")
