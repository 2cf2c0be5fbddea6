"""The card: the metadata block at the head of a kernel file, in the inline form that PEP 723 gives tools.

It is read as text; the kernel file is never run for it.
"""

import re
import tomllib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from kernelci.errors import CardError

# The pattern of the inline script metadata specification (packaging.python.org, "Inline script metadata").
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]
Target = Annotated[str, Meta(pattern=r"^sm_[0-9]{2,3}[af]?$")]


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """What must become of a kernel of the corpus that `kernelci selftest` climbs with.

    Bad ones name what must stop them (no `reason`: any will do), honest ones the rung that they must pass. `class` is a
    deception or a field check; `gpu`: only a GPU shows it, `cpu`: only the interpreter; `tier`: the one whose case
    shows it. `luck`: a race, which its own rung is sure to see; one that runs it may see it before, and FAILED there
    counts too.
    `base`: the stem of the member that it is compared with. `said`: what the rung must say of it.
    `verdicts`: what its time may be called against that base; a bad one that passes so has gained nothing.
    """

    rung: str
    outcome: str
    reason: str = ""
    gpu: bool = False
    cpu: bool = False
    luck: bool = False
    tier: str = "pr"
    class_: str = msgspec.field(name="class", default="")
    title: str = ""
    base: str = ""
    said: str = ""
    verdicts: tuple[str, ...] = ()

    @property
    def honest(self) -> bool:
        """Whether the kernel must pass, and there is nothing to be said of it."""
        return self.outcome == "PASSED" and not (self.said or self.verdicts)


class Card(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a kernel file says of itself; `targets` empty means all configured ones.

    `regions`: the names that the kernel marks while it is traced (docs/trace.md).
    """

    reference: Identifier
    backend: Identifier
    entry: Identifier
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=80)] = ""
    targets: tuple[Target, ...] = ()
    regions: Annotated[tuple[Identifier, ...], Meta(max_length=64)] = ()
    expect: Expectation | None = None
    dependencies: tuple[str, ...] = ()


def parse(text: str) -> Card:
    """The card in a kernel file's text. Raises CardError that says what is wrong and what a card needs."""
    table = _script_table(text)
    tools = table.get("tool", {})
    tool = tools.get("kernelci") if isinstance(tools, dict) else None
    if not isinstance(tool, dict):
        raise CardError("the script block has no [tool.kernelci] table")
    if "dependencies" in tool:
        raise CardError("dependencies stand above [tool.kernelci], not in it")
    values: dict[str, Any] = {**tool, "dependencies": table.get("dependencies", ())}
    try:
        return msgspec.convert(values, Card)
    except msgspec.ValidationError as error:
        raise CardError(f"card: {error}") from error


def has_card(text: str) -> bool:
    """Whether the text holds a script block at all."""
    return "# /// script" in text


def _script_table(text: str) -> dict[str, Any]:
    blocks = [match for match in _BLOCK.finditer(text) if match.group("type") == "script"]
    if not blocks:
        broken = " (a block begins but is not closed by a line `# ///`)" if has_card(text) else ""
        raise CardError(f"no card: the file has no `# /// script` block{broken}")
    if len(blocks) > 1:
        raise CardError(f"two cards: the file has {len(blocks)} `# /// script` blocks")
    lines = blocks[0].group("content").splitlines()
    content = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    above = text.count("\n", 0, blocks[0].start("content"))
    try:
        return tomllib.loads("\n" * above + content)  # so that a message names the file's line
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"the card is not TOML: {error}") from error
