"""What `kernelci audit --repository` asks GitHub: settings that no file of the repository shows."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from kernelci.errors import TokenError
from kernelci.hub.audit import Fault
from kernelci.hub.client import Client

WHERE = "repository settings"


class Defaults(Struct, frozen=True):
    """What a workflow's token may do where the workflow does not say."""

    default_workflow_permissions: str
    can_approve_pull_request_reviews: bool


class Runner(Struct, frozen=True):
    """A self-hosted runner."""

    name: str
    ephemeral: bool | None = None


def examine(client: Client) -> list[Fault]:
    """Findings of the settings; what the token may not see is a warning, since it is not known to be right."""
    return [each for check in (_defaults, _runners) for each in _allowed(client, check)]


def _allowed(client: Client, check: Callable[[Client], Iterator[Fault]]) -> list[Fault]:
    try:
        return list(check(client))
    except TokenError as error:
        return [Fault("warning", "settings-unseen", WHERE, 0, f"not checked: {error.message}")]


def _defaults(client: Client) -> Iterator[Fault]:
    found = client.get("actions/permissions/workflow", Defaults)
    if found.default_workflow_permissions != "read":
        said = "workflows get a token that writes unless they say otherwise"
        yield Fault("error", "default-token-writes", WHERE, 0, said)
    if found.can_approve_pull_request_reviews:
        yield Fault("warning", "workflows-approve", WHERE, 0, "workflows can approve pull requests")


def _runners(client: Client) -> Iterator[Fault]:
    for runner in client.pages("actions/runners", Runner, key="runners", limit=500):
        if runner.ephemeral is False:
            said = f"runner {runner.name[:100]!a} is persistent: what one job leaves there, the next one finds"
            yield Fault("warning", "persistent-runner", WHERE, 0, said)
