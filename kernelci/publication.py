"""What a page on a pull request says beyond the report, and the block of data that it carries for programs.

The block is one HTML comment on the page's last line. Nothing in it can end the comment or be taken for a mention: such
characters stand there as JSON escapes.
"""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from kernelci.model import Name, Text

VERSION = 1
MAX_BYTES = 8_000
_BEGIN, _END = f"<!-- kernelci:data v{VERSION} ", " -->"
_ESCAPED = re.compile(r"[<>&@#]|[^\x20-\x7e]|(?<=:)/(?=/)")
Sha = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
Whole = Annotated[int, Meta(ge=0, le=2**53)]


class Link(Struct, frozen=True):
    """An artifact to download."""

    name: Name
    url: Name
    size_bytes: int


class Publication(Struct, frozen=True, kw_only=True):
    """What GitHub says of the pull request and the run, and what the report means there. Trusted, but for names."""

    pull: int
    head_sha: str
    base_sha: str
    head: str
    """Repository and branch of the head; a stranger chose the branch's name."""
    is_fork: bool
    run: int
    attempt: int
    run_url: str
    conclusion: str
    rank: int
    title: str
    who: str
    judge: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


class Stopped(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One kernel that did not pass, as short as can be."""

    kernel: Name
    outcome: Name
    rung: Name = ""
    reason: Name = ""
    case: Name = ""
    reproduce: Text = ""


class Block(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the comment says, for programs: `state` is `superseded` once a newer comment speaks."""

    state: Literal["current", "superseded"]
    pull: Whole
    sha: Sha
    run: Whole
    attempt: Whole
    conclusion: Name
    rank: Whole
    outcome: Name = ""
    hash: Name = ""
    kernels: Whole = 0
    stopped: tuple[Stopped, ...] = ()


def written(block: Block) -> str:
    """The block as a line; kernels are left out from the end until it is short enough."""
    while True:
        text = _ESCAPED.sub(_escape, msgspec.json.encode(block).decode())
        if len(text) <= MAX_BYTES or not block.stopped:
            return f"{_BEGIN}{text}{_END}"
        block = msgspec.structs.replace(block, stopped=block.stopped[:-1])


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def read(page: str) -> Block | None:
    """The block of a page; None where there is none that is whole. Only its last line is looked at."""
    line = page.rstrip().rpartition("\n")[2]
    if not (line.startswith(_BEGIN) and line.endswith(_END)) or len(line) > 4 * MAX_BYTES:
        return None
    try:
        return msgspec.json.decode(line[len(_BEGIN) : -len(_END)], type=Block)
    except msgspec.MsgspecError:
        return None
