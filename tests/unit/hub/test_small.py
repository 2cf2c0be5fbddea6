"""Events, commands and limits, by what may come."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import EventError
from kernelci.hub import event, limits, slash

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RUN = {
    "id": 1, "run_attempt": 1, "event": "pull_request", "status": "completed", "conclusion": "success",
    "head_sha": "a" * 40, "head_branch": "topic", "html_url": "https://github.com/o/r/actions/runs/1",
    "head_repository": {"full_name": "o/r"},
}  # fmt: skip


def made(**changes: object) -> object:
    return {"action": "completed", "repository": {"full_name": "o/r"}, "workflow_run": {**RUN, **changes}}


def test_an_event_as_github_sends_it() -> None:
    assert 1 == event.of_run(made(more="fields")).workflow_run.id


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "1"}, {"id": -1}, {"head_sha": "HEAD"}, {"head_sha": "a" * 39}, {"run_attempt": 0}, {"event": "push"},
        {"head_repository": {"full_name": "../x"}}, {"head_repository": {"full_name": "a/b/c"}},
    ],
)  # fmt: skip
def test_an_event_that_is_not_as_github_sends_it(changes: dict[str, object]) -> None:
    with pytest.raises(EventError):
        event.of_run(made(**changes))


@given(JSON)
def test_any_other_event_is_one_clear_error(found: object) -> None:
    with pytest.raises(EventError):
        event.of_run(found)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_event(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_bytes(content)

    with pytest.raises(EventError):
        event.load({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="can't read the event"):
        event.load({"GITHUB_EVENT_PATH": str(tmp_path / "none")})


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(made()))

    assert made() == event.load({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


@given(st.text(max_size=400))
def test_a_status_is_never_too_long(text: str) -> None:
    assert len(limits.described(text)) <= limits.STATUS_CHARACTERS


def test_a_status_ends_at_a_word() -> None:
    assert f"{'word ' * 26}word…" == limits.described("word " * 50)


@given(st.text(max_size=80))
def test_any_comment_is_a_command_none_or_refused(text: str) -> None:
    for body in (text, f"/kernelci {text}"):
        try:
            command = slash.parse(body)
        except slash.Refused:
            continue
        assert command is None or command.verb in ("rerun", "profile", "accept")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("/kernelci rerun", slash.Command("rerun")),
        ("/kernelci   rerun  \r\nmore", slash.Command("rerun")),
        ("/kernelci profile softmax/*", slash.Command("profile", ("softmax/*",))),
        ("/kernelci profile", slash.Command("profile", ("changed",))),
        ("/kernelci accept abcdef1 it is fine", slash.Command("accept", ("abcdef1", "it", "is", "fine"))),
        (" /kernelci rerun", None),
        ("kernelci rerun", None),
    ],
)
def test_commands(body: str, expected: slash.Command | None) -> None:
    assert expected == slash.parse(body)
