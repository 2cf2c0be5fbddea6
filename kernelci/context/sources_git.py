"""A git repository at a commit, tag or branch: fetched without a work tree, so nothing in it is checked out or run."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kernelci.config import ContextSource
from kernelci.context.reading import MAX_FILE_BYTES
from kernelci.context.sources import Found, SourceFailed, chosen

_COMMIT = re.compile(r"[0-9a-f]{40}")
TIMEOUT_S = 1800
# No prompts, no helpers that a URL could name, and no configuration but our own; a fetched repository holds no hooks.
_SAFE = ("-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "fetch.fsckObjects=true")


def look(source: ContextSource, root: Path, folder: Path, offline: bool) -> Found:
    """The repository at the ref that is configured. Raises SourceFailed."""
    if source.where.startswith("-") or not source.where:
        raise SourceFailed(f"{source.where!r} is no URL")
    store = folder / "git" / f"{source.name}.git"
    commit = _commit(source, store, offline)
    listed = [entry for entry in _tree(store, commit) if chosen(source, entry[0])]
    return Found(
        version=source.ref if source.ref and not _COMMIT.fullmatch(source.ref) else commit[:12],
        commit=commit,
        fingerprint=repr((commit, source.where, source.paths, source.exclude)),
        files=lambda: _files(store, listed),
        license=source.license or _license(store, commit),
    )


def _commit(source: ContextSource, store: Path, offline: bool) -> str:
    """The commit, fetched if it is not here; a full hash that is here needs no network at all."""
    if _COMMIT.fullmatch(source.ref) and store.is_dir() and _has(store, source.ref):
        return source.ref
    if offline:
        return (
            _git(store, "rev-parse", "--verify", "refs/kernelci/served").strip() if store.is_dir() else _never(source)
        )
    store.mkdir(parents=True, exist_ok=True)
    _git(store, "init", "--bare", "--quiet")
    wanted = source.ref or "HEAD"
    try:
        _git(store, "fetch", "--depth=1", "--no-tags", "--force", "--", source.where, f"{wanted}:refs/kernelci/fetched")
    except SourceFailed as error:
        raise SourceFailed(f"{error}{_known(source, store)}") from error
    commit = _git(store, "rev-parse", "--verify", "refs/kernelci/fetched^{commit}").strip()
    _git(store, "update-ref", "refs/kernelci/served", commit)
    return commit


def _never(source: ContextSource) -> str:
    raise SourceFailed(f"{source.where} was never fetched")


def _has(store: Path, commit: str) -> bool:
    try:
        _git(store, "cat-file", "-e", f"{commit}^{{tree}}")
    except SourceFailed:
        return False
    return True


def _known(source: ContextSource, store: Path) -> str:
    """What branches there are, where the one that is configured is not."""
    try:
        listed = _git(store, "ls-remote", "--symref", "--", source.where, "HEAD", "refs/heads/*")
    except SourceFailed:
        return ""
    heads = re.findall(r"\trefs/heads/(\S+)$", listed, re.MULTILINE)
    default = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", listed, re.MULTILINE)
    if source.ref in heads:
        return ""
    name = default[1] if default else "?"
    return f"; it has no branch {source.ref!r}: its default is {name}, its branches {', '.join(heads[:10])}"


def _tree(store: Path, commit: str) -> Iterator[tuple[str, str, int]]:
    """Path, object and size of each plain file."""
    for entry in _git(store, "ls-tree", "-r", "-z", "--long", commit).split("\0"):
        facts, _, path = entry.partition("\t")
        mode, kind, name, size = facts.split() if path else ("", "", "", "0")
        if kind == "blob" and mode in ("100644", "100755"):
            yield path, name, int(size)


def _files(store: Path, listed: list[tuple[str, str, int]]) -> Iterator[tuple[str, bytes]]:
    """Each path with its bytes; of one over the limit only so much that it is seen to be over it."""
    with subprocess.Popen(
        ["git", *_SAFE, "cat-file", "--batch"],
        cwd=store,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for path, name, size in listed:
            if size > MAX_FILE_BYTES:
                yield path, bytes(MAX_FILE_BYTES + 1)
                continue
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            process.stdout.readline()
            yield path, process.stdout.read(size)
            process.stdout.read(1)
        process.stdin.close()


def _license(store: Path, commit: str) -> str:
    for path, name, _ in _tree(store, commit):
        if path.upper().startswith(("LICENSE", "COPYING")) and "/" not in path:
            lines = _git(store, "cat-file", "blob", name).splitlines()
            return f"{path}: {next((line.strip() for line in lines if line.strip()), '')}"[:200]
    return "not stated"


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def _git(store: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *_SAFE, *arguments], cwd=store, env=_environment(), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"git {arguments[0]}: {error}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise SourceFailed(f"git {arguments[0]}: {said[-1][:300] if said else done.returncode}")
    return done.stdout.decode(errors="surrogateescape")
