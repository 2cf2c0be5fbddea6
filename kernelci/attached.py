"""Differences of machine code and PTX that a report points at, read from its folder: untrusted paths, bounded sizes."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kernelci.model import Artifact, KernelReport, Report

ENDINGS = {"sass.diff": "SASS", "ptx.diff": "PTX"}
MAX_BYTES = 2**20
LINES = 400  # of one difference
ALL_LINES = 8_000


class Pair(Struct, frozen=True):
    """One line of a difference: base's and head's text side by side; `mark` is what became of it: " ", "~" or "@"."""

    mark: str
    base: str
    head: str


class Attached(Struct, frozen=True):
    """One difference: what it is of, its lines, and how many more there are."""

    kernel: str
    place: str
    what: str
    lines: tuple[Pair, ...]
    more: int


def differences(report: Report, folder: Path | None) -> tuple[Attached, ...]:
    """All differences of a report that lie in its folder, up to a limit of lines over all."""
    left, found = ALL_LINES, []
    for kernel, artifact in _artifacts(report) if folder is not None else ():
        text = read(folder, artifact) if folder is not None else ""
        if not text or left <= 0:
            continue
        pairs = list(paired(text))
        kept = pairs[: min(LINES, left)]
        left -= len(kept)
        place = artifact.path.removeprefix(f"dumps/{kernel.name}/").rpartition("/")[0]
        found.append(Attached(kernel.name, place, ENDINGS[artifact.kind], tuple(kept), len(pairs) - len(kept)))
    return tuple(found)


def _artifacts(report: Report) -> Iterator[tuple[KernelReport, Artifact]]:
    for kernel in report.kernels:
        for rung in kernel.rungs:
            yield from ((kernel, artifact) for artifact in rung.artifacts if artifact.kind in ENDINGS)


def read(folder: Path, artifact: Artifact) -> str:
    """An artifact's beginning as text; nothing where it lies elsewhere or is no file."""
    path = (folder / artifact.path).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")


def paired(text: str) -> Iterator[Pair]:
    """The lines of a difference side by side: what went beside what came in its place."""
    gone: list[str] = []
    came: list[str] = []
    for line in text.split("\n"):
        mark, rest = line[:1], line[2:]
        if mark == "-" and not came:
            gone.append(rest)
        elif mark == "+":
            came.append(rest)
        else:
            yield from _beside(gone, came)
            gone, came = ([rest] if mark == "-" else []), []
            if mark in (" ", "@"):
                yield Pair(mark, rest, rest if mark == " " else "")
    yield from _beside(gone, came)


def _beside(gone: list[str], came: list[str]) -> Iterator[Pair]:
    for number in range(max(len(gone), len(came))):
        yield Pair("~", *("".join(side[number : number + 1]) for side in (gone, came)))
