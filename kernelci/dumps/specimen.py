"""One build as its dump shows it; written beside the dump's files, and read back from a report's folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kernelci.dumps.sass import MAX_CHARACTERS, Instruction, parse
from kernelci.errors import ConfigError

FOLDER = "dumps"
RECORD = ".build.json"
MAX_RECORD_BYTES = 2**16
MAX_FILES = 10_000
Name = Annotated[str, Meta(max_length=4000)]
Count = Annotated[int, Meta(ge=0, le=2**53)]


class Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of a build besides its files: bytes a block (shared memory) or a thread (stack)."""

    symbol: Name = ""
    config: Name = ""
    block: tuple[Count, Count, Count] | None = None
    grid: tuple[Count, Count, Count] | None = None
    registers: Count | None = None
    stack_bytes: Count = 0
    static_shared_bytes: Count = 0
    dynamic_shared_bytes: Count = 0
    code_bytes: Count = 0
    barriers: Count = 0
    occupancy: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    """The share of an SM's warps that run at once."""
    limiter: Annotated[str, Meta(max_length=40)] = ""
    """What forbids one block more: registers, shared memory, threads or blocks."""


class Specimen(Struct, frozen=True):
    """A build: where it stands (kernel, case and target as folders), what is known of it, its SASS and PTX."""

    place: str
    record: Record
    sass: str
    ptx: str = ""

    def code(self) -> tuple[Instruction, ...]:
        """Its instructions."""
        return parse(self.sass)


def written(record: Record) -> bytes:
    """The record's file."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def read(folder: Path) -> list[Specimen]:
    """All builds below a report's folder, or one of dumps. Raises ConfigError where there is none."""
    if not folder.is_dir():
        raise ConfigError(f"no folder {folder}", hint="name a run's report, or its dumps")
    top = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    found = sorted(path for path in top.rglob("*.sass") if path.is_file())[:MAX_FILES]
    if not found:
        raise ConfigError(f"no .sass file in {folder.name}", hint="kernelci compile writes them to REPORT/dumps")
    return [_specimen(top, path) for path in found]


def _specimen(top: Path, path: Path) -> Specimen:
    beside = path.with_suffix("")
    place = path.relative_to(top).with_suffix("").as_posix()
    return Specimen(place, _record(Path(f"{beside}{RECORD}")), _text(path), _text(Path(f"{beside}.ptx")))


def _record(path: Path) -> Record:
    """What stands beside a dump; nothing where there is none, or what is there is none of ours."""
    if not path.is_file() or path.stat().st_size > MAX_RECORD_BYTES:
        return Record()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except msgspec.MsgspecError:
        return Record()


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_CHARACTERS).decode(errors="replace")


def folders(specimens: list[Specimen]) -> Iterator[tuple[str, list[Specimen]]]:
    """Builds by their folder: kernel, case and target."""
    found: dict[str, list[Specimen]] = {}
    for each in specimens:
        found.setdefault(each.place.rpartition("/")[0], []).append(each)
    yield from found.items()
