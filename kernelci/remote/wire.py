"""What the two machines say to each other: a request, an answer, and archives whose size stands in the line before."""

from typing import IO, Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from kernelci.errors import RunnerBroken
from kernelci.hub.limits import MIB, Caps

# A project is source code; a report may hold all that `feedback --artifacts` takes.
PROJECT = Caps(archive_bytes=512 * MIB, total_bytes=512 * MIB, members=20_000)
LINE_BYTES = MIB
_CHUNK = 2**16
Word = Annotated[str, Meta(max_length=1000)]
Words = Annotated[tuple[Word, ...], Meta(max_length=1000)]
Size = Annotated[int, Meta(ge=0, le=2**40)]
T = TypeVar("T")


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `kernelci run` is to do, as its flags have it."""

    kernels: Words = ()
    rungs: Word = ""
    targets: Words = ()
    case: Word = ""
    draw: Word = ""
    seed: Word = ""
    tier: Literal["pr", "full"] = "pr"
    all_configs: bool = False
    jobs: int | None = None
    gpus: Word | None = None
    profile: Word | None = None

    def arguments(self) -> list[str]:
        """The flags again."""
        named = {"rungs": self.rungs, "case": self.case, "draw": self.draw, "seed": self.seed, "tier": self.tier}
        named |= {"jobs": "" if self.jobs is None else str(self.jobs), "gpus": self.gpus or ""}
        named |= {"profile": self.profile or ""}
        found = [f"--{name}={value}" for name, value in named.items() if value]
        found += [f"--target={target}" for target in self.targets]
        found += ["--all-configs"] if self.all_configs else []
        return [*found, "--", *self.kernels]


class Request(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is asked of the other machine; an archive of `size` bytes with the project follows."""

    options: Options
    size: Size
    environ: dict[Word, Word] = {}
    """Options that were set by variables here."""
    has_base: bool = False
    """The archive holds a base to compare with."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How the run ended; an archive of `size` bytes with its report folder follows. With a `message`: no run."""

    code: Annotated[int, Meta(ge=0, le=255)]
    size: Size = 0
    left_out: int = 0
    """Files that were too much to send."""
    message: Word = ""
    hint: Word = ""
    error: Word = ""
    """The code of the error."""


def encoded(message: Request | Answer) -> bytes:
    """As a line."""
    return msgspec.json.encode(message) + b"\n"


def decoded(line: bytes, kind: type[T]) -> T:
    """A line as a record. Raises RunnerBroken for what is none."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RunnerBroken(f"the other side of `run --on` said something else: {error}", code="remote") from error


def copy(source: IO[bytes], into: IO[bytes], size: int) -> int:
    """Copy so many bytes; how many there were before the end."""
    left = size
    while left and (chunk := source.read(min(_CHUNK, left))):
        into.write(chunk)
        left -= len(chunk)
    return size - left
