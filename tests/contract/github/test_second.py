"""Rows of a second referee: on the page only where GitHub says that an owner allowed them for this very commit."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelci.hub import action, feedback
from kernelci.hub.allowance import LEFT_OUT
from kernelci.hub.client import Client, Patience
from kernelci.model import KernelReport, Report, RungResult, Second
from kernelci.reasons import Outcome
from kernelci.second import LABEL

JUDGE = [("references/topk.py", "added"), ("kernels/topk/a.py", "added")]
BEGAN = "2026-11-30T10:00:10Z"
SET = "2026-11-30T10:00:08Z"
REPOSITORY = "octo-org/kernels"
QUICK = Patience(attempts=2, backoff_s=0.01, pace_s=0)


@pytest.fixture
def heard(reports) -> Report:
    """The change's own judge says that all is well; the report says that somebody allowed it."""
    said = KernelReport("topk/a", "topk", "triton", "kernels/topk/a.py", "00", (RungResult("run", Outcome.PASSED),))
    return msgspec.structs.replace(reports.one_wrong(), second=Second((said,), "stranger", "bubblewrap"))


@pytest.fixture
def page(github, standin, post, run_of, heard, opened, ours) -> Any:
    """Publish such a run, set off by somebody; its comment and conclusion."""

    def made(who: str = "ada", began: str = BEGAN) -> tuple[str, str]:
        opened(github, standin, JUDGE)
        event = run_of(heard)
        run = event["workflow_run"]
        run |= {"actor": github.user(who), "created_at": began}
        posted = post(event)
        return ours(github)[-1], posted.conclusion

    return made


def shown(text: str) -> bool:
    """Whether the rows are there; where they are not, the page says so."""
    there = "second referee: topk/a" in text
    assert there or LEFT_OUT in text
    return there


def test_an_owners_label_for_this_commit_shows_them_under_the_owners_name(github, page) -> None:
    github.permissions["ada"] = "maintain"
    github.label(LABEL, "ada", SET)
    text, conclusion = page()
    assert (True, "action_required") == (shown(text), conclusion)
    assert "Allowed by <code>ada</code>" in text


def test_without_a_label_they_are_left_out_and_the_page_says_which_to_set(page) -> None:
    text, conclusion = page()
    assert (False, "action_required") == (shown(text), conclusion)
    assert f"the label {LABEL} does it, for this commit alone" in text


@pytest.mark.parametrize("permission", ["write", "triage", "read"])
def test_a_label_by_somebody_who_does_not_maintain_allows_nothing(permission: str, github, page) -> None:
    github.permissions["ada"] = permission
    github.label(LABEL, "ada", SET)
    assert not shown(page()[0])


def test_the_bases_configuration_says_who_is_an_owner(github, page) -> None:
    github.contents["kernelci.toml"] = b'owners = ["Ada"]\n'
    github.label(LABEL, "ada", SET)
    assert shown(page()[0])


def test_where_the_configuration_names_owners_no_other_is_one(github, page) -> None:
    github.contents["kernelci.toml"] = b'owners = ["bob"]\n'
    github.permissions["ada"] = "admin"
    github.label(LABEL, "ada", SET)
    text, _ = page()
    assert not shown(text)
    assert "one of bob can have the change's own judge heard" in text


def _owner(github: Any) -> None:
    github.permissions["ada"] = "admin"
    github.label(LABEL, "ada", SET)


def test_a_label_that_was_taken_off_allows_nothing(github, page) -> None:
    _owner(github)
    github.label(LABEL, "ada", "2026-11-30T10:03:00Z", event="unlabeled")
    assert not shown(page()[0])


def test_a_push_after_the_label_is_another_commit(github, page) -> None:
    _owner(github)
    assert not shown(page("stranger")[0])


def test_a_label_of_long_ago_is_of_another_commit(github, page) -> None:
    _owner(github)
    assert not shown(page(began="2026-11-30T11:00:00Z")[0])


def test_a_run_from_before_the_label_was_not_set_off_by_it(github, page) -> None:
    _owner(github)
    assert not shown(page(began="2026-11-30T09:59:00Z")[0])


def test_a_run_that_the_owners_next_label_set_off_is_another(github, page) -> None:
    _owner(github)
    github.label("kernelci:gpu", "ada", "2026-11-30T10:01:00Z")
    assert not shown(page(began="2026-11-30T10:01:02Z")[0])


def test_another_label_allows_nothing(github, page) -> None:
    github.permissions["ada"] = "admin"
    github.label("kernelci:gpu", "ada", SET)
    assert not shown(page()[0])


def test_rows_that_claim_all_is_well_turn_nothing_green(github, standin, post, run_of, reports, opened) -> None:
    """The judge is untouched, the kernel wrong, and a forged artifact brings rows of a second referee."""
    _owner(github)
    opened(github, standin)
    said = tuple(msgspec.structs.replace(each, rungs=()) for each in reports.all_green().kernels)
    forged = msgspec.structs.replace(reports.one_wrong(), second=Second(said, "ada"))
    event = run_of(forged)
    event["workflow_run"] |= {"actor": github.user("ada"), "created_at": BEGAN}
    assert "failure" == post(event).conclusion


def _allowed(github: Any, tmp_path: Path, who: str = "ada") -> str:
    """What W1's job that asks puts into its outputs."""
    head = "a1" * 20
    pull = {"number": 7, "head": {"sha": head}, "base": {"sha": "b" * 40}}
    event = {"action": "labeled", "label": {"name": LABEL}, "sender": {"login": who}, "pull_request": pull}
    (tmp_path / "event.json").write_text(json.dumps({**event, "repository": {"full_name": REPOSITORY}}))
    given = {"KERNELCI_ACTION_MODE": "allow", "KERNELCI_ACTION_HEAD": head, "GITHUB_TOKEN": github.token}
    files = {"GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    assert 0 == action.main({**given, **files, "GITHUB_API_URL": github.url})
    return (tmp_path / "output").read_text()


def test_the_job_that_asks_says_whether_the_label_allows_it(github, tmp_path, capsys) -> None:
    github.permissions["ada"] = "maintain"
    assert "allowed=true\n" == _allowed(github, tmp_path)
    (tmp_path / "output").unlink()
    assert "allowed=false\n" == _allowed(github, tmp_path, "bob")
    assert "bob set the label kernelci:judge, and does not maintain this repository" in capsys.readouterr().out


def test_the_job_that_asks_follows_the_bases_configuration(github, tmp_path) -> None:
    github.contents["kernelci.toml"] = b'owners = ["bob"]\n'
    github.permissions["ada"] = "admin"
    assert "allowed=false\n" == _allowed(github, tmp_path)


@pytest.mark.parametrize(("permission", "shown"), [("maintain", True), ("write", False)])
def test_feedback_takes_the_runs_word_for_nothing_either(
    permission: str, shown: bool, github, standin, run_of, heard, opened
) -> None:
    github.permissions["ada"] = permission
    github.label(LABEL, "ada", SET)
    opened(github, standin, JUDGE)
    run = run_of(heard)["workflow_run"]
    github.runs[run["id"]] |= {"actor": github.user("ada"), "created_at": BEGAN}
    found = feedback.look(Client(REPOSITORY, github.token, github.url, QUICK), 7).feedback
    assert shown == (found.second is not None)
    assert shown == ("second referee: topk/a (proves nothing): PASSED" in feedback.text(found))
