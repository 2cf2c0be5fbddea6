"""The one comment: found by its marker and its author, updated in place; a new one when the verdict worsens."""

from msgspec import Struct, structs

from kernelci import inert, publication
from kernelci.errors import HubError, Superseded, TokenError
from kernelci.hub.client import Client
from kernelci.hub.limits import COMMENT_CHARACTERS
from kernelci.publication import Block
from kernelci.reporters.markdown import MARKER, link

BOT = "github-actions[bot]"


class User(Struct, frozen=True):
    """Who wrote something."""

    login: str


class Comment(Struct, frozen=True):
    """A comment on a pull request."""

    id: int
    html_url: str
    body: str | None = None
    user: User | None = None

    @property
    def block(self) -> Block | None:
        """The data that it carries."""
        return publication.read(self.body or "")


def identity(client: Client) -> str:
    """The login that our comments have. A workflow's own token may not ask who it is: it is the Actions bot."""
    found = client.find("/user", User)
    return found.login if found else BOT


def own(client: Client, pull: int, login: str) -> list[Comment]:
    """Our comments on a pull request that still speak, the oldest first. A marker by anyone else counts for nothing."""
    found = client.pages(f"issues/{pull}/comments", Comment, limit=10_000)
    ours = [each for each in found if each.user and each.user.login == login and (each.body or "").startswith(MARKER)]
    return sorted((each for each in ours if _speaks(each)), key=lambda each: each.id)


def _speaks(comment: Comment) -> bool:
    block = comment.block
    return block is None or block.state == "current"


def put(client: Client, login: str, page: str) -> Comment:
    """Post the page, or bring our comment in step with it; older ones point at it. Raises Superseded, HubError."""
    block = publication.read(page)
    if block is None or len(page) > COMMENT_CHARACTERS:
        raise HubError("the page can't be posted: no block of data, or too long")
    before = own(client, block.pull, login)
    newest = before[-1] if before else None
    _check_newer(newest, block)
    current = _put(client, login, page, block, newest)
    if newest is None or current.id != newest.id:
        before = own(client, block.pull, login)  # a list can lag behind: what was there all along shows up by now
    for each in (each for each in before if each.id != current.id):
        _retire(client, each, current, block)
    return current


def _put(client: Client, login: str, page: str, block: Block, newest: Comment | None) -> Comment:
    said = newest.block if newest else None
    if newest is None or (said is not None and block.rank > said.rank):
        return _create(client, login, page, block)
    if said is not None and _same(said, block):
        return newest
    try:
        return client.patch(f"issues/comments/{newest.id}", {"body": page}, Comment)
    except TokenError:
        # Deleted between the two requests, perhaps; where the token may not write, creating says so.
        return _create(client, login, page, block)


def _same(one: Block, other: Block) -> bool:
    return (one.run, one.attempt, one.hash) == (other.run, other.attempt, other.hash)


def _check_newer(newest: Comment | None, block: Block) -> None:
    said = newest.block if newest else None
    if said is not None and said.sha == block.sha and (said.run, said.attempt) > (block.run, block.attempt):
        raise Superseded(f"the comment already shows run {said.run}, attempt {said.attempt}, of the same commit")


def _create(client: Client, login: str, page: str, block: Block) -> Comment:
    def posted() -> Comment | None:
        found = own(client, block.pull, login)
        return next((each for each in found if (said := each.block) is not None and _same(said, block)), None)

    return client.post(f"issues/{block.pull}/comments", {"body": page}, Comment, posted)


def _retire(client: Client, old: Comment, current: Comment, block: Block) -> None:
    """An old comment points at the one that speaks."""
    rest = structs.replace(old.block or block, state="superseded", stopped=())
    text = inert.Safe(f"Superseded by {link('a newer report', current.html_url)} on this pull request.")
    client.patch(f"issues/comments/{old.id}", {"body": f"{MARKER}\n{text}\n\n{publication.written(rest)}\n"}, Comment)
