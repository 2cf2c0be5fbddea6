"""The user that jobs run as. One of its own, or else that of the loop, which contains less."""

import os
import pwd

from msgspec import Struct

from kernelci.errors import ConfigError

NOBODY = 65534


class User(Struct, frozen=True):
    """Whom a job's processes belong to. `apart`: it is another user than the loop's."""

    uid: int
    gid: int
    name: str
    apart: bool


def find(name: str) -> User:
    """The user of this name or number; the loop's own for an empty one. Raises ConfigError."""
    if not name and os.getuid() != 0:
        return User(os.getuid(), os.getgid(), "", False)
    uid, gid, called = _known(name or "root")
    if uid in (0, NOBODY):  # all that belongs to a job's user is ended after it
        raise ConfigError(
            f"jobs may not run as {called}", hint="set `user` in [tool.kernelci.runner] to one of its own"
        )
    if uid != os.getuid() and os.geteuid() != 0:
        raise ConfigError(
            f"only root can start jobs as {name}", hint='run as root, or set user = "", which contains less'
        )
    return User(uid, gid, called, uid != os.getuid())


def _known(name: str) -> tuple[int, int, str]:
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        if name.isdigit():
            return int(name), int(name), name
        raise ConfigError(f"there is no user {name}", hint=f"useradd --system --no-create-home {name}") from None
    return entry.pw_uid, entry.pw_gid, entry.pw_name


def number(name: str) -> int:
    """The number of a user. Raises ConfigError."""
    return _known(name)[0]
