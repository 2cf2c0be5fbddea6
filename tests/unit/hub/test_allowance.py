"""The event of an owner's label, as W1 reads it: for the commit alone that it was set on."""

from typing import Any

import pytest

from kernelci.config import Config, load
from kernelci.errors import ConfigError, EventError
from kernelci.hub import allowance
from kernelci.second import LABEL

HEAD = "a1" * 20


def event(**changes: Any) -> dict[str, Any]:
    pull = {"number": 7, "head": {"sha": HEAD}, "base": {"sha": "b" * 40}}
    plain = {"action": "labeled", "label": {"name": LABEL}, "sender": {"login": "ada"}, "pull_request": pull}
    return {**plain, "repository": {"full_name": "octo-org/kernels"}, **changes}


def test_the_label_says_who_and_for_which_commit() -> None:
    found = allowance.of_event(event(), HEAD)
    assert ("ada", HEAD) == (found.sender.login, found.pull_request.head.sha)


@pytest.mark.parametrize(
    "other",
    [
        event(action="synchronize"),
        event(action="unlabeled"),
        event(label={"name": "kernelci:gpu"}),
        event(label={}),
        event(sender=None),
        {"action": "labeled", "issue": {}},
        [],
        None,
    ],
)
def test_every_other_event_allows_nothing(other: Any) -> None:
    with pytest.raises(EventError):
        allowance.of_event(other, HEAD)


def test_another_commit_is_not_allowed() -> None:
    with pytest.raises(EventError, match="the label was set on a1a1a1a1a1, and c2c2c2c2c2 is to be judged"):
        allowance.of_event(event(), "c2" * 20)


def test_owners_are_names_that_github_allows(tmp_path) -> None:
    (tmp_path / "kernelci.toml").write_text('owners = ["ada", "octo-cat_corp"]\n')
    assert ("ada", "octo-cat_corp") == load(tmp_path, environ={}).owners
    (tmp_path / "kernelci.toml").write_text('owners = ["@ada"]\n')
    with pytest.raises(ConfigError, match="owners"):
        load(tmp_path, environ={})


def test_owners_of_the_configuration_need_no_question() -> None:
    nobody: Any = None  # a client that can't be asked
    allowance.check_owner(nobody, Config(owners=("Ada",)), "ada")
    with pytest.raises(allowance.NotAllowed, match="none of the owners"):
        allowance.check_owner(nobody, Config(owners=("Ada",)), "bob")
