"""One comment, one check, one status: posted once, updated in place, and never for what is superseded."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kernelci import publication
from kernelci.errors import EventError, Superseded
from kernelci.reporters.markdown import MARKER


def test_a_green_report_gets_a_comment_a_check_and_a_status(
    github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)

    posted = post(run_of(reports.all_green()))

    assert ("success", 1, 1, 1) == (posted.conclusion, len(ours(github)), len(github.checks), len(github.statuses))
    assert ("completed", "success") == (github.checks[0]["status"], github.checks[0]["conclusion"])
    assert ("success", "kernelci", posted.comment) == tuple(
        github.statuses[0][key] for key in ("state", "context", "target_url")
    )
    assert ours(github)[0].startswith(f"{MARKER}\n## ✅ 3 kernels passed")


def test_publishing_again_posts_nothing_again(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    post(event)
    before = len(github.made("POST")), len(github.made("PATCH"))

    post(event)

    assert before == (len(github.made("POST")), len(github.made("PATCH")))


def test_a_second_push_updates_the_same_comment(github, standin, post, run_of, reports, opened, ours) -> None:
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
    github, standin, post, run_of, reports, opened, ours
) -> None:
    opened(github, standin)
    post(run_of(reports.all_green()))

    posted = post(run_of(reports.one_wrong()))

    old, new = ours(github)
    assert "## ❌" in new
    assert posted.comment in old
    assert "superseded" == publication.read(old).state
    assert "failure" == github.checks[-1]["conclusion"]


def test_after_a_worse_one_the_newest_is_updated(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    for report in (reports.all_green(), reports.one_wrong(), reports.all_green()):
        post(run_of(report))

    old, new = ours(github)
    assert ("superseded", "current") == (publication.read(old).state, publication.read(new).state)
    assert "## ✅" in new


def test_a_forged_marker_by_somebody_else_is_left_alone(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    forged = f"{MARKER}\n## ✅ all is well"
    github.say(forged, "stranger")

    post(run_of(reports.one_wrong()))

    assert forged == github.comments[0]["body"]
    assert 1 == len(ours(github))


def test_duplicate_comments_are_made_one(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    post(run_of(reports.one_wrong()))
    github.say(ours(github)[0], github.login)

    post(run_of(reports.one_wrong()))

    states = [publication.read(body).state for body in ours(github)]
    assert ["superseded", "current"] == states


def test_the_comment_is_found_behind_hundreds_of_others(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    for index in range(250):
        github.say(f"remark {index}", "stranger")
    post(run_of(reports.one_wrong()))
    for index in range(250):
        github.say(f"remark {index}", "stranger")

    post(run_of(reports.all_green()))

    assert 1 == len(ours(github))


def test_a_run_that_has_begun_gets_a_check_in_progress(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    event = run_of(reports.all_green())

    post({**event, "action": "requested"})
    begun = github.checks[0]["status"], github.statuses[0]["state"], len(ours(github))
    post(event)

    assert ("in_progress", "pending", 0) == begun
    assert (1, "success") == (len(github.checks), github.checks[0]["conclusion"])


def test_a_fork_is_found_by_its_repository_and_commit(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin, head="stranger/kernels", branch="main")
    github.open_pull(standin.SHA, standin.KERNELS, head="stranger/other", branch="main", number=8)

    posted = post(run_of(reports.one_wrong(), head="stranger/kernels", branch="main"))

    assert 7 == posted.pull
    assert "(a fork)" in ours(github)[0]


def test_two_pull_requests_of_one_head_are_refused(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    github.open_pull(standin.SHA, standin.KERNELS, number=8)

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
    change: Callable[[Any], None], github, standin, post, run_of, reports, opened
) -> None:
    opened(github, standin)
    event = run_of(reports.one_wrong())
    change(github)

    with pytest.raises(Superseded) as caught:
        post(event)

    assert (3, [], []) == (caught.value.exit_code, github.made("POST"), github.made("PATCH"))


def test_an_older_run_does_not_overwrite_a_newer_one(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin)
    older, newer = run_of(reports.all_green()), run_of(reports.one_wrong())
    post(newer)

    with pytest.raises(Superseded):
        post(older)

    assert "## ❌" in ours(github)[0]


def test_a_pull_request_that_moves_while_its_report_is_read_gets_no_comment(
    github, standin, post, run_of, reports, opened, ours
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
def test_a_change_of_the_judge_is_never_green(
    path: str, word: str, github, standin, post, run_of, reports, opened
) -> None:
    opened(github, standin, [*standin.KERNELS, (path, "modified")])

    posted = post(run_of(reports.all_green()))

    assert (word, word) == (posted.conclusion, github.checks[0]["conclusion"])


def test_a_judge_that_is_renamed_away_is_a_change_of_it(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    github.files[7].append({"filename": "docs/x.md", "status": "renamed", "previous_filename": "references/softmax.py"})

    assert "action_required" == post(run_of(reports.all_green())).conclusion


def test_the_base_says_which_folders_judge(github, standin, post, run_of, reports, opened) -> None:
    github.contents["pyproject.toml"] = b'[tool.kernelci]\nreferences = "truth"\n'
    opened(github, standin, [*standin.KERNELS, ("truth/softmax.py", "added")])

    assert "action_required" == post(run_of(reports.all_green())).conclusion


def test_a_changed_kernel_that_the_report_lacks_is_not_green(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin, [*standin.KERNELS, ("kernels/softmax/other.py", "added")])

    posted = post(run_of(reports.all_green()))

    assert "action_required" == posted.conclusion
    assert "kernels/softmax/other.py" in posted.title


def test_removed_kernels_are_named_first(github, standin, post, run_of, reports, opened, ours) -> None:
    opened(github, standin, [*standin.KERNELS, ("kernels/softmax/old.py", "removed")])

    post(run_of(reports.one_wrong()))

    page = ours(github)[0]
    assert page.index("**Removed:** <code>kernels/softmax/old.py</code>") < page.index("### ❌")


def test_annotations_are_at_the_line_in_files_of_the_change(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)

    post(run_of(reports.compile_error()))

    (found,) = github.checks[0]["annotations"]
    assert ("kernels/softmax/triton.py", 31, "failure") == tuple(
        found[key] for key in ("path", "start_line", "annotation_level")
    )


def test_a_broken_run_is_repeated_once(github, standin, post, run_of, reports, opened, ours) -> None:
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


def test_a_run_that_breaks_twice_needs_somebody(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)

    posted = post(run_of(sick(reports), attempt=2))

    assert ("action_required", [], "error") == (posted.conclusion, github.rerun, github.statuses[0]["state"])


def test_where_the_token_may_not_repeat_somebody_is_needed_at_once(
    github, standin, post, run_of, reports, opened
) -> None:
    opened(github, standin)
    github.denied.append(("POST", "rerun"))

    assert "action_required" == post(run_of(sick(reports))).conclusion


def test_broken_before_any_kernel_started_is_neutral(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin)
    found = reports.Finding("candidate-start", "no GPU memory")
    kernels = [
        reports.kernel(name, reports.RungResult("precheck", reports.P, 0.1), reports.stop("compile", found))
        for name in ("softmax/triton", "softmax/cuda")
    ]

    posted = post(run_of(reports.report(tuple(kernels))))

    assert ("neutral", "error", []) == (posted.conclusion, github.statuses[0]["state"], github.rerun)


def test_limits_hold_for_the_largest_reports(github, standin, post, run_of, reports, opened) -> None:
    opened(github, standin, [(f"kernels/softmax/k{index}.py", "modified") for index in range(300)])

    posted = post(run_of(reports.large(40, 50)))

    assert ("failure", 10) == (posted.conclusion, len(github.checks[0]["annotations"]))
    assert len(github.statuses[0]["description"]) <= 140
