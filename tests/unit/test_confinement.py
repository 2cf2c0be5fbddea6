"""A hostile judge in its sandbox: what it tries from a rung of its own, and that none of it gets out."""

import json
import os
import socket
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci import confinement
from kernelci.confinement import Bounds
from kernelci.second import MAX_BYTES, Confined
from kernelci.workbench import sandbox
from kernelci.workbench.device import Device

pytestmark = pytest.mark.skipif(not sandbox.level().sandboxed, reason=f"no sandbox here: {sandbox.level().why}")
CARD = '# /// script\n# [tool.kernelci]\n# reference = "sum"\n# backend = "triton"\n# entry = "sum"\n# ///\n'
ATTEMPTS = """
    import json, os, pathlib, resource, socket, sys

    SECRET, PID, PORT, NAME, ROOT = {secret!r}, {pid}, {port}, {name!r}, {root!r}

    def opened(path):
        return pathlib.Path(path).read_text()

    def put(path):
        pathlib.Path(path).write_text("was here")
        return "written"

    def dialled(family, address):
        with socket.socket(family) as line:
            line.settimeout(5)
            line.connect(address)
            return "connected"

    def looked(path):
        return os.listdir(path)

    attempts = {{
        "read a file of the host": lambda: opened(SECRET),
        "read the environment": lambda: [name for name in os.environ if "SECRET" in name or "TOKEN" in name],
        "read another's environment": lambda: opened(f"/proc/{{PID}}/environ"),
        "signal a process of the host": lambda: os.kill(PID, 0),
        "call the host": lambda: dialled(socket.AF_INET, ("127.0.0.1", PORT)),
        "call the host by name": lambda: dialled(socket.AF_UNIX, chr(0) + NAME),
        "read the repository": lambda: looked(pathlib.Path(ROOT).parent / ".git"),
        "write to the project": lambda: put(f"{{ROOT}}/references/sum.py"),
        "write beside kernelci": lambda: put({package!r} + "/evil.py"),
        "write to the host's home": lambda: put(pathlib.Path({home!r}) / "evil"),
        "become root": lambda: os.setuid(0),
        "take back a limit": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10**5, 10**5)),
        "see devices": lambda: [name for name in os.listdir("/dev") if name.startswith(("sd", "vd", "kvm", "mem"))],
    }}
    said = {{}}
    for name, attempt in attempts.items():
        try:
            said[name] = attempt()
        except Exception as error:
            said[name] = type(error).__name__
    said["user"] = os.getuid()
    pathlib.Path("/tmp/left-{pid}").write_text("mine")
    print("SAID" + json.dumps(said), file=sys.stderr, flush=True)
    os._exit(0)
"""
REFUSED = (
    "FileNotFoundError",
    "PermissionError",
    "ProcessLookupError",
    "ConnectionRefusedError",
    "ValueError",
    "OSError",
    [],
)


