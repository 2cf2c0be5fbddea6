"""Judge from the base: which files judge, what of them a change touches, and the tree that a change is judged in.

That tree is the base's, with the head's kernels laid over it. The head's other files are only ever read, as data.
"""

import fnmatch
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from kernelci import catalog, config, second
from kernelci.catalog import Catalog
from kernelci.errors import ConfigError
from kernelci.git import Entry, Repository, Touched, place
from kernelci.model import Change, JudgeChange
from kernelci.resources import TEMPLATES

Role = Literal["reference", "rung", "configuration", "template", "workflow", "packaging", "kernelci"]
MAX_FILES = 2_000
MAX_FILE_BYTES = 8 * 2**20
MAX_BYTES = 64 * 2**20
MAX_TREE_FILES = 50_000
MAX_TREE_BYTES = 512 * 2**20
MAX_JUDGE = 200
MAX_DIFFERENCE = 8_000
# By the path from the repository's root; the project's own folders come from the base's configuration.
_WORKFLOW = (".github/*", "action.yml", "action.yaml")
_PACKAGING = (
    "setup.py", "setup.cfg", "conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "requirements*.txt",
    "constraints*.txt", "*.lock", "tox.ini", "pytest.ini", "noxfile.py", "Makefile", "hatch.toml", "MANIFEST.in",
    ".gitattributes", ".gitmodules", "Dockerfile", "*.whl",
)  # fmt: skip


class Judged(Struct, frozen=True):
    """A tree to judge in: the project's folder there, the kernels to climb with, and what the report has to say."""

    root: Path
    change: Change
    kernels: tuple[str, ...]
    unjudged: tuple[catalog.Kernel, ...] = ()
    notes: tuple[str, ...] = ()
    concerned: tuple[catalog.Kernel, ...] = ()
    """Kernels that the change's own judge may judge otherwise than the base's; the second referee is asked of these."""


def role(path: str, options: config.Config, prefix: str = "") -> Role | None:
    """What a file has to do with judging; None for kernels, and for what judges nothing (documentation, say)."""
    own = path.removeprefix(prefix) if path.startswith(prefix) else None
    if own is not None:
        folders: dict[str, Role] = {
            options.references: "reference", options.rungs: "rung", TEMPLATES: "template", "kernelci": "kernelci",
        }  # fmt: skip
        for folder, found in folders.items():
            if _within(own, folder):
                return found
        if _within(own, options.kernels):
            return None
        if own in config.FILES:
            return "configuration"
    if any(fnmatch.fnmatchcase(path, pattern) for pattern in _WORKFLOW):
        return "workflow"
    name = PurePosixPath(path).name
    return "packaging" if any(fnmatch.fnmatchcase(name, pattern) for pattern in _PACKAGING) else None


def assemble(repository: Repository, base: str, head: str, into: Path) -> Judged:
    """Write the tree that judges head's kernels with base's judge into an empty folder.

    Raises ConfigError for commits that can't be had, and for a change that is too large.
    """
    base, head = repository.commit(base), repository.commit(head)
    touched = repository.touched(repository.merge_base(base, head), head)
    trunk, branch = repository.tree(base), repository.tree(head)
    repository.write(trunk, into)
    root = into / repository.prefix
    options = config.load(root)
    before = _scan(root, options)
    folder = f"{repository.prefix}{options.kernels}"
    notes = _overlay(repository, branch, [each for each in touched if _within(each.path, folder)], into)
    after = _scan(root, options)
    climbed = _touched_kernels(after, root, {each.path.removeprefix(repository.prefix) for each in touched})
    unjudged = tuple(kernel for kernel in climbed if _only_in_head(kernel, after, branch, repository.prefix, options))
    judging = [(each.path, kind) for each in touched if (kind := role(each.path, options, repository.prefix))]
    change = Change(
        base,
        head,
        _judge_changes(repository, touched, base, head, options),
        tuple(sorted({kernel.name for kernel in before.kernels} - {kernel.name for kernel in after.kernels})),
        tuple(kernel.name for kernel in unjudged),
    )
    names = tuple(kernel.name for kernel in climbed if kernel not in unjudged)
    own = {root / path.removeprefix(repository.prefix): kind for path, kind in judging}
    concerned = _concerned(after, climbed, own) or unjudged
    return Judged(root, change, names, unjudged, notes, concerned)


