"""One comment, one check, one status: posted once, updated in place, and never for what is superseded."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kernelci import publication
from kernelci.errors import ArtifactMissing, EventError, HubError, KernelciError, ReportError, Superseded, TokenError
from kernelci.reporters.markdown import MARKER

KERNELS = [(f"kernels/{name}.py", "modified") for name in ("softmax/triton", "softmax/cuda")]


def opened(github: Any, standin: ModuleType, files: Any = KERNELS, **more: Any) -> None:
    github.open_pull(standin.SHA, files, **more)


def ours(github: Any) -> list[str]:
    return [each["body"] for each in github.comments if each["login"] == github.login]


def test_a_green_report_gets_a_comment_a_check_and_a_status(github, standin, post, run_of, reports) -> None:
    opened(github, standin)

    posted = post(run_of(reports.all_green()))

    assert ("success", 1, 1, 1) == (posted.conclusion, len(ours(github)), len(github.checks), len(github.statuses))
    assert ("completed", "success") == (github.checks[0]["status"], github.checks[0]["conclusion"])
    assert ("success", "kernelci", posted.comment) == tuple(
        github.statuses[0][key] for key in ("state", "context", "target_url")
    )
    assert ours(github)[0].startswith(f"{MARKER}\n## ✅ 3 kernels passed")


def test_publishing_again_posts_nothing_again(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    post(event)
    before = len(github.made("POST")), len(github.made("PATCH"))

    post(event)

    assert before == (len(github.made("POST")), len(github.made("PATCH")))


def test_a_second_push_updates_the_same_comment(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    post(run_of(reports.one_wrong()))
    github.pulls[7]["head"]["sha"] = "c2" * 20
    event = github.start_run("c2" * 20)
    github.upload(event["workflow_run"]["id"], "kernelci-report-1", archive(standin, reports.all_green()))

    posted = post(event)

    assert 1 == len(ours(github))
    assert "## ✅" in ours(github)[0]
    assert posted.comment.endswith(str(github.comments[0]["id"]))


def archive(standin: ModuleType, report: Any) -> bytes:
    from kernelci import results

    return standin.zipped({"results.json": results.encode(report)})


def test_a_worse_verdict_makes_a_new_comment_and_the_old_one_points_at_it(
    github, standin, post, run_of, reports
) -> None:
    opened(github, standin)
    post(run_of(reports.all_green()))

    posted = post(run_of(reports.one_wrong()))

    old, new = ours(github)
    assert "## ❌" in new
    assert posted.comment in old
    assert "superseded" == publication.read(old).state
    assert "failure" == github.checks[-1]["conclusion"]


def test_after_a_worse_one_the_newest_is_updated(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    for report in (reports.all_green(), reports.one_wrong(), reports.all_green()):
        post(run_of(report))

    old, new = ours(github)
    assert ("superseded", "current") == (publication.read(old).state, publication.read(new).state)
    assert "## ✅" in new


def test_a_forged_marker_by_somebody_else_is_left_alone(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    forged = f"{MARKER}\n## ✅ all is well"
    github.say(forged, "stranger")

    post(run_of(reports.one_wrong()))

    assert forged == github.comments[0]["body"]
    assert 1 == len(ours(github))


def test_duplicate_comments_are_made_one(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    post(run_of(reports.one_wrong()))
    github.say(ours(github)[0], github.login)

    post(run_of(reports.one_wrong()))

    states = [publication.read(body).state for body in ours(github)]
    assert ["superseded", "current"] == states


def test_the_comment_is_found_behind_hundreds_of_others(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    for index in range(250):
        github.say(f"remark {index}", "stranger")
    post(run_of(reports.one_wrong()))
    for index in range(250):
        github.say(f"remark {index}", "stranger")

    post(run_of(reports.all_green()))

    assert 1 == len(ours(github))


def test_a_run_that_has_begun_gets_a_check_in_progress(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    event = run_of(reports.all_green())

    post({**event, "action": "requested"})
    begun = github.checks[0]["status"], github.statuses[0]["state"], len(ours(github))
    post(event)

    assert ("in_progress", "pending", 0) == begun
    assert (1, "success") == (len(github.checks), github.checks[0]["conclusion"])


def test_a_fork_is_found_by_its_repository_and_commit(github, standin, post, run_of, reports) -> None:
    opened(github, standin, head="stranger/kernels", branch="main")
    github.open_pull(standin.SHA, KERNELS, head="stranger/other", branch="main", number=8)

    posted = post(run_of(reports.one_wrong(), head="stranger/kernels", branch="main"))

    assert 7 == posted.pull
    assert "(a fork)" in ours(github)[0]


def test_two_pull_requests_of_one_head_are_refused(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    github.open_pull(standin.SHA, KERNELS, number=8)

    with pytest.raises(EventError, match="7, 8") as caught:
        post(run_of(reports.all_green()))

    assert ("pull-request", 2, []) == (caught.value.code, caught.value.exit_code, github.made("POST"))


def closed(github: Any) -> None:
    github.pulls[7]["state"] = "closed"


def moved(github: Any) -> None:
    github.pulls[7]["head"]["sha"] = "d3" * 20


def newer_attempt(github: Any) -> None:
    next(iter(github.runs.values()))["run_attempt"] = 2


@pytest.mark.parametrize("change", [closed, moved, newer_attempt])
def test_what_is_superseded_posts_nothing(
    change: Callable[[Any], None], github, standin, post, run_of, reports
) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    change(github)

    with pytest.raises(Superseded) as caught:
        post(event)

    assert (3, [], []) == (caught.value.exit_code, github.made("POST"), github.made("PATCH"))


def test_an_older_run_does_not_overwrite_a_newer_one(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    older, newer = run_of(reports.all_green()), run_of(reports.one_wrong())
    post(newer)

    with pytest.raises(Superseded):
        post(older)

    assert "## ❌" in ours(github)[0]


def test_a_pull_request_that_moves_while_its_report_is_read_gets_no_comment(
    github, standin, post, run_of, reports
) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    listing = standin.list_files

    def moving(*arguments: Any) -> Any:
        moved(github)
        return listing(*arguments)

    routes = [(verb, path, moving if call is listing else call) for verb, path, call in standin.ROUTES]
    before, standin.ROUTES[:] = list(standin.ROUTES), routes
    try:
        with pytest.raises(Superseded):
            post(event)
    finally:
        standin.ROUTES[:] = before
    assert [] == ours(github)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("references/softmax.py", "action_required"),
        ("rungs/mine.py", "action_required"),
        ("pyproject.toml", "action_required"),
        (".github/workflows/kernels.yml", "action_required"),
        ("setup.py", "action_required"),
        ("kernelci/referee.py", "action_required"),
        ("README.md", "success"),
    ],
)
def test_a_change_of_the_judge_is_never_green(path: str, word: str, github, standin, post, run_of, reports) -> None:
    opened(github, standin, [*KERNELS, (path, "modified")])

    posted = post(run_of(reports.all_green()))

    assert (word, word) == (posted.conclusion, github.checks[0]["conclusion"])


def test_a_judge_that_is_renamed_away_is_a_change_of_it(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    github.files[7].append({"filename": "docs/x.md", "status": "renamed", "previous_filename": "references/softmax.py"})

    assert "action_required" == post(run_of(reports.all_green())).conclusion


def test_the_base_says_which_folders_judge(github, standin, post, run_of, reports) -> None:
    github.contents["pyproject.toml"] = b'[tool.kernelci]\nreferences = "truth"\n'
    opened(github, standin, [*KERNELS, ("truth/softmax.py", "added")])

    assert "action_required" == post(run_of(reports.all_green())).conclusion


def test_a_changed_kernel_that_the_report_lacks_is_not_green(github, standin, post, run_of, reports) -> None:
    opened(github, standin, [*KERNELS, ("kernels/softmax/other.py", "added")])

    posted = post(run_of(reports.all_green()))

    assert "action_required" == posted.conclusion
    assert "kernels/softmax/other.py" in posted.title


def test_removed_kernels_are_named_first(github, standin, post, run_of, reports) -> None:
    opened(github, standin, [*KERNELS, ("kernels/softmax/old.py", "removed")])

    post(run_of(reports.one_wrong()))

    page = ours(github)[0]
    assert page.index("**Removed:** <code>kernels/softmax/old.py</code>") < page.index("### ❌")


def test_annotations_are_at_the_line_in_files_of_the_change(github, standin, post, run_of, reports) -> None:
    opened(github, standin)

    post(run_of(reports.compile_error()))

    (found,) = github.checks[0]["annotations"]
    assert ("kernels/softmax/triton.py", 31, "failure") == tuple(
        found[key] for key in ("path", "start_line", "annotation_level")
    )


def test_a_broken_run_is_repeated_once(github, standin, post, run_of, reports) -> None:
    opened(github, standin)

    posted = post(run_of(sick(reports)))

    assert ("in_progress", 1, "in_progress", 0) == (
        posted.conclusion, len(github.rerun), github.checks[0]["status"], len(ours(github))
    )  # fmt: skip


def sick(reports: ModuleType) -> Any:
    rungs = (
        reports.compiled("sm_90a"),
        reports.stop("run", reports.Finding("gpu-sick", "the GPU did not answer after softmax/triton")),
    )
    return reports.report((reports.kernel("softmax/triton", *rungs), reports.green("softmax/cuda")))


def test_a_run_that_breaks_twice_needs_somebody(github, standin, post, run_of, reports) -> None:
    opened(github, standin)

    posted = post(run_of(sick(reports), attempt=2))

    assert ("action_required", [], "error") == (posted.conclusion, github.rerun, github.statuses[0]["state"])


def test_where_the_token_may_not_repeat_somebody_is_needed_at_once(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    github.denied.append(("POST", "rerun"))

    assert "action_required" == post(run_of(sick(reports))).conclusion


def test_broken_before_any_kernel_started_is_neutral(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    found = reports.Finding("candidate-start", "no GPU memory")
    kernels = [
        reports.kernel(name, reports.RungResult("precheck", reports.P, 0.1), reports.stop("compile", found))
        for name in ("softmax/triton", "softmax/cuda")
    ]

    posted = post(run_of(reports.report(tuple(kernels))))

    assert ("neutral", "error", []) == (posted.conclusion, github.statuses[0]["state"], github.rerun)


def test_limits_hold_for_the_largest_reports(github, standin, post, run_of, reports) -> None:
    opened(github, standin, [(f"kernels/softmax/k{index}.py", "modified") for index in range(300)])

    posted = post(run_of(reports.large(40, 50)))

    assert ("failure", 10) == (posted.conclusion, len(github.checks[0]["annotations"]))
    assert len(github.statuses[0]["description"]) <= 140


# bad input


def test_no_token(github, standin, post, run_of, reports) -> None:
    with pytest.raises(TokenError, match="GITHUB_TOKEN") as caught:
        post(run_of(reports.all_green()), token="")

    assert 2 == caught.value.exit_code


def test_a_wrong_token(github, standin, post, run_of, reports) -> None:
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
    method: str, path: str, permission: str, github, standin, post, run_of, reports
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
    change, github, standin, post, run_of, reports
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
    path: str, after: bool, github, standin, post, run_of, reports
) -> None:
    opened(github, standin)
    github.fail("POST", path, 502, after=after, times=2)

    post(run_of(reports.one_wrong()))

    assert (1, 1, 1) == (len(ours(github)), len(github.checks), len(github.statuses))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_failures_of_github_are_ridden_out(method: str, status: int, github, standin, post, run_of, reports) -> None:
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
def test_rate_limits_are_waited_for(status, message, headers, github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    for method in ("GET", "POST", "PATCH"):
        github.fail(method, ".", status, message, headers=headers)

    post(run_of(reports.all_green()))

    assert 1 == len(ours(github))


def test_a_rate_limit_that_lasts_an_hour_is_an_error_at_once(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}
    github.fail("GET", "/pulls", 403, "API rate limit exceeded for user.", headers=headers)

    with pytest.raises(HubError, match="rate limit until"):
        post(run_of(reports.all_green()))

    assert 1 == len(github.requests)


def test_a_github_that_stays_down_is_an_error(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    github.fail("GET", ".", 503, times=100)

    with pytest.raises(HubError) as caught:
        post(run_of(reports.all_green()))

    assert (4, 4) == (caught.value.exit_code, len(github.requests))


def test_a_github_that_is_not_there_is_an_error(post, run_of, reports) -> None:
    with pytest.raises(HubError, match="no answer"):
        post(run_of(reports.all_green()), url="http://127.0.0.1:9")


def test_comments_that_are_not_listed_yet_are_not_made_twice_by_a_retry(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    github.fail("POST", "/comments", 504, after=True)
    post(event)

    post(event)

    assert 1 == len(ours(github))


def test_a_list_that_lags_behind_leaves_one_comment_that_speaks(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    post(run_of(reports.one_wrong()))
    github.hidden_comments = 1

    post(run_of(reports.one_wrong()))

    assert ["superseded", "current"] == [publication.read(body).state for body in ours(github)]


def test_the_storage_gets_no_token(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    post(run_of(reports.all_green()))

    assert [""] == github.storage_tokens


def test_the_token_is_in_no_message(github, standin, post, run_of, reports) -> None:
    opened(github, standin)
    github.denied.append(("GET", "."))

    with pytest.raises(KernelciError) as caught:
        post(run_of(reports.all_green()))

    assert "right-token" not in caught.value.rendered()


def test_a_report_of_another_commit_is_refused(github, standin, post, run_of, reports) -> None:
    import msgspec

    from kernelci.model import Change

    opened(github, standin)
    report = msgspec.structs.replace(reports.all_green(), change=Change("b" * 40, "e5" * 20))

    with pytest.raises(ReportError, match="and the run ran on"):
        post(run_of(report))

    assert "action_required" == github.checks[0]["conclusion"]
