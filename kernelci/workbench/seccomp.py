"""A filter of system calls for a candidate, where no bubblewrap is there: a small BPF program (seccomp(2)).

Which calls are refused is in syscalls.toml. Sockets are local streams that can't be connected to anything: CUDA opens
one for itself. New sessions and process groups are made in pretence only, so that one signal reaches all that a
candidate started; so are changes of a file's mode, owner and times, which Landlock leaves to whoever owns the file.
"""

import ctypes
import errno
import os
import platform
import struct
import tomllib
from functools import cache
from pathlib import Path

# From the kernel's headers: audit.h, filter.h, seccomp.h, prctl.h, sched.h, socket.h.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the table, AUDIT_ARCH
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_AF_UNIX, _STREAM, _SEQPACKET, _TYPE = 1, 1, 5, 0xF
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def known_machine() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine() in _MACHINES


def install(instructions: list[Instruction]) -> None:
    """Filter this thread's system calls and those of all it starts, for good. Needs no_new_privs. Raises OSError."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    header = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def program(machine: str, pid: int, signals_scoped: bool) -> list[Instruction]:
    """The filter for the process `pid`. `signals_scoped`: something else keeps its signals from other processes."""
    column, arch = _MACHINES[machine]
    found = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _end(_KILL), (_LOAD, 0, 0, _NR)]
    if machine == "x86_64":
        found += [(_AT_LEAST, 0, 1, _X32), _fails(errno.ENOSYS)]
    table = _table()
    bodies = {name: [_fails(errno.EPERM)] for name in table["refused"]} | _judged(pid)
    bodies |= {name: [_fails(0)] for name in table["pretended"]}
    if not signals_scoped:
        bodies |= {name: [_fails(errno.EPERM)] for name in table["signals"]}
        bodies |= {name: _only(0, (0, pid)) for name in ("kill", "tgkill")}
    numbers = {name: row[column] for part in table.values() for name, row in part.items()}
    for name, body in bodies.items():
        if numbers[name] >= 0:
            found += [(_EQUAL, 0, len(body), numbers[name]), *body]
    return [*found, _end(_ALLOW)]


@cache
def _table() -> dict[str, dict[str, list[int]]]:
    return tomllib.loads(Path(__file__).with_name("syscalls.toml").read_text(encoding="utf-8"))


def _judged(pid: int) -> dict[str, list[Instruction]]:
    streams: list[Instruction] = [
        (_LOAD, 0, 0, _ARGUMENTS),
        (_EQUAL, 0, 5, _AF_UNIX),
        (_LOAD, 0, 0, _ARGUMENTS + 8),
        (_AND, 0, 0, _TYPE),
        (_EQUAL, 1, 0, _STREAM),
        (_EQUAL, 0, 1, _SEQPACKET),
        _end(_ALLOW),
        _fails(errno.EACCES),
    ]
    clone = [(_LOAD, 0, 0, _ARGUMENTS), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _fails(errno.EPERM), _end(_ALLOW)]
    return {
        "socket": streams,
        "socketpair": streams,
        "clone": clone,
        "clone3": [
            _fails(errno.ENOSYS)
        ],  # its flags lie in memory, where a filter can't look; libc falls back to clone
        "prlimit64": _only(0, (0, pid)),
        "sched_setaffinity": _only(0, (0, pid)),
    }


def _only(argument: int, values: tuple[int, int]) -> list[Instruction]:
    """Allow a call if the low half of this argument is one of the values."""
    first, second = values
    load = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)
    return [load, (_EQUAL, 1, 0, first), (_EQUAL, 0, 1, second), _end(_ALLOW), _fails(errno.EPERM)]


def _fails(number: int) -> Instruction:
    """The call is not made; it returns this error, or success if 0."""
    return _end(_ERRNO | number)


def _end(verdict: int) -> Instruction:
    return (_RETURN, 0, 0, verdict)
