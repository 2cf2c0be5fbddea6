"""The other side of a comparison: the kernels of a base commit, paired by name with those of the working tree.

The base's files are written from git's objects into a folder of their own, without a checkout: no filter or hook runs,
nothing is left in .git, and a temporary folder is all that there is to remove. The working tree's references judge both
sides.
"""

import ast
import contextlib
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci import catalog, config
from kernelci.catalog import Catalog, Kernel
from kernelci.config import Config
from kernelci.errors import ConfigError
from kernelci.git import Entry, Repository
from kernelci.model import Change
from kernelci.units import listed

LABEL = ".kernelci-base.json"
NAMES = 8  # of kernels or files in a note
# Options that say where things lie and how many run at once: no outcome depends on them.
HARMLESS = frozenset({"out", "cache", "jobs", "lanes", "gpus", "baselines", "context", "ssh", "on_command"})


class Base(Struct, frozen=True):
    """A base's project, written into a folder. `name` is what the user called it, `commit` what that stands for."""

    name: str
    catalog: Catalog
    options: Config
    commit: str = ""
    head: str = ""
    """The commit that the working tree started from."""
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """The folder of the base's project."""
        return self.catalog.root

    def kernel(self, name: str) -> Kernel | None:
        """The base's kernel of that name; None: it is new."""
        return next((kernel for kernel in self.catalog.kernels if kernel.name == name), None)


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """What a base's folder does not say by itself, for `in_folder` on another machine."""

    name: str
    commit: str
    head: str
    notes: tuple[str, ...]
    options: Config


@contextlib.contextmanager
def opened(root: Path, options: Config, ref: str) -> Iterator[Base]:
    """The project at `root` as it was in the commit `ref`; its folder goes with the block.

    Raises ConfigError("base") where there is no repository, no such commit, or not all of its files.
    """
    with tempfile.TemporaryDirectory(prefix="kernelci-base-") as folder:
        try:
            repository = Repository(root)
            commit, head = repository.commit(ref), repository.commit("HEAD")
            tree = repository.tree(commit)
            own = _options(repository, tree, Path(folder, "configuration"), options)
            into = Path(folder, "tree").resolve()
            repository.write(_below(tree, _folders(repository.prefix, own)), into)
            found = _scan(into / repository.prefix, own)
            changed = _uncommitted(root, repository, repository.tree(head), options)
        except ConfigError as error:
            if error.code == "base":
                raise
            raise ConfigError(f"--base {ref}: {error.message}", hint=error.hint, code="base") from error
        notes = (f"not committed, and judged as it is: {listed(changed, NAMES)}",) if changed else ()
        yield Base(ref, found, own, commit, head, notes)


def in_folder(folder: Path) -> Base:
    """A base that somebody has laid out already. Raises ConfigError("base") where there is none."""
    if not folder.is_dir():
        raise ConfigError(f"no folder {folder}", hint="name the folder of the base's project", code="base")
    label = folder / LABEL
    if label.is_file():
        try:
            said = msgspec.json.decode(label.read_bytes(), type=Label)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ConfigError(
                f"{label}: {error}", hint="`run --on` writes such a file; remove it", code="base"
            ) from error
        found = _scan(folder.resolve(), said.options)
        return Base(said.name, found, said.options, said.commit, said.head, said.notes)
    own = config.load(folder, environ={})
    return Base("the base", _scan(folder.resolve(), own), own)


def labelled(base: Base) -> None:
    """Write into a base's folder what `in_folder` needs to give the same base again."""
    said = Label(base.name, base.commit, base.head, base.notes, base.options)
    (base.root / LABEL).write_bytes(msgspec.json.encode(said))


def same_sources(base: Kernel, head: Kernel) -> bool:
    """Whether two kernels' files are the same but for comments, docstrings and cards: then so is what Python does."""
    sides = [{path.name: _bare(path) for path in kernel.sources()} for kernel in (base, head)]
    return sides[0] == sides[1] and base.generated == head.generated


