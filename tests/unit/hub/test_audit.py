"""Every rule finds its fault, and leaves the honest twin alone."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelci.cli import cli
from kernelci.errors import ConfigError
from kernelci.hub import audit, workflow

PIN = "0" * 40
HEAD = """\
on: {trigger}
permissions: {permissions}
jobs:
  a:
    runs-on: {runner}
    steps:
      - {step}
"""


def rules(
    step: str = "run: true", trigger: str = "push", permissions: str = "{}", runner: str = "ubuntu-latest"
) -> set[str]:
    text = HEAD.format(step=step, trigger=trigger, permissions=permissions, runner=runner)
    return {each.rule for rule in audit.RULES for each in rule(workflow.parse("a.yml", text))}


CHECKOUT = f"{{uses: actions/checkout@{PIN}, with: {{persist-credentials: false, ref: '%s'}}}}"
OF_HEAD = CHECKOUT % "${{ github.event.pull_request.head.sha }}"


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (
            "pull-request-target-checkout",
            {"trigger": "pull_request_target", "step": OF_HEAD},
            {"trigger": "pull_request", "step": OF_HEAD},
        ),
        (
            "pull-request-target-checkout",
            {"trigger": "[pull_request_target]", "step": "run: gh pr checkout 1"},
            {"trigger": "pull_request_target"},
        ),
        (
            "issue-comment-checkout",
            {"trigger": "issue_comment", "step": CHECKOUT % "refs/pull/1/merge"},
            {"trigger": "issue_comment", "step": CHECKOUT % "main"},
        ),
        (
            "workflow-run-checkout",
            {
                "trigger": "{workflow_run: {workflows: [a]}}",
                "step": CHECKOUT % "${{ github.event.workflow_run.head_sha }}",
            },
            {"trigger": "workflow_run", "step": CHECKOUT % "${{ github.sha }}"},
        ),
        (
            "allow-unsafe-pr-checkout",
            {"step": f"{{uses: actions/checkout@{PIN}, with: {{allow-unsafe-pr-checkout: true}}}}"},
            {"step": f"{{uses: actions/checkout@{PIN}, with: {{allow-unsafe-pr-checkout: false}}}}"},
        ),
        ("unpinned-action", {"step": "uses: actions/checkout@v4"}, {"step": f"uses: actions/checkout@{PIN}"}),
        ("unpinned-action", {"step": "uses: docker://alpine:3"}, {"step": "uses: ./here"}),
        (
            "write-token-beside-untrusted-code",
            {"trigger": "pull_request", "permissions": "{contents: write}"},
            {"trigger": "pull_request", "permissions": "{contents: read}"},
        ),
        (
            "write-token-beside-untrusted-code",
            {"trigger": "pull_request", "permissions": "write-all"},
            {"trigger": "push", "permissions": "write-all"},
        ),
        ("permissions-missing", {"trigger": "pull_request", "permissions": "null"}, {"trigger": "pull_request"}),
        (
            "secret-beside-untrusted-code",
            {"trigger": "pull_request", "step": "{run: x, env: {A: '${{ secrets.KEY }}'}}"},
            {"trigger": "pull_request", "step": "{run: x, env: {A: '${{ secrets.GITHUB_TOKEN }}'}}"},
        ),
        (
            "persistent-runner",
            {"trigger": "pull_request", "runner": "[self-hosted, gpu]"},
            {"trigger": "pull_request", "runner": "[self-hosted, gpu, ephemeral]"},
        ),
        (
            "script-injection",
            {"step": "run: echo ${{ github.event.pull_request.title }}"},
            {"step": "{run: 'echo $A', env: {A: '${{ github.event.pull_request.title }}'}}"},
        ),
        ("script-injection", {"step": "run: echo ${{ github.head_ref }}"}, {"step": "run: echo ${{ github.run_id }}"}),
        (
            "persisted-credentials",
            {"trigger": "pull_request", "step": f"uses: actions/checkout@{PIN}"},
            {"trigger": "pull_request", "step": CHECKOUT % "main"},
        ),
    ],
)
def test_a_rule_and_its_honest_twin(rule: str, bad: dict[str, str], good: dict[str, str]) -> None:
    assert rule in rules(**bad)
    assert rule not in rules(**good)


def test_a_finding_names_its_line() -> None:
    found = list(
        audit.RULES[2](
            workflow.parse("a.yml", HEAD.format(step="uses: a/b@v1", trigger="push", permissions="{}", runner="x"))
        )
    )
    assert [7] == [each.line for each in found]


def test_zizmors_findings_stand_beside_ours(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "a.yml").write_text(HEAD.format(step="uses: a/b@v1", trigger="push", permissions="{}", runner="x"))
    if not audit._zizmor():
        pytest.skip("zizmor is not installed")
    assert {"zizmor/unpinned-uses", "unpinned-action"} <= {each.rule for each in audit.examine(tmp_path)}


def test_a_zizmor_that_does_not_answer_is_said(tmp_path: Path) -> None:
    (tmp_path / "action.yml").write_text("name: x")
    assert ["zizmor"] == [each.rule for each in audit.examine(tmp_path, zizmor="/bin/false")]


def test_a_repository_without_workflows(tmp_path: Path) -> None:
    assert "no findings" == audit.table(audit.examine(tmp_path, zizmor="/bin/false"))


@pytest.mark.parametrize("text", ["on: [", "a: &x [*x]\n" + "- " * 5000, "\x00"])
def test_what_is_no_yaml(text: str) -> None:
    with pytest.raises(ConfigError, match="no YAML"):
        workflow.parse("a.yml", text)


@pytest.mark.parametrize("text", ["", "- a", "jobs: 3", "jobs: {a: [1]}", "jobs: {a: {steps: [x, 3]}}", "on: {a: b}"])
def test_odd_workflows_are_read(text: str) -> None:
    assert "a.yml" == workflow.parse("a.yml", text).path


def test_errors_fail_and_warnings_do_not() -> None:
    one = audit.Fault("warning", "r", "p", 1, "m")
    assert (0, 1) == (audit.exit_code([one]), audit.exit_code([one, audit.Fault("error", "r", "p", 1, "m")]))


def test_a_repository_without_workflows_is_told_how_to_get_them(tmp_path: Path) -> None:
    found = CliRunner().invoke(cli, ["--root", str(tmp_path), "audit"])
    assert (0, "no findings\n", True) == (found.exit_code, found.stdout, "kernelci init" in found.stderr)
