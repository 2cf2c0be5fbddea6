"""`/kernelci …` comments: only for those who may, each answered once."""

from typing import Any

import pytest

from kernelci.errors import EventError
from kernelci.hub import slash

KERNELS = [("kernels/softmax/triton.py", "modified"), ("kernels/softmax/cuda.py", "modified")]
JUDGE = ("references/softmax.py", "modified")


def answers(github: Any) -> list[str]:
    return [each["body"] for each in github.comments if each["body"].startswith("<!-- kernelci:answer")]


@pytest.fixture
def green(github, standin, post, run_of, reports) -> Any:
    """A pull request with a green report, and people."""
    github.open_pull(standin.SHA, KERNELS)
    github.permissions |= {"owner": "admin", "writer": "write", "author": "admin"}
    post(run_of(reports.all_green()))
    return github


@pytest.fixture
def judged(green, post, run_of, reports) -> Any:
    """The same, and the change touches the judge."""
    green.files[7].append({"filename": JUDGE[0], "status": JUDGE[1]})
    post(run_of(reports.all_green()))
    return green


def test_rerun(green, say) -> None:
    text = say("/kernelci rerun\nthanks", "writer")

    assert ([max(green.runs)], 1) == (green.rerun, len(answers(green)))
    assert "is repeated, as attempt 2" in text


def test_rerun_of_a_run_under_way(green, say) -> None:
    green.runs[max(green.runs)]["status"] = "in_progress"

    assert "still under way" in say("/kernelci rerun", "writer")
    assert [] == green.rerun


@pytest.mark.parametrize(
    ("line", "rows"), [("profile", "changed"), ("profile all", "all"), ("profile matmul/*", "matmul/*")]
)
def test_profile_starts_a_workflow_of_the_base(line: str, rows: str, green, standin, say) -> None:
    text = say(f"/kernelci {line}", "writer")

    inputs = {"pull": "7", "sha": standin.SHA, "profile": rows}
    assert [{"workflow": "profile.yml", "ref": "main", "inputs": inputs}] == green.dispatched
    assert "has been asked for" in text


def test_profile_without_such_a_workflow(green, say) -> None:
    green.denied.append(("POST", "dispatches"))

    assert "has no `profile.yml`" in say("/kernelci profile softmax/triton", "writer")


@pytest.mark.parametrize("who", ["stranger", "reader"])
@pytest.mark.parametrize("line", ["rerun", "profile softmax/triton", "accept a1a1a1a fine"])
def test_people_without_permission_are_answered_and_nothing_is_done(who: str, line: str, green, say) -> None:
    text = say(f"/kernelci {line}", who)

    assert "Only people with write permission" in text
    assert ([], [], 1) == (green.rerun, green.dispatched, len(answers(green)))


WRONG = ("", "dance", "rerun now", "profile a b", "profile ../x", "profile a;b", "profile $(x)", "accept")
WRONG += ("accept HEAD x",)


@pytest.mark.parametrize("line", [*WRONG, "accept a1a1a1a"])
def test_what_is_no_command_is_answered_with_those_there_are(line: str, green, say) -> None:
    assert slash.USAGE in say(f"/kernelci {line}".rstrip(), "owner")
    assert 1 == len(answers(green))


@pytest.mark.parametrize("body", ["hello", "please /kernelci rerun", "> /kernelci rerun", "", "/kernelcirerun"])
def test_other_comments_are_none_of_ours(body: str, green, say) -> None:
    assert "no command" == say(body, "owner")
    assert [] == answers(green)


def test_each_comment_is_answered_once(green, say) -> None:
    say("/kernelci rerun", "writer", number=55)
    say("/kernelci rerun", "writer", number=55)

    assert (1, 1) == (len(answers(green)), len(green.rerun))


def test_our_own_comments_are_no_commands(green, say) -> None:
    assert "answered before" == say("/kernelci rerun", green.login)


def test_an_edited_comment_is_no_command(green, say) -> None:
    assert "no command" == say("/kernelci rerun", "writer", action="edited")


def test_a_comment_on_an_issue(green, say) -> None:
    with pytest.raises(EventError, match="not on a pull request"):
        say("/kernelci rerun", "writer", pull=False)


def test_accept_of_a_changed_judge(judged, say) -> None:
    say("/kernelci accept a1a1a1a1 the new bound is right", "owner")

    assert ("success", "Accepted by owner at a1a1a1a1: the new bound is right") == (
        judged.checks[-1]["conclusion"],
        judged.checks[-1]["output"]["title"],
    )
    assert "success" == judged.statuses[0]["state"]


def test_publishing_again_does_not_take_an_acceptance_back(github, standin, post, run_of, reports, say) -> None:
    github.open_pull(standin.SHA, [*KERNELS, JUDGE])
    github.permissions["owner"] = "admin"
    event = run_of(reports.all_green())
    post(event)
    say("/kernelci accept a1a1a1a1 fine", "owner")

    post(event)

    assert ("success", "success") == (github.checks[-1]["conclusion"], github.statuses[0]["state"])


@pytest.mark.parametrize(
    ("line", "who", "why"),
    [
        ("b2b2b2b2 fine", "owner", "look at that one first"),
        ("a1a1a1a1 fine", "writer", "Only people who maintain"),
        ("a1a1a1a1 fine", "author", "can't accept it"),
    ],
)
def test_who_may_not_accept(line: str, who: str, why: str, judged, say) -> None:
    assert why in say(f"/kernelci accept {line}", who)
    assert "action_required" == judged.checks[-1]["conclusion"]


def test_nobody_accepts_a_wrong_kernel(green, post, run_of, reports, say) -> None:
    post(run_of(reports.one_wrong()))

    assert "nothing here can be accepted" in say("/kernelci accept a1a1a1a1 fine", "owner")
    assert "failure" == green.checks[-1]["conclusion"]


def test_a_reason_is_rendered_harmless(judged, say) -> None:
    say("/kernelci accept a1a1a1a1 @all <img src=x> fixes #1", "owner")

    assert not any(part in answers(judged)[0] for part in ("@all", "<img", "#1"))