def written(folder: Path, rung: str) -> Path:
    """A project with one kernel, whose own rung is this text."""
    root = folder / "head"
    for name, text in {
        "kernels/sum/one.py": CARD,
        "references/sum.py": "reference = 1\n",
        "rungs/own.py": textwrap.dedent(rung),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / ".git").mkdir()
    return root


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a project with such a rung."""
    return lambda rung: written(tmp_path, rung)


def ran(root: Path, **bounds: Any) -> tuple[Confined, bytes]:
    wanted = Bounds(**{"seconds": 120.0, "memory_bytes": 2**33} | bounds)
    return confinement.confined(root, (root,), ("run", "--", "sum/one"), wanted)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Confined, bytes]:
    """The folder, and what a rung left that tried all of that while the host listened."""
    folder, name = tmp_path_factory.mktemp("hostile"), f"kernelci-{os.getpid()}"
    (folder / "secret").write_text("42")
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.socket() as port,
        socket.socket(socket.AF_UNIX) as named,
    ):
        patch.setenv("KERNELCI_TEST_SECRET", "42")
        patch.setenv("GITHUB_TOKEN", "42")
        port.bind(("127.0.0.1", 0))
        named.bind(f"\0{name}")
        port.listen()
        named.listen()
        values = {
            "secret": str(folder / "secret"), "pid": os.getpid(), "port": port.getsockname()[1], "name": name,
            "root": str(folder / "head"), "package": str(Path(confinement.__file__).parent), "home": str(Path.home()),
        }  # fmt: skip
        return (folder, *ran(written(folder, textwrap.dedent(ATTEMPTS).format(**values))))


def test_nothing_of_the_host_is_within_reach(hostile) -> None:
    folder, found, said = hostile
    tried = json.loads(found.log.partition("SAID")[2].splitlines()[0])
    user = tried.pop("user")
    assert {} == {what: how for what, how in tried.items() if how not in REFUSED}
    assert ("FileNotFoundError", "ProcessLookupError") == (
        tried["read a file of the host"],
        tried["signal a process of the host"],
    )
    assert user == sandbox.NOBODY or os.geteuid() != 0
    assert ("reference = 1\n", b"") == ((folder / "head/references/sum.py").read_text(), said)
    assert not Path(f"/tmp/left-{os.getpid()}").exists()


def test_the_sandboxs_own_side_says_what_stands_around_it(hostile) -> None:
    _, found, _ = hostile
    outer, _, inner = found.isolation.partition("; candidates in it: ")
    assert "bubblewrap, unprivileged user, namespaces and files per kernel, no network, for the whole run" == outer
    assert inner.startswith(("bubblewrap, ", "Landlock and seccomp, ", sandbox.PLAIN))
    assert "it left no report" == found.why


def test_one_that_never_ends_is_ended(project) -> None:
    root = project("import os, time\nos.close(1)\nif os.fork() == 0: os.setsid()\nwhile True: time.sleep(1)\n")
    found, said = ran(root, seconds=3.0)
    assert ("it was not done within 3 s", b"") == (found.why, said)
    assert [] == [pid for pid in os.listdir("/proc") if pid.isdigit() and str(root) in _command(pid)]


def _command(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text()
    except OSError:
        return ""


def test_one_that_prints_without_end_costs_no_memory() -> None:
    log = confinement.run(["sh", "-c", "yes no | head -c 3000000 >&2"], (), Bounds(60.0, 2**33), Device("cpu")).log
    assert log.endswith("no\n")
    assert len(log) <= confinement.LOG_BYTES


def test_one_that_eats_memory_is_ended(project) -> None:
    text = "import time\neaten = [b'x' * 2**20 for _ in range(700)]\ntime.sleep(600)\n"
    found, _ = ran(project(text), memory_bytes=2**29, seconds=500.0)
    assert found.why.startswith("it took more than")


def test_a_huge_report_is_not_taken_over(project) -> None:
    text = f"""
        import os, pathlib
        pathlib.Path("{confinement.OUT}").mkdir()
        with open("{confinement.OUT}/results.json", "wb") as file:
            file.truncate({MAX_BYTES + 1})
        os._exit(0)
    """
    found, said = ran(project(text))
    assert ("it wrote more than 16 MiB", b"") == (found.why, said)


def test_without_bubblewrap_nothing_of_the_head_runs(project, monkeypatch) -> None:
    level = sandbox.Level("landlock", "Landlock", "not installed: bwrap")
    monkeypatch.setattr(sandbox, "level", lambda: level)
    found, said = ran(project("raise SystemExit"))
    assert ("it needs bubblewrap, and this machine has Landlock: not installed: bwrap", b"") == (found.why, said)


def test_where_namespaces_do_not_nest_candidates_still_get_the_next_level(monkeypatch) -> None:
    plain = sandbox._NAMESPACES
    monkeypatch.setattr(sandbox, "_NAMESPACES", (plain[0], "--disable-userns", *plain[1:]))
    inner = confinement._level_inside(Device("cpu"))
    assert inner.name in ("landlock", "process")
    assert "bubblewrap failed" in inner.why


def test_templates_of_the_heads_are_tried_in_there_too(project) -> None:
    root = project(
        f"""
        import os, pathlib
        from kernelci import results
        from kernelci.model import Environment, Report

        pathlib.Path("{confinement.OUT}").mkdir()
        results.write(Report(1, "0", "now", 0.0, Environment("m", "3"), ()), pathlib.Path("{confinement.OUT}"))
        os._exit(0)
        """
    )
    (root / "report_templates").mkdir()
    (root / "report_templates" / "comment.md.j2").write_text("{% include 'nowhere' %}")
    found, said = ran(root)
    assert ("its report_templates can't be rendered", "") == (found.remark, found.why)
    assert said.startswith(b"{")
