"""A network is refused to the code of a problem, and what it asked for is told."""

import socket
import threading

import pytest

from kernelci.problems.offline import NeedsNetwork, offline


def test_a_name_is_asked_for() -> None:
    with pytest.raises(NeedsNetwork, match=r"weights\.example"), offline():
        socket.getaddrinfo("weights.example", 443)


def test_the_machines_own_sockets_are_let_through(tmp_path: object) -> None:
    with pytest.raises(FileNotFoundError), offline(), socket.socket(socket.AF_UNIX) as own:
        own.connect(f"{tmp_path}/none")


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), offline():
        _ = 1 / 0


def test_other_threads_are_not_concerned() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, offline():
        done: list[bool] = []
        thread = threading.Thread(
            target=lambda: done.append(bool(socket.create_connection(server.getsockname()).close() is None))
        )
        thread.start()
        thread.join()
    assert [True] == done
