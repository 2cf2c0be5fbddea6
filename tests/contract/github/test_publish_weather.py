"""Bad input and bad weather: what is missing, refused, slow or lost, and that nothing is posted twice for it."""

from typing import Any

import pytest

from kernelci import publication
from kernelci.errors import ArtifactMissing, EventError, HubError, KernelciError, ReportError, TokenError

# bad input


def test_no_token(github, standin, post, run_of, reports) -> None:
    with pytest.raises(TokenError, match="GITHUB_TOKEN") as caught:
        post(run_of(reports.all_green()), token="")

    assert 2 == caught.value.exit_code


def test_a_wrong_token(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)

    with pytest.raises(TokenError, match="401 Bad credentials"):
        post(run_of(reports.all_green()), token="wrong-token")


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/artifacts", "actions: read"),
        ("POST", "/check-runs", "checks: write"),
        ("POST", "/comments", "pull-requests: write"),
        ("POST", "/statuses", "statuses: write"),
    ],
)
def test_a_token_without_a_permission(
    method: str, path: str, permission: str, github, standin, post, run_of, reports, opened
) -> None:
    opened(github, standin)
    github.denied.append((method, path))

    with pytest.raises(TokenError) as caught:
        post(run_of(reports.all_green()))

    assert f"the token lacks a permission; the job needs `permissions: {permission}`" == caught.value.hint


def none(github: Any, event: Any) -> None:
    github.artifacts.clear()


def expired(github: Any, event: Any) -> None:
    github.artifacts[event["workflow_run"]["id"]][0]["expired"] = True


def other_attempt(github: Any, event: Any) -> None:
    github.artifacts[event["workflow_run"]["id"]][0]["name"] = "kernelci-report-2"


@pytest.mark.parametrize("change", [none, expired, other_attempt])
def test_an_artifact_that_is_missing_leaves_a_check_that_says_so(
    change, github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    event = run_of(reports.all_green())
    change(github, event)

    for _ in range(2):
        with pytest.raises(ArtifactMissing) as caught:
            post(event)

    assert (4, [], 1, 1) == (caught.value.exit_code, ours(github), len(github.checks), len(github.statuses))
    assert ("action_required", "error") == (github.checks[0]["conclusion"], github.statuses[0]["state"])


@pytest.mark.parametrize("event", [{}, {"issue": {}}, [], None, {"workflow_run": {}}, {"workflow_run": None}])
def test_an_event_of_another_kind(event: Any, post) -> None:
    with pytest.raises(EventError) as caught:
        post(event)

    assert 2 == caught.value.exit_code


def test_a_run_that_no_pull_request_set_off(github, standin, post, run_of, reports) -> None:
    event = run_of(reports.all_green())
    event["workflow_run"]["event"] = "push"

    with pytest.raises(EventError, match="push"):
        post(event)


# weather


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("path", ["/comments", "/check-runs", "/statuses"])
def test_nothing_is_posted_twice_when_an_answer_is_lost(
    path: str, after: bool, github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    github.fail("POST", path, 502, after=after, times=2)

    post(run_of(reports.one_wrong()))

    assert (1, 1, 1) == (len(ours(github)), len(github.checks), len(github.statuses))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_failures_of_github_are_ridden_out(
    method: str, status: int, github, standin, post, run_of, reports, opened
) -> None:
    opened(github, standin)
    github.fail(method, ".", status, times=3)

    assert "success" == post(run_of(reports.all_green())).conclusion


@pytest.mark.parametrize(
    ("status", "message", "headers"),
    [
        (403, "You have exceeded a secondary rate limit.", {}),
        (403, "You have exceeded a secondary rate limit.", {"Retry-After": "0"}),
        (429, "Too many requests", {"Retry-After": "0"}),
        (403, "API rate limit exceeded for installation.", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
    ],
)
def test_rate_limits_are_waited_for(
    status, message, headers, github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    for method in ("GET", "POST", "PATCH"):
        github.fail(method, ".", status, message, headers=headers)

    post(run_of(reports.all_green()))

    assert 1 == len(ours(github))


def test_a_rate_limit_that_lasts_an_hour_is_an_error_at_once(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}
    github.fail("GET", "/pulls", 403, "API rate limit exceeded for user.", headers=headers)

    with pytest.raises(HubError, match="rate limit until"):
        post(run_of(reports.all_green()))

    assert 1 == len(github.requests)


def test_a_github_that_stays_down_is_an_error(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    github.fail("GET", ".", 503, times=100)

    with pytest.raises(HubError) as caught:
        post(run_of(reports.all_green()))

    assert (4, 4) == (caught.value.exit_code, len(github.requests))


def test_a_github_that_is_not_there_is_an_error(post, run_of, reports) -> None:
    with pytest.raises(HubError, match="no answer"):
        post(run_of(reports.all_green()), url="http://127.0.0.1:9")


def test_comments_that_are_not_listed_yet_are_not_made_twice_by_a_retry(
    github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    github.fail("POST", "/comments", 504, after=True)
    post(event)

    post(event)

    assert 1 == len(ours(github))


def test_a_list_that_lags_behind_leaves_one_comment_that_speaks(
    github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    post(run_of(reports.one_wrong()))
    github.hidden_comments = 1

    post(run_of(reports.one_wrong()))

    assert ["superseded", "current"] == [publication.read(body).state for body in ours(github)]


def test_the_storage_gets_no_token(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    post(run_of(reports.all_green()))

    assert [""] == github.storage_tokens


def test_the_token_is_in_no_message(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    github.denied.append(("GET", "."))

    with pytest.raises(KernelciError) as caught:
        post(run_of(reports.all_green()))

    assert "right-token" not in caught.value.rendered()


def test_a_report_of_another_commit_is_refused(github, standin, post, run_of, reports, opened) -> None:
    import msgspec

    from kernelci.model import Change

    opened(github, standin)
    report = msgspec.structs.replace(reports.all_green(), change=Change("b" * 40, "e5" * 20))

    with pytest.raises(ReportError, match="and the run ran on"):
        post(run_of(report))

    assert "action_required" == github.checks[0]["conclusion"]
