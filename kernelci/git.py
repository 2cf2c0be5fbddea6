"""A git repository read as data: objects only. No work tree, hook, filter, attribute or configuration of it is used."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kernelci.errors import ConfigError

REGULAR = ("100644", "100755")
LINK = "120000"
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.allow=never", "safe.directory=*")
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
}


class Entry(Struct, frozen=True):
    """One file of a commit: its mode (100644, 100755; 120000 is a link, 160000 a submodule), object and size."""

    mode: str
    object: str
    size: int

    @property
    def is_regular(self) -> bool:
        """Whether it is a file with contents, and no link or submodule."""
        return self.mode in REGULAR


class Touched(Struct, frozen=True):
    """A path that differs between two commits."""

    path: str
    change: Literal["added", "modified", "removed"]


class Repository:
    """The repository that holds `folder`; `prefix` is the folder's own path within it, empty or ending in a slash."""

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError where the folder lies in no repository."""
        self.folder = folder.resolve()
        self.prefix = self._text("rev-parse", "--show-prefix").removesuffix("\n")
        self.folder = Path(self._text("rev-parse", "--show-toplevel").removesuffix("\n"))

    def commit(self, ref: str) -> str:
        """The commit that a name stands for. Raises ConfigError where there is none."""
        try:
            return self._text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").strip()
        except ConfigError as error:
            lacks = "this shallow clone" if self.is_shallow else "this repository"
            hint = f"`git fetch --depth=1 origin {ref}` brings it, or check out with fetch-depth: 0"
            raise ConfigError(f"{lacks} has no commit {ref[:80]!r}", hint=hint, code="base") from error

    @property
    def is_shallow(self) -> bool:
        """Whether its history was cut when it was cloned."""
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    def merge_base(self, base: str, head: str) -> str:
        """The commit at which head left base. Raises ConfigError where their histories don't meet."""
        return self._text("merge-base", base, head).strip()

    def between(self, good: str, bad: str, paths: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Commits of the main line after `good` up to `bad` that touch one of the paths, the oldest first."""
        limit = ("--", *paths) if paths else ()
        return tuple(self._text("rev-list", "--first-parent", "--reverse", f"{good}..{bad}", *limit).split())

    def touched(self, base: str, head: str) -> tuple[Touched, ...]:
        """Every path that differs; a rename is a removal and an addition."""
        fields = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", base, head).split(b"\0")
        pairs = zip(fields[0::2], fields[1::2], strict=False)
        return tuple(Touched(_path(path), _change(raw.decode())) for raw, path in pairs)

    def tree(self, commit: str) -> dict[str, Entry]:
        """Every file of a commit by its path from the repository's root."""
        found = {}
        for line in self._git("ls-tree", "-r", "-z", "--long", "--full-tree", commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, name, size = facts.decode().split()
            found[_path(path)] = Entry(mode, name, int(size) if size.isdigit() else 0)
        return found

    def contents(self, entries: list[Entry]) -> Iterator[bytes]:
        """The bytes of each entry, in their order, exactly as they are stored."""
        asked = "".join(f"{entry.object}\n" for entry in entries).encode()
        answer = memoryview(self._git("cat-file", "--batch", stdin=asked))
        for entry in entries:
            head = bytes(answer[:128]).partition(b"\n")[0]
            if head.endswith(b" missing"):
                raise ConfigError(f"object {entry.object} is missing", hint="fetch without --filter", code="git")
            size = int(head.split()[2])
            if size != entry.size:
                raise ConfigError(f"object {entry.object} has {size} bytes, not {entry.size}", code="git")
            yield bytes(answer[len(head) + 1 : len(head) + 1 + size])
            answer = answer[len(head) + size + 2 :]

    def write(self, tree: dict[str, Entry], into: Path) -> None:
        """Write a commit's files, and its links where they stay within, below an empty folder.

        Raises ConfigError where the folder is not empty, and for a file behind a link.
        """
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise ConfigError(f"{into} is not empty", hint="name a new folder", code="output-folder")
        kept = {path: entry for path, entry in tree.items() if entry.is_regular or entry.mode == LINK}
        for (path, entry), content in zip(kept.items(), self.contents(list(kept.values())), strict=True):
            file = place(into, path)
            if entry.is_regular:
                file.write_bytes(content)
            elif _stays(into, file, content.decode(errors="surrogateescape")):
                file.symlink_to(content.decode(errors="surrogateescape"))

    def difference(self, base: str, head: str, path: str) -> str:
        """The unified difference of one file."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
        return self._text("diff", *options, base, head, "--", path)

    def _text(self, *arguments: str) -> str:
        return self._git(*arguments).decode(errors="replace")

    def _git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        try:
            done = subprocess.run(
                ["git", *settings, "-C", str(self.folder), *arguments],
                input=stdin, env=_ENVIRONMENT, capture_output=True, check=False, timeout=600,
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(f"git: {error.strerror}", hint="install git", code="git") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip() or f"no answer to {' '.join(arguments)}"
            raise ConfigError(f"git: {said}", hint="check the commits out with fetch-depth: 0", code="git")
        return done.stdout


def place(into: Path, path: str) -> Path:
    """Where a file of that path goes; its folder exists then. Raises ConfigError where a link is in the way."""
    found = into / path
    for parent in reversed(found.relative_to(into).parents):
        if (into / parent).is_symlink():
            raise ConfigError(f"{path} lies behind a link of the base", hint="make it a folder", code="git")
    found.parent.mkdir(parents=True, exist_ok=True)
    return found


def _stays(into: Path, file: Path, target: str) -> bool:
    return not target.startswith("/") and (file.parent / target).resolve().is_relative_to(into.resolve())


def _change(raw: str) -> Literal["added", "modified", "removed"]:
    """`:100644 100644 OLD NEW M` in words."""
    _, _, old, new, _ = raw.split()
    if set(old) == {"0"}:
        return "added"
    return "removed" if set(new) == {"0"} else "modified"


def _path(raw: bytes) -> str:
    """A path that can be written below a folder. Raises ConfigError for one that leaves it."""
    path = raw.decode(errors="surrogateescape")
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts) or not path.isprintable():
        raise ConfigError(f"a commit holds the path {path!a}", hint="rename it", code="git")
    return path
