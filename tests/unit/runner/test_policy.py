"""Which jobs a host admits, and whose caches they get."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.config import RunnerOptions
from kernelci.runner.policy import Claim, cache_key, refusal, trusted

OPTIONS = RunnerOptions(
    repository="octo-org/kernels",
    workflows=(
        "octo-org/kernels/.github/workflows/kernels.yml@refs/pull/*/merge",
        "octo-org/kernels/*/nightly.yml@refs/heads/main",
    ),
    actors=("octo*",),
)
PULL = Claim(
    repository="octo-org/kernels", workflow_ref="octo-org/kernels/.github/workflows/kernels.yml@refs/pull/7/merge",
    ref="refs/pull/7/merge", event_name="pull_request", actor="octocat", triggering_actor="octocat", run_id="17",
    job="gpu",
)  # fmt: skip
NIGHT = Claim(
    repository="octo-org/kernels", workflow_ref="octo-org/kernels/.github/workflows/nightly.yml@refs/heads/main",
    ref="refs/heads/main", event_name="schedule", actor="octocat",
)  # fmt: skip


def _but(claim: Claim, **changes: str) -> Claim:
    return Claim(**{name: changes.get(name, getattr(claim, name)) for name in Claim.__struct_fields__})


@pytest.mark.parametrize("claim", [PULL, NIGHT])
def test_admitted(claim: Claim) -> None:
    assert "" == refusal(OPTIONS, claim)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"repository": "octo-org/other"}, "repository"),
        ({"workflow_ref": "octo-org/kernels/.github/workflows/other.yml@refs/pull/7/merge"}, "workflow"),
        ({"workflow_ref": "octo-org/kernels/.github/workflows/kernels.yml@refs/heads/topic"}, "workflow"),
        ({"ref": "refs/heads/topic"}, "ref"),
        ({"event_name": "pull_request_target"}, "event"),
        ({"event_name": ""}, "event"),
        ({"actor": "stranger"}, "actor"),
        ({"triggering_actor": "stranger"}, "actor of the rerun"),
    ],
)
def test_refused(changes: dict[str, str], what: str) -> None:
    assert refusal(OPTIONS, _but(PULL, **changes)).startswith(f"{what} '")


def test_without_a_workflow_that_is_named_nothing_is_admitted() -> None:
    assert "workflow" in refusal(RunnerOptions(repository="octo-org/kernels"), PULL)


@pytest.mark.parametrize(
    ("claim", "is_trusted", "key"),
    [
        (NIGHT, True, "base"),
        (_but(NIGHT, event_name="push"), True, "base"),
        (PULL, False, "pull-7"),
        (_but(PULL, ref="refs/heads/main"), False, ""),  # no event of a pull request is ever the base's
        (_but(NIGHT, event_name="workflow_run"), False, ""),
        (_but(NIGHT, event_name="workflow_dispatch"), False, ""),  # a profile of a change starts on the base's branch
        (_but(NIGHT, ref="refs/heads/topic"), False, ""),
        (_but(PULL, ref="refs/pull/../../base/merge"), False, ""),
        (_but(PULL, ref="refs/pull/7/merge\n"), False, ""),
    ],
)
def test_caches_by_trust(claim: Claim, is_trusted: bool, key: str) -> None:
    assert (is_trusted, key) == (trusted(OPTIONS, claim), cache_key(OPTIONS, claim))


@given(st.builds(Claim, *[st.text(max_size=30)] * len(Claim.__struct_fields__)))
def test_whatever_is_claimed_is_one_harmless_line(claim: Claim) -> None:
    said = claim.text + refusal(OPTIONS, claim)

    assert said.isprintable()
    assert set(cache_key(OPTIONS, claim)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
