"""The sandbox around a zygote: bubblewrap as an unprivileged user; where that is not to be had, what a candidate does
to itself (`ward.py`); or else a plain process.

Inside bubblewrap: no network, own processes, a read-only file system that holds the interpreter, its packages, the
system's libraries and one GPU's device nodes, and nothing of the project. `namespaces.py` then gives each forked
candidate namespaces, files and limits of its own.
"""

import functools
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci.workbench import toolkit

PRIVATE = "/private"  # each candidate's own files
PRIVATE_BYTES = 2 * 2**30  # the candidate's own files, compilers' scratch included
SHM_BYTES = 256 * 2**20
NOBODY = 65534
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_PROBE_S = 20.0


class Level(Struct, frozen=True):
    """How well candidates are contained on this machine, and why not better."""

    name: str  # "bubblewrap", "landlock" or "process"
    text: str
    why: str = ""

    @property
    def sandboxed(self) -> bool:
        """Whether the project's files, the network and other processes are out of reach."""
        return self.name == "bubblewrap"

    @property
    def restricted(self) -> bool:
        """Whether each candidate restricts itself, since no sandbox is around it."""
        return self.name == "landlock"


PLAIN = "a process of its own, not sandboxed"
LACKS = "process numbers are seen, names of files can be tried, disk is bounded by the file only, tools run free"
_PROBE = "from kernelci.workbench import {0}; {0}.probe()"


@functools.cache
def level() -> Level:
    """What this machine allows, found by trying it once. KERNELCI_SANDBOX=off turns the sandbox off."""
    if os.environ.get("KERNELCI_SANDBOX", "").lower() in ("off", "0", "no"):
        return Level("process", PLAIN, "switched off by KERNELCI_SANDBOX")
    lacking = _lacks_bubblewrap()
    if not lacking:
        return Level("bubblewrap", "bubblewrap, unprivileged user, namespaces and files per kernel, no network")
    more = _fails("Landlock", [sys.executable, "-I", "-c", f"{import_paths()}{_PROBE.format('ward')}"])
    if not more:
        user = "as root without capabilities, " if os.geteuid() == 0 and lower_user(reachable(())) < 0 else ""
        return Level("landlock", f"Landlock and seccomp, {user}no network; {LACKS}", lacking)
    return Level("process", PLAIN, f"{lacking}; {more}")


def _lacks_bubblewrap() -> str:
    """Why the sandbox can't be had here; empty if it can."""
    missing = [tool for tool in ("bwrap", *_root_tools()) if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: bubblewrap, util-linux, mount)"
    with Jail((), ()) as jail:
        code = f"{import_paths()}{_PROBE.format('namespaces')}"
        return _fails("bubblewrap", jail.command([sys.executable, "-I", "-c", code]))


def _fails(name: str, command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        return f"{name} did not answer within {_PROBE_S:.0f} s"
    return f"{name} failed: {(done.stderr or done.stdout).strip()[-300:]}" if done.returncode else ""


def import_paths() -> str:
    """Python code that gives an isolated interpreter this one's module path, without what holds the project."""
    return f"import sys; sys.path[:0] = {[str(path) for path in _module_path()]!r}; "


class Jail:
    """One sandbox: the bind mounts it needs. As root they are staged where the unprivileged user can reach them.

    `shown` is visible besides what every interpreter needs; `writable` files of the host lie at other paths inside.
    `alone`: no zygote that gives each candidate files of its own, so the sandbox itself bounds what can be written.
    """

    def __init__(
        self,
        devices: Sequence[str],
        hidden: Iterable[Path],
        *,
        shown: Iterable[Path] = (),
        writable: Mapping[str, Path] | None = None,
        alone: bool = False,
    ) -> None:
        self._devices = devices
        self._shown = tuple(path.resolve() for path in shown)
        self._writable = dict(writable or {})
        self._alone = alone
        self._hidden = [path.resolve() for path in hidden]
        self._stage = Path(tempfile.mkdtemp(prefix="kernelci-stage-")) if os.geteuid() == 0 else None
        if self._stage is not None:
            self._stage.chmod(0o755)

    def __enter__(self) -> "Jail":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder for staging; its mounts were only ever visible inside the sandbox."""
        if self._stage is not None:
            shutil.rmtree(self._stage, ignore_errors=True)

    def command(self, inner: Sequence[str]) -> list[str]:
        """The command line that runs `inner` in the sandbox."""
        binds, mounts = self._binds()
        own = [part for inside, file in self._writable.items() for part in ("--bind", str(file), inside)]
        tmp = _BOUNDED if self._alone else ("--remount-ro", "/tmp")
        files = [*binds, *_devices(self._devices), *tmp, *own]
        start = ("--chdir", PRIVATE if self._alone else "/")
        bwrap = ["bwrap", *_NAMESPACES, *files, *_READ_ONLY, *start, "--", *inner]
        if self._stage is None:
            return bwrap
        drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *bwrap]
        script = "; ".join(["set -e", *mounts, f"exec {shlex.join(drop)}"])
        return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script]

    def _binds(self) -> tuple[list[str], list[str]]:
        """bwrap's arguments, parents before what lies in them, and the mounts that root makes first."""
        arguments: list[str] = []
        mounts: list[str] = []
        masks = self._masks()
        for path in sorted({*self._bound(), *masks}, key=lambda path: len(path.parts)):
            if path in masks:
                arguments += ["--tmpfs", str(path)]
                continue
            source = path
            if self._stage is not None and not _open_to_all(path):
                source = self._stage / str(len(mounts))
                (source.mkdir if path.is_dir() else source.touch)()
                mounts.append(shlex.join(["mount", "--bind", str(path), str(source)]))
            arguments += ["--ro-bind", str(source), str(path)]
        return arguments, mounts

    def _bound(self) -> list[Path]:
        wanted = _wanted()
        return [*wanted, *(path for path in self._shown if not any(path.is_relative_to(bound) for bound in wanted))]

    def _masks(self) -> list[Path]:
        """Hidden folders that lie within something mounted."""
        return [path for path in self._hidden if any(path.is_relative_to(bound) for bound in self._bound())]


# Whatever a candidate may write is mounted by itself, over these: what one could leave here, another could read.
_READ_ONLY = ("--remount-ro", "/", "--remount-ro", "/dev")
_NAMESPACES = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"),
    *("--size", str(PRIVATE_BYTES), "--tmpfs", "/tmp", "--tmpfs", PRIVATE),
)
_BOUNDED = (
    *("--size", str(PRIVATE_BYTES), "--tmpfs", PRIVATE),
    *("--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"),
)


