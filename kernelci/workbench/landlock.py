"""Which files a process may still reach, by Landlock (landlock(7)): rules that it lays on itself and can't take back.

Also: no TCP from version 4 on, and from 6 on neither signals nor abstract sockets to processes outside. A process in a
domain of its own can't look into processes outside it either (ptrace, /proc/PID/mem, /proc/PID/environ).
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

# From the kernel's landlock.h; the numbers of the system calls are the same on all machines.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_FILES = {3: (1 << 15) - 1, 5: (1 << 16) - 1}  # rights that a version knows
_SPECIAL = 1 << 6 | 1 << 11  # making character and block devices
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP, _SCOPES = 3, 3  # bind and connect; abstract sockets and signals
NEEDED, SCOPED = 3, 6  # versions: the first that guards truncation, and the first that keeps signals inside

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's version of Landlock (its ABI); 0 where there is none or it is off."""
    return max(int(_libc.syscall(_CREATE, None, 0, _VERSION)), 0)


def restrict(
    readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path], listed: Iterable[Path] = ()
) -> None:
    """Let this thread, and all it starts, reach these paths and what lies below them only. Needs no_new_privs.

    Of what is `listed` it sees the names and nothing else.

    Paths that are not there are passed over. Raises OSError.
    """
    found = version()
    handled = _FILES[5 if found >= 5 else 3]
    attribute = struct.pack("QQQ", handled, _TCP, _SCOPES)[: 24 if found >= 6 else 16 if found >= 4 else 8]
    rules = _checked(_libc.syscall(_CREATE, attribute, len(attribute), 0), "landlock_create_ruleset")
    try:
        for paths, rights in (
            (readable, _EXECUTE | _READ_FILE | _READ_DIR),
            (writable, handled & ~_SPECIAL & ~_IOCTL_DEVICE),
            (listed, _READ_DIR),
            (devices, _READ_FILE | _WRITE_FILE | _IOCTL_DEVICE),
        ):
            for path in paths:
                _add(rules, path, rights & handled)
        _checked(_libc.syscall(_RESTRICT, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _add(rules: int, path: Path, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        rights &= -1 if path.is_dir() else _ON_FILES
        _checked(_libc.syscall(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, file), 0), f"landlock: {path}")
    finally:
        os.close(file)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
