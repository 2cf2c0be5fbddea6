"""What a forked candidate does to itself before it reads a byte of the kernel: namespaces, files and limits of its own.

Three processes: the warden (stays in the zygote's namespaces, watches memory, passes signals on, reports how it ended),
the reaper (first process of the new process namespace, whose end kills all others there), and the candidate.
"""

import contextlib
import ctypes
import os
import resource
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from kernelci.workbench.sandbox import PRIVATE, PRIVATE_BYTES, SHM_BYTES

# From the kernel's headers: sched.h, mount.h, prctl.h, capability.h.
_NEW = 0x00020000 | 0x10000000 | 0x20000000 | 0x08000000 | 0x40000000 | 0x04000000  # ns, user, pid, ipc, net, uts
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
_CAPABILITY_VERSION_3 = 0x20080522

POLL_S = 0.1
_HELD = f"{PRIVATE}/.tmp"
FILE_BYTES = 2**30
PROCESSES = 512  # threads count too: CUDA, compilers and BLAS take some dozens

_libc = ctypes.CDLL(None, use_errno=True)


def undumpable() -> None:
    """Let no process of the same user read this one's memory (prctl(2), PR_SET_DUMPABLE)."""
    check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Let what ended processes below us leave come to us, and not to init: we are a "subreaper". Raises OSError."""
    check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def enter(memory_bytes: int) -> None:
    """Leave everything that is shared with other candidates; returns in the candidate only."""
    check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # else the id maps can't be written
    user, group = os.getuid(), os.getgid()
    check(_libc.unshare(_NEW), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    read, write = os.pipe()
    reaper = os.fork()
    if reaper:
        os.close(write)
        _watch(reaper, read, memory_bytes)
    os.close(read)
    _own_files()
    candidate = os.fork()
    if candidate:
        _reap(candidate, write)
    os.close(write)
    os.setsid()  # a signal to its own group must not reach the warden
    _give_up()


def _own_files() -> None:
    """Files and a process list of its own; nothing else is writable."""
    check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _mount("tmpfs", PRIVATE, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={PRIVATE_BYTES},mode=700")
    _mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={SHM_BYTES}")
    _own_tmp()
    with contextlib.suppress(OSError):  # no namespaces below this one, in which it would have capabilities again
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    os.chdir(PRIVATE)


def _own_tmp() -> None:
    """A /tmp of its own; where this interpreter lies below /tmp, the read-only folders that hold it are kept."""
    kept = list(Path("/tmp").iterdir())
    if kept:
        Path(_HELD).mkdir()
        _mount("/tmp", _HELD, "", _MS_BIND | _MS_REC)
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={PRIVATE_BYTES}")
    for path in kept:
        path.mkdir() if Path(_HELD, path.name).is_dir() else path.touch()
        _mount(f"{_HELD}/{path.name}", str(path), "", _MS_BIND | _MS_REC)


def _give_up() -> None:
    """Drop every capability that the new namespaces gave, for good, and set the limits."""
    check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    without_capabilities()
    limited()


def without_capabilities() -> None:
    """Drop every capability of this thread (capset(2))."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def limited() -> None:
    """Bound the processes and the size of the files of this process and all it starts."""
    for kind, limit in ((resource.RLIMIT_NPROC, PROCESSES), (resource.RLIMIT_FSIZE, FILE_BYTES)):
        resource.setrlimit(kind, (limit, limit))


def _watch(reaper: int, status: int, memory_bytes: int) -> None:
    """The warden: end as the candidate ended; SIGKILL says that it took more memory than it may."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # so that its end wakes sigtimedwait at once
    signal.signal(signal.SIGTERM, passing(reaper, signal.SIGKILL))
    signal.signal(signal.SIGUSR1, passing(reaper, signal.SIGUSR1))
    while os.waitpid(reaper, os.WNOHANG)[0] == 0:
        if memory_bytes and memory(reaper) > memory_bytes:
            os.kill(reaper, signal.SIGKILL)
            os.waitpid(reaper, 0)
            os.kill(os.getpid(), signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, POLL_S)
    data = os.read(status, 4)
    end_as(struct.unpack("i", data)[0] if len(data) == 4 else 1)


def passing(pid: int, number: int) -> Callable[[int, FrameType | None], None]:
    """A handler that sends a signal on to another process."""

    def handle(received: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    return handle


def _reap(candidate: int, status: int) -> None:
    """The reaper: collect orphans until the candidate ends; what it left behind dies with this process."""
    signal.signal(signal.SIGUSR1, passing(candidate, signal.SIGUSR1))
    undumpable()
    while True:
        pid, ended = os.waitpid(-1, 0)
        if pid == candidate:
            os.write(status, struct.pack("i", ended))
            os._exit(0)


def end_as(ended: int) -> None:
    """End this process as another ended, whose status (wait(2)) this is."""
    code = os.waitstatus_to_exitcode(ended)
    if code == -signal.SIGKILL:
        os._exit(128 + signal.SIGKILL)  # it killed itself: SIGKILL of the warden means memory
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def memory(root: int) -> int:
    """Anonymous and shared memory of a process and everything below it, in bytes (proc(5): status, stat)."""
    return sum(own_memory(pid) for pid in family(root))


def family(root: int) -> list[int]:
    """A process and everything below it, by number."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # by names: Path objects took a third of the interpreter's time, ten lanes at once
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(name)] = int(_read(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])
    found = []
    for pid in parents:
        ancestor = pid
        while ancestor not in (root, 0) and ancestor in parents:
            ancestor = parents[ancestor]
        if ancestor == root:
            found.append(pid)
    return found


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(8192)


def own_memory(pid: int) -> int:
    """Anonymous memory of one process, in bytes; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError):
        for line in _read(f"/proc/{pid}/status").splitlines():
            if line.startswith(b"RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    check(done, f"mount {target}")


def check(result: int, what: str) -> None:
    """Raise OSError if a call of the C library failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def probe() -> None:
    """Enter once, in a child, and fail where that fails: run inside the sandbox to see whether it works here."""
    undumpable()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            enter(0)
            Path(PRIVATE, "probe").write_text("x", encoding="ascii")
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
