"""Pushing to the history's branch: nothing is lost, nothing is doubled."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from kernelci.errors import HubError
from kernelci.nightly.branch import Branch, Edit, Snapshot, _credentials

NAME = "kernelci-history"


def _files(remote: str) -> list[str]:
    done = subprocess.run(["git", "-C", remote, "ls-tree", "-r", "--name-only", NAME], capture_output=True, text=True)
    return done.stdout.split()


def _commits(remote: str) -> int:
    done = subprocess.run(["git", "-C", remote, "rev-list", "--count", NAME], capture_output=True, text=True)
    return int(done.stdout)


def test_the_first_push_begins_the_branch(remote: str) -> None:
    commit = Branch(remote, NAME).add({"nights/a": b"1"}, "first")

    assert (["nights/a"], 1, 40) == (_files(remote), _commits(remote), len(commit))


def test_the_same_files_again_make_no_commit(remote: str) -> None:
    first = Branch(remote, NAME).add({"a": b"1"}, "first")

    assert first == Branch(remote, NAME).add({"a": b"1"}, "again")


def test_a_file_is_never_rewritten(remote: str, tmp_path: Path) -> None:
    Branch(remote, NAME).add({"a": b"1"}, "first")
    Branch(remote, NAME).add({"a": b"2", "b": b"3"}, "second")

    Branch(remote, NAME).write(tmp_path / "out")

    assert (b"1", b"3") == tuple((tmp_path / "out" / name).read_bytes() for name in ("a", "b"))


def test_two_nights_that_push_at_once_are_both_there(remote: str) -> None:
    start = threading.Barrier(4)

    def push(name: str) -> None:
        start.wait()
        Branch(remote, NAME, backoff_s=0.01).add({f"nights/{name}": name.encode()}, name)

    threads = [threading.Thread(target=push, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ([f"nights/{name}" for name in "abcd"], 4) == (_files(remote), _commits(remote))


class Faulty:
    """git, whose pushes fail: before they arrive, or after."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults

    def __call__(self, command: list[str], **more: Any) -> "subprocess.CompletedProcess[bytes]":
        fault = self.faults.pop(0) if "push" in command and self.faults else ""
        if fault == "before":
            return subprocess.CompletedProcess(command, 128, b"", b"fatal: the remote end hung up unexpectedly")
        done = subprocess.run(command, **more)
        if fault == "after":
            return subprocess.CompletedProcess(command, 128, b"", b"fatal: the remote end hung up unexpectedly")
        return done


@pytest.mark.parametrize("faults", [["before"], ["after"], ["after", "before"], ["before", "after", "before"]])
def test_a_push_that_fails_halfway_loses_and_doubles_nothing(remote: str, faults: list[str]) -> None:
    Branch(remote, NAME).add({"a": b"1"}, "first")

    Branch(remote, NAME, git=Faulty(faults), backoff_s=0.001).add({"b": b"2"}, "second")

    assert (["a", "b"], 2) == (_files(remote), _commits(remote))


def test_a_first_push_whose_answer_is_lost_is_not_doubled(remote: str) -> None:
    Branch(remote, NAME, git=Faulty(["after"]), backoff_s=0.001).add({"a": b"1"}, "first")

    assert (["a"], 1) == (_files(remote), _commits(remote))


def test_a_remote_that_stays_away_is_an_error_that_says_so(remote: str) -> None:
    with pytest.raises(HubError, match="hung up"):
        Branch(remote, NAME, git=Faulty(["before"] * 20), backoff_s=0.001).add({"a": b"1"}, "first")


def test_an_edit_is_worked_out_from_what_is_there(remote: str) -> None:
    Branch(remote, NAME).add({"a": b"1", "b": b"2"}, "first")

    def merge(now: Snapshot) -> Edit:
        return Edit({"ab": b"".join(now.read(["a", "b"]))}, ("a", "b"), "merge")

    Branch(remote, NAME).change(merge)

    assert ["ab"] == _files(remote)


def test_no_branch_is_no_history(remote: str, tmp_path: Path) -> None:
    assert "" == Branch(remote, NAME).write(tmp_path / "out")


def test_the_token_stands_in_the_environment_alone_and_goes_to_https_alone() -> None:
    url = "https://github.com/octo-org/kernels"

    assert f"http.{url}.extraheader" == _credentials(url, "secret")["GIT_CONFIG_KEY_0"]
    assert "secret" not in str(_credentials(url, "secret"))
    assert {} == _credentials("http://example.org/x", "secret")
