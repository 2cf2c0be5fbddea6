"""What a forked candidate does to itself where bubblewrap is missing: Landlock, seccomp, limits, a folder of its own.

Two processes: the warden, which stays outside, adopts whatever the candidate leaves, watches memory and ends all of it;
and the candidate. What this lacks beside namespaces is in `sandbox.LACKS`; a report says it.
"""

import contextlib
import ctypes
import os
import platform
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci.workbench import landlock, namespaces, seccomp
from kernelci.workbench.namespaces import FILE_BYTES, POLL_S, PROCESSES

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_CAPABILITIES = 64
# What CUDA, Python and compilers ask the kernel; of other processes no more than their numbers.
_PROC = ("self", "cpuinfo", "meminfo", "stat", "version", "filesystems", "devices", "modules", "driver", "sys/vm")
_NODES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


class Rules(Struct, frozen=True):
    """What a zygote's candidates may reach, and the user that they become (-1: stay the same one)."""

    readable: tuple[str, ...]
    devices: tuple[str, ...]
    private: str
    user: int = -1


def encoded(rules: Rules) -> str:
    """As a zygote finds them in its environment."""
    return msgspec.json.encode(rules).decode()


def enter(text: str, memory_bytes: int) -> None:
    """Leave what these encoded rules don't grant; returns in the candidate only, as the child of its warden."""
    rules = msgspec.json.decode(text, type=Rules)
    own = Path(tempfile.mkdtemp(prefix="own-", dir=rules.private))
    if rules.user >= 0:
        os.chown(own, rules.user, rules.user)
    namespaces.adopt_orphans()
    namespaces.check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0), "prctl")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    candidate = os.fork()
    if candidate:
        try:
            _watch(candidate, memory_bytes, own)
        finally:
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGTERM})
    os.setsid()  # a group of its own, which seccomp lets nothing leave
    _settle(rules.private, own)
    _restrict(rules, own)


def _settle(private: str, own: Path) -> None:
    """Everything that the environment lays into the zygote's folder goes into the candidate's own."""
    for name, value in os.environ.items():
        if value == private or value.startswith(f"{private}/"):
            os.environ[name] = f"{own}{value[len(private) :]}"
    tempfile.tempdir = None
    os.chdir(own)


def _restrict(rules: Rules, own: Path) -> None:
    limit = _tasks(os.getuid() if rules.user < 0 else rules.user) + PROCESSES
    for kind, bound in ((resource.RLIMIT_NPROC, limit), (resource.RLIMIT_FSIZE, FILE_BYTES)):
        resource.setrlimit(kind, (bound, bound))
    _give_up(rules.user)
    calls = seccomp.program(platform.machine(), os.getpid(), landlock.version() >= landlock.SCOPED)
    proc = [Path("/proc", name) for name in _PROC]
    nodes = [Path("/dev", name) for name in _NODES]
    readable, devices = map(Path, rules.readable), map(Path, rules.devices)
    landlock.restrict([*readable, *proc], [own], [*nodes, *devices, Path("/proc/self")], listed=[Path("/proc")])
    seccomp.install(calls)


def _give_up(user: int) -> None:
    """Become that user and drop every capability for good; then die with the warden."""
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for those that aren't there or aren't ours
    if user >= 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    namespaces.check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    namespaces.without_capabilities()
    namespaces.check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # else its own /proc/self is not its own
    namespaces.check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def _tasks(user: int) -> int:
    """Processes and threads that the user has now: the limit counts them all, here and elsewhere."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            count += len(os.listdir(f"/proc/{name}/task")) if os.stat(f"/proc/{name}").st_uid == user else 0
    return count


def _watch(candidate: int, memory_bytes: int, own: Path) -> None:
    """The warden: end as the candidate ended, with all that it left; SIGKILL says that it took too much memory."""
    signal.signal(signal.SIGUSR1, namespaces.passing(candidate, signal.SIGUSR1))
    while os.waitid(os.P_PID, candidate, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        received = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, POLL_S)
        if received is not None and received.si_signo == signal.SIGTERM:
            _end_all(candidate, own)
            os._exit(1)
        family = [pid for pid in namespaces.family(os.getpid()) if pid != os.getpid()]
        if len(family) > PROCESSES:  # the limit does not bind root
            _end_all(candidate, own)
            os.write(2, f"ended: it had started more than {PROCESSES} processes\n".encode())
            os._exit(1)
        if memory_bytes and sum(map(namespaces.own_memory, family)) > memory_bytes:
            _end_all(candidate, own)
            os.kill(os.getpid(), signal.SIGKILL)
    ended = _end_all(candidate, own)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # it may have ended by that one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    namespaces.end_as(ended)


def _end_all(candidate: int, own: Path) -> int:
    """Kill the candidate's group, which is all it started, and wait for it; its own status (wait(2))."""
    for kill in (os.killpg, os.kill):  # by its number too: it may not have made its group yet
        with contextlib.suppress(ProcessLookupError):
            kill(candidate, signal.SIGKILL)
    status = signal.SIGKILL.value
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, 0)
            status = ended if pid == candidate else status
    shutil.rmtree(own, ignore_errors=True)
    return status


def probe() -> None:
    """Restrict a child of this process and see that it holds; exits with 1, the reason printed, where it doesn't."""
    if landlock.version() < landlock.NEEDED or not seccomp.known_machine():
        sys.exit(f"version {landlock.version()} on {platform.machine()}; {landlock.NEEDED} or later needed (Linux 6.2)")
    private = tempfile.mkdtemp(prefix="kernelci-")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            enter(encoded(Rules((), (), private)), 0)
            code = 0 if _held() else 1
        except Exception as error:
            os.write(2, str(error).encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    shutil.rmtree(private, ignore_errors=True)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _held() -> bool:
    refused: Iterable[tuple[str, int]] = (("/etc/hostname", os.O_RDONLY), ("/tmp", os.O_RDONLY))
    for path, flags in refused:
        with contextlib.suppress(OSError):
            os.close(os.open(path, flags))
            return False
    Path("probe").write_bytes(b"x")
    return True
