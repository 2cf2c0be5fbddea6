"""An ssh server of this machine's own, run as whoever tests, and a project to send to it."""

import fcntl
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
CARD = '# /// script\n# [tool.kernelci]\n# reference = "sum"\n# backend = "triton"\n# entry = "{0}"\n# ///\n'
SETTINGS = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
LogLevel ERROR
"""
CLIENT = """
Host gpu
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
Host closed
  HostName 127.0.0.1
  Port {closed}
Host stranger
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/nobody
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
"""


def _program() -> str:
    """The server; installed where it is missing and may be. Skips where it can't be had, but on CI."""
    if shutil.which("sshd", path=PLACES) is None and os.getuid() == 0 and shutil.which("apt-get"):
        with open(Path(tempfile.gettempdir(), "kernelci-tests-apt"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            command = ["apt-get", "install", "--yes", "--no-install-recommends", "openssh-server"]
            subprocess.run(command, capture_output=True, timeout=300, check=False)
    found = shutil.which("sshd", path=PLACES)
    if found is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        if os.environ.get("CI"):
            pytest.fail("openssh-server and openssh-client are needed")
        pytest.skip("openssh-server and openssh-client are needed")
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start it; the command that connects to its hosts `gpu`, `closed` (no server) and `stranger` (no key)."""
    program, folder = _program(), tmp_path_factory.mktemp("ssh")
    for name in ("host", "user", "nobody"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=60)
    port, closed = _free_port(), _free_port()
    values = {"folder": folder, "port": port, "closed": closed, "user": getpass.getuser()}
    (folder / "server").write_text(SETTINGS.format(**values))
    (folder / "client").write_text(CLIENT.format(**values))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "server")], stderr=log)
    _wait(port, process, folder / "log")
    yield f"ssh -F {folder / 'client'}"
    process.terminate()
    process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"sshd did not start: {log.read_text()}")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """TMPDIR of the far side."""
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One reference, a kernel that passes precheck and one that does not."""
    folder = tmp_path / "project"
    for name, text in {
        "references/sum.py": (ROOT / "references" / "softmax.py").read_text(),
        "kernels/sum/one.py": CARD.format("one") + "def one(x, y): ...\n",
        "kernels/sum/bad.py": CARD.format("one") + "def other(x, y): ...\n",
        "kernelci.toml": 'targets = ["sm_90a"]\n',
        ".git/private": "no business of another machine\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def git() -> Callable[[Path], str]:
    """Commit all that lies in a folder to a new repository; the commit."""

    def commit(folder: Path) -> str:
        by = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        for arguments in (("init", "-q"), ("add", "--all"), (*by, "commit", "-q", "-m", "base")):
            subprocess.run(["git", "-C", str(folder), *arguments], check=True)
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return commit


@pytest.fixture
def small_disk() -> str:
    """How kernelci is started there where /tmp has room for 5 MiB: for an archive of 4, and not for what is in it."""
    inner = ["--dev-bind", "/", "/", "--size", str(5 * 2**20), "--tmpfs", "/tmp"]
    if ROOT.is_relative_to("/tmp"):
        inner += ["--ro-bind", str(ROOT), str(ROOT)]
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None or subprocess.run([bubblewrap, *inner, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap can't make a small disk here")
    return " ".join([bubblewrap, *inner, "env", "-u", "TMPDIR", f"PYTHONPATH={ROOT}", sys.executable, "-m", "kernelci"])


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(server: str, project: Path, scratch: Path) -> Start:
    """Start `kernelci run --on HOST …` in the project."""

    def begin(*arguments: str, host: str = "gpu", **environ: str) -> "subprocess.Popen[str]":
        there = f"env TMPDIR={scratch} PYTHONPATH={ROOT} {sys.executable} -m kernelci"
        values = {"PYTHONPATH": str(ROOT), "KERNELCI_SSH": server, "KERNELCI_ON_COMMAND": there, **environ}
        return subprocess.Popen(
            [sys.executable, "-m", "kernelci", "--root", str(project), "run", "--on", host, *arguments],
            env={**os.environ, **values}, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    return begin


@pytest.fixture
def run_on(start: Start) -> Callable[..., tuple[int, str, str]]:
    """Run it to its end: exit code, standard output, standard error."""

    def run(*arguments: str, **more: str) -> tuple[int, str, str]:
        process = start(*arguments, **more)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    return run
