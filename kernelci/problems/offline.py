"""Nothing is fetched for a problem: what it would need from a network is told, and not waited for."""

import contextlib
import sys
import threading
from collections.abc import Iterator

_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request")
_thread = threading.local()
_installing = threading.Lock()
_installed: list[bool] = []


class NeedsNetwork(Exception):
    """Code asked for a host on a network; the text names it."""


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Refuse what this thread asks of a network.

    Raises NeedsNetwork in place of whatever exception the code makes of the refusal, and also where it makes none.
    """
    with _installing:
        if not _installed:
            sys.addaudithook(_watch)
            _installed.append(True)
    before = getattr(_thread, "asked", None)
    asked: list[str] = []
    _thread.asked = asked
    try:
        yield
    except Exception as error:
        if asked:
            raise NeedsNetwork(asked[0]) from error
        raise
    finally:
        _thread.asked = before
    if asked:
        raise NeedsNetwork(asked[0])


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    asked = getattr(_thread, "asked", None)
    if asked is None or event not in _EVENTS:
        return
    where = arguments[1] if event == "socket.connect" else arguments[0]
    if isinstance(where, str | bytes) and event == "socket.connect":
        return  # a socket of this machine's own
    asked.append(_host(where))
    raise NeedsNetwork(asked[-1])


def _host(where: object) -> str:
    found = where[0] if isinstance(where, tuple) and where else where
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)[:200]