def write_head(repository: Repository, head: str, into: Path) -> Path:
    """The whole head, as files that nothing of ours reads: for a sandbox. Its project's folder.

    Raises ConfigError for more than a sandbox is given.
    """
    branch = repository.tree(head)
    total = sum(entry.size for entry in branch.values())
    if len(branch) > MAX_TREE_FILES or total > MAX_TREE_BYTES:
        hint = f"at most {MAX_TREE_FILES:,} files and {MAX_TREE_BYTES // 2**20} MiB go into a sandbox"
        raise ConfigError(f"the head is {len(branch):,} files of {total:,} bytes", hint=hint, code="change-too-large")
    repository.write(branch, into)
    return into / repository.prefix


def _within(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.strip('/')}/")


def _scan(root: Path, options: config.Config) -> Catalog:
    """The catalog; an empty one where there is no folder of kernels yet."""
    if (root / options.kernels).is_dir():
        return catalog.scan(root, options)
    (root / options.kernels).mkdir(parents=True)
    return catalog.scan(root, options)


def _overlay(repository: Repository, branch: dict[str, Entry], touched: list[Touched], into: Path) -> tuple[str, ...]:
    """The head's kernels over the base's: only regular files. What was left out is noted."""
    notes, kept = [], {}
    for each in touched:
        _make_room(into, each.path)
        entry = branch.get(each.path)
        if entry is not None and entry.is_regular:
            kept[each.path] = entry
        elif entry is not None:
            notes.append(f"{each.path} is a link or a submodule in this change: left out")
    _check_size(kept)
    for path, content in zip(kept, repository.contents(list(kept.values())), strict=True):
        (into / path).write_bytes(content)
    return tuple(notes[:50])


def _make_room(into: Path, path: str) -> None:
    """Nothing lies where the head's file is to go. Raises ConfigError where the base has a folder there."""
    try:
        place(into, path).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path} does not fit the base: {error.strerror}", hint="bring the branch up to date", code="git"
        ) from error


def _check_size(files: dict[str, Entry]) -> None:
    largest = max(files, key=lambda path: files[path].size, default="")
    total = sum(entry.size for entry in files.values())
    if len(files) > MAX_FILES or total > MAX_BYTES or (largest and files[largest].size > MAX_FILE_BYTES):
        raise ConfigError(
            f"the change's kernels are {len(files):,} files of {total:,} bytes; the largest is {largest}",
            hint=f"at most {MAX_FILES:,} files, {MAX_FILE_BYTES // 2**20} MiB each, {MAX_BYTES // 2**20} MiB together",
            code="change-too-large",
        )


def _touched_kernels(found: Catalog, root: Path, paths: set[str]) -> list[catalog.Kernel]:
    """Kernels with a changed file of their own, or a changed file beside them that is no other kernel's."""
    own = {kernel.name: {str(path.relative_to(root)) for path in kernel.sources()} for kernel in found.kernels}
    shared = paths - set().union(*own.values())
    folders = {str(PurePosixPath(path).parent) for path in shared if (root / path).is_file()}
    return [
        kernel
        for kernel in found.kernels
        if own[kernel.name] & paths or str(kernel.path.relative_to(root).parent) in folders
    ]


def _only_in_head(
    kernel: catalog.Kernel, found: Catalog, branch: dict[str, Entry], prefix: str, options: config.Config
) -> bool:
    path = f"{prefix}{options.references}/{kernel.reference}.py"
    return kernel.reference not in found.references and path in branch


def _concerned(found: Catalog, climbed: list[catalog.Kernel], judging: dict[Path, Role]) -> tuple[catalog.Kernel, ...]:
    """Those that the change touches and those of references that it touches; all, where that is none and yet something
    judges otherwise. None where the change brings no judge that could be heard."""
    kinds = set(judging.values()) & set(second.ROLES)
    if not kinds:
        return ()
    names = {name for name, path in found.references.items() if path in judging}
    chosen = [kernel for kernel in found.kernels if kernel in climbed or kernel.reference in names]
    return tuple(chosen or (found.kernels if kinds - {"template"} else ()))


def _judge_changes(
    repository: Repository, touched: tuple[Touched, ...], base: str, head: str, options: config.Config
) -> tuple[JudgeChange, ...]:
    start = repository.merge_base(base, head)
    found = [(each, role(each.path, options, repository.prefix)) for each in touched]
    judging = [(each, kind) for each, kind in found if kind is not None]
    return tuple(
        JudgeChange(each.path[:300], kind, each.change, _shortened(repository.difference(start, head, each.path)))
        for each, kind in judging[:MAX_JUDGE]
    )


def _shortened(text: str) -> str:
    """Whole lines up to the limit; what is left out is counted."""
    if len(text) <= MAX_DIFFERENCE:
        return text
    kept = text[:MAX_DIFFERENCE].rpartition("\n")[0]
    return f"{kept}\n… ({text.count(chr(10)) - kept.count(chr(10)):,} more lines)\n"
