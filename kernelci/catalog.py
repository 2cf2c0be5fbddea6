"""The catalog: every kernel and reference of a project, found by its place and read as text."""

import hashlib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci import problems
from kernelci.card import Card, has_card, parse
from kernelci.config import Config
from kernelci.errors import CardError, ConfigError
from kernelci.problems import definitions


class Kernel(Struct, frozen=True):
    """One file in `kernels/`: judged. `error` says why its card can't be read; then `card` is None."""

    name: str
    path: Path
    card: Card | None
    error: str = ""
    generated: dict[str, bytes] = {}
    """Files that a solution's JSON stands for, by name; the stub among them is what is imported."""

    @property
    def reference(self) -> str:
        """The card's reference, or the folder's name where there is no card."""
        return self.card.reference if self.card else self.path.parent.name

    @property
    def backend(self) -> str:
        """The card's backend, or empty where there is no card."""
        return self.card.backend if self.card else ""

    def sources(self) -> tuple[Path, ...]:
        """The kernel's own files: the Python file and those of the same stem beside it (a `.cu`)."""
        beside = self.path.parent.glob(f"{self.path.stem}.*")
        return tuple(sorted(path for path in beside if path.is_file() and path.suffix != ".pyc"))

    def sha256(self) -> str:
        """The hash of the kernel's own files, names and contents."""
        digest = hashlib.sha256()
        for path in self.sources():
            content = path.read_bytes()
            digest.update(f"{path.name}:{len(content)}:".encode() + content)
        return digest.hexdigest()


class Catalog(Struct, frozen=True):
    """The kernels, and the references by name."""

    root: Path
    kernels: tuple[Kernel, ...]
    references: dict[str, Path]

    def select(self, patterns: Iterable[str]) -> tuple[Kernel, ...]:
        """The kernels that match any of the names, wildcards, reference names or paths; all where none is given.

        Raises ConfigError for a pattern that matches nothing.
        """
        patterns = tuple(patterns)
        if not patterns:
            return self.kernels
        chosen: dict[str, Kernel] = {}
        for pattern in patterns:
            found = [kernel for kernel in self.kernels if self._matches(kernel, pattern)]
            if not found:
                names = ", ".join(kernel.name for kernel in self.kernels[:12])
                raise ConfigError(f"no kernel matches {pattern!r}", hint=f"known: {names or 'none'}", code="no-kernels")
            chosen |= {kernel.name: kernel for kernel in found}
        return tuple(kernel for kernel in self.kernels if kernel.name in chosen)

    def one(self, name: str, doing: str) -> Kernel:
        """The kernel of that name. Raises ConfigError where it names none or several; `doing` says what needs one."""
        kernels = self.select((name,))
        if len(kernels) > 1:
            names = ", ".join(kernel.name for kernel in kernels[:12])
            raise ConfigError(f"{name!r} matches {len(kernels)} kernels, and one is {doing}", hint=f"one of {names}")
        return kernels[0]

    def _matches(self, kernel: Kernel, pattern: str) -> bool:
        if fnmatchcase(kernel.name, pattern) or kernel.reference == pattern:
            return True
        sources = [source.resolve() for source in kernel.sources()]
        return Path(pattern).suffix != "" and (self.root / pattern).resolve() in sources


def scan(root: Path, config: Config) -> Catalog:
    """Read the project at `root`. Raises ConfigError for missing folders and for two kernels of one name."""
    folder = root / config.kernels
    if not folder.is_dir():
        raise ConfigError(
            f"no folder {folder}",
            hint="run in the project's root, or begin one with `kernelci init`",
            code="no-kernels",
        )
    known = references(root / config.references)
    paths = sorted([*folder.rglob("*.py"), *folder.rglob("*.json")])
    fitting = [path for path in paths if _is_kernel(path.relative_to(folder))]
    kernels = tuple(
        read(path) if path.suffix == ".py" else read_solution(path, known)
        for path in fitting
        if path.suffix == ".py" or definitions.is_solution(path)
    )
    _refuse_twins(kernels, root)
    return Catalog(root, kernels, known)


def references(folder: Path) -> dict[str, Path]:
    """The references by name: Python files, and definitions of flashinfer-bench in folders of any depth."""
    found = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    for path in sorted(folder.rglob("*.json")):
        if definitions.is_definition(path):
            found.setdefault(definitions.name_of(path), path)
    return found


def _is_kernel(path: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.parts)


def read(path: Path) -> Kernel:
    """A kernel file's card and name, read as text; never fails."""
    try:
        text = path.read_text(encoding="utf-8")
        card = (_of_solution(path, text) if not has_card(text) else None) or parse(text)
    except UnicodeDecodeError as error:
        return Kernel(f"{path.parent.name}/{path.stem}", path, None, _undecodable(error))
    except (CardError, OSError) as error:
        return Kernel(f"{path.parent.name}/{path.stem}", path, None, str(error))
    return Kernel(f"{card.reference}/{card.name or path.stem}", path, card)


def _undecodable(error: UnicodeDecodeError) -> str:
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"the file is not UTF-8: byte 0x{error.object[error.start]:02x} in line {line}; save it as UTF-8"


def read_solution(path: Path, references: dict[str, Path]) -> Kernel:
    """A kernel in flashinfer-bench's form; never fails."""
    try:
        solution = definitions.solution(path)
        name = {"reference": solution.definition, "name": path.stem}
        card = msgspec.convert({**name, "backend": solution.backend, "entry": problems.ENTRY}, Card)
        known = references.get(solution.definition)
        asked = definitions.definition(known) if known is not None and known.suffix == ".json" else None
        generated = solution.files(asked) if asked is not None else {}
    except (definitions.Malformed, msgspec.ValidationError, OSError) as error:
        return Kernel(f"{path.parent.name}/{path.stem}", path, None, f"solution: {error}")
    return Kernel(f"{card.reference}/{card.name}", path, card, generated=generated)


def _of_solution(path: Path, text: str) -> Card | None:
    """The card that a KernelBench solution needs not have: its folder names the reference, its imports the backend."""
    found = problems.defined(text)
    if not found.is_solution:
        return None
    try:
        values = {"reference": path.parent.name, "backend": found.backend, "entry": problems.ENTRY}
        return msgspec.convert(values, Card)
    except msgspec.ValidationError as error:
        raise CardError(f"the folder {path.parent.name!r} can't be a reference's name: {error}") from error


def _refuse_twins(kernels: tuple[Kernel, ...], root: Path) -> None:
    seen: dict[str, Path] = {}
    for kernel in kernels:
        if kernel.name in seen:
            first, second = (path.relative_to(root) for path in (seen[kernel.name], kernel.path))
            raise ConfigError(f"two kernels of the name {kernel.name}: {first} and {second}", code="duplicate-name")
        seen[kernel.name] = kernel.path
