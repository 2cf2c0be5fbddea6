"""Comments that are made once: each begins with a marker of its own, and is looked for before it is posted."""

from kernelci.hub import sticky
from kernelci.hub.client import Client


def posted(client: Client, pull: int, login: str, marker: str) -> sticky.Comment | None:
    """Our comment with this marker, if there is one."""
    every = client.pages(f"issues/{pull}/comments", sticky.Comment, limit=10_000)
    ours = (each for each in every if each.user and each.user.login == login)
    return next((each for each in ours if (each.body or "").startswith(marker)), None)


def post(client: Client, pull: int, login: str, body: str) -> sticky.Comment:
    """Post a comment whose first line is its marker."""
    marker = body.partition("\n")[0]
    return client.post(
        f"issues/{pull}/comments", {"body": body}, sticky.Comment, lambda: posted(client, pull, login, marker)
    )