def _bare(path: Path) -> bytes | str:
    content = path.read_bytes()
    if path.suffix != ".py":
        return content
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return content
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def remarks(base: Base, head: Catalog, kernels: Iterable[Kernel]) -> tuple[str, ...]:
    """What the reader of a comparison must know: new kernels, and what judges otherwise than it did in the base."""
    kernels = tuple(kernels)
    new = [kernel.name for kernel in kernels if base.kernel(kernel.name) is None]
    found = [f"not in {base.name}, and measured alone: {listed(new, NAMES)}"] if new else []
    known = sorted({kernel.reference for kernel in kernels if kernel.name not in new})
    other = [name for name in known if _content(head.references, name) != _content(base.catalog.references, name)]
    ours = "both sides are judged by the working tree's"
    found += [f"references that {base.name} has not, or has otherwise: {listed(other, NAMES)}; {ours}"] if other else []
    options = [name for name in _differing(base.options, config.load(head.root, environ={})) if name not in HARMLESS]
    found += [f"configuration that is another in {base.name}: {listed(options, NAMES)}; {ours}"] if options else []
    return (*base.notes, *found)


def change(base: Base, head: Catalog, patterns: Iterable[str]) -> Change | None:
    """The two commits, and the kernels that are gone, of those that were asked for; None where there are no commits."""
    if not base.commit:
        return None
    names = {kernel.name for kernel in head.kernels}
    gone = (kernel.name for kernel in _selected(base.catalog, patterns) if kernel.name not in names)
    return Change(base.commit, base.head, removed=tuple(gone))


def _selected(known: Catalog, patterns: Iterable[str]) -> tuple[Kernel, ...]:
    """The kernels that match; a pattern that matches nothing is none's fault here."""
    patterns = tuple(patterns)
    if not patterns:
        return known.kernels
    chosen: dict[str, Kernel] = {}
    for pattern in patterns:
        with contextlib.suppress(ConfigError):
            chosen |= {kernel.name: kernel for kernel in known.select((pattern,))}
    return tuple(chosen.values())


def _options(repository: Repository, tree: dict[str, Entry], into: Path, ours: Config) -> Config:
    """The base's options; ours where its own can't be read, as those of another version."""
    names = tuple(f"{repository.prefix}{name}" for name in config.FILES)
    repository.write({path: entry for path, entry in tree.items() if path in names}, into)
    try:
        return config.load(into / repository.prefix, environ={})
    except ConfigError:
        return ours


def _folders(prefix: str, options: Config) -> tuple[str, ...]:
    return tuple(f"{prefix}{name.strip('/')}/" for name in (options.kernels, options.references))


def _below(tree: dict[str, Entry], folders: tuple[str, ...]) -> dict[str, Entry]:
    return {path: entry for path, entry in tree.items() if path.startswith(folders)}


def _scan(root: Path, options: Config) -> Catalog:
    """The catalog; an empty one where the base has no kernels yet."""
    (root / options.kernels).mkdir(parents=True, exist_ok=True)
    return catalog.scan(root, options)


def _uncommitted(root: Path, repository: Repository, tree: dict[str, Entry], options: Config) -> list[str]:
    """Paths, from the project's root, of kernels and references that are not as the commit has them."""
    kept = _below(tree, _folders(repository.prefix, options))
    found = catalog.scan(root, options)
    files = {*found.references.values(), *(path for kernel in found.kernels for path in kernel.sources())}
    here = {f"{repository.prefix}{path.relative_to(root)}" for path in files}
    top = repository.folder
    changed = {path for path, entry in kept.items() if entry.is_regular and _object(top / path, entry) != entry.object}
    return sorted(path.removeprefix(repository.prefix) for path in changed | (here - kept.keys()))


def _object(path: Path, like: Entry) -> str:
    """The name that git gives to a file's bytes, by the same hash as `like`'s; empty where there is no file."""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    digest = hashlib.sha256 if len(like.object) == 64 else hashlib.sha1
    return digest(f"blob {len(content)}\0".encode() + content).hexdigest()


def _content(references: dict[str, Path], name: str) -> bytes | None:
    return references[name].read_bytes() if name in references else None


def _differing(one: Config, other: Config) -> list[str]:
    names = [field.name for field in msgspec.structs.fields(Config)]
    return [name for name in names if getattr(one, name) != getattr(other, name)]