def _root_tools() -> tuple[str, ...]:
    return ("setpriv", "unshare", "mount") if os.geteuid() == 0 else ()


@functools.cache
def _wanted() -> tuple[Path, ...]:
    """What an interpreter needs: the system, Python, its packages, a CUDA toolkit; and kernelci's own code."""
    paths = [Path(path) for path in _SYSTEM] + [Path("/etc", name) for name in _ETC]
    paths += [Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.executable)).parent.parent]
    package = Path(__file__).resolve().parents[1]
    paths += [*(path for path in _module_path() if path != package.parent), *filter(None, [toolkit.home()])]
    found = {path for path in (*paths, package) if path.exists()}
    return tuple(path for path in found if not any(path.is_relative_to(other) for other in found - {path}))


def reachable(hidden: Iterable[Path]) -> list[Path]:
    """What an interpreter needs, as paths none of which holds a hidden folder: for rules that can only grant."""
    masks = [path.resolve() for path in hidden]
    found: list[Path] = []
    wanted = list(_wanted())
    while wanted:
        path = wanted.pop()
        if any(mask.is_relative_to(path) and mask != path for mask in masks):
            wanted += [inner for inner in path.iterdir() if inner.resolve() not in masks]
        elif path.resolve() not in masks:
            found.append(path)
    return found


def lower_user(paths: Iterable[Path]) -> int:
    """The user that a candidate becomes: nobody if this is root and nobody can reach these paths, else -1."""
    return NOBODY if os.geteuid() == 0 and all(map(_open_to_all, paths)) else -1


@functools.cache
def _module_path() -> tuple[Path, ...]:
    """This interpreter's module path, with the folder of kernelci itself, of which only the package is mounted, where
    this interpreter has it: another kernelci that is installed must not come first inside.

    The folder of the started script, which Python puts first, and folders that hold kernelci's are left out.
    """
    own = Path(__file__).resolve().parents[2]
    script = Path(getattr(sys.modules.get("__main__"), "__file__", None) or "/-").resolve().parent
    found = [Path(path).resolve() for path in sys.path if path and Path(path).is_dir()]
    kept = [path for path in found if path == own or not (own.is_relative_to(path) or path == script)]
    return tuple(dict.fromkeys([*kept, own]))


def visible(folders: str) -> str:
    """Of a search path, the folders that are there inside the sandbox; then the system's own."""
    wanted = _wanted()
    kept = [path for path in folders.split(os.pathsep) if any(Path(path).is_relative_to(bound) for bound in wanted)]
    return os.pathsep.join(dict.fromkeys([*kept, "/usr/local/bin", "/usr/bin", "/bin"]))


def _open_to_all(path: Path) -> bool:
    """Whether any user can reach the path."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.parents))


def _devices(nodes: Sequence[str]) -> list[str]:
    return [part for node in nodes for part in ("--dev-bind", node, node)]


def gpu_nodes(number: int | None, folder: Path = Path("/dev")) -> list[str]:
    """The device nodes that CUDA needs for the GPU whose node has this number; all GPUs' where that is not known."""
    shared = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
    own = folder / f"nvidia{number}"
    gpus = [own] if own.exists() else sorted(folder.glob("nvidia[0-9]*"))
    return [str(path) for path in (*gpus, *(folder / name for name in shared)) if path.exists()]


def visible_gpu(number: int | None, uuid: str, folder: Path = Path("/dev")) -> str:
    """CUDA_VISIBLE_DEVICES of a process that may see one GPU only; within, it is `cuda:0`. Empty: leave it unset.

    Where the sandbox shows one GPU's node, CUDA numbers it 0. By its UUID torch could not find it there without opening
    a CUDA context, since NVML counts the hidden ones too and tells nothing of them.
    """
    alone = level().sandboxed and (folder / f"nvidia{number}").exists()
    return "0" if alone else uuid
