"""Sync: look at every source, index what changed, and swap the manifest, so that nothing half-made is served."""

import datetime
import hashlib
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kernelci import config
from kernelci.config import ContextSource
from kernelci.context import places, shard, sources
from kernelci.context.places import Manifest, Record
from kernelci.context.sources import Found, Missing, SourceFailed
from kernelci.errors import ConfigError

# Raise it when chunks or words change: shards made by older rules are made anew.
RULES = 6


class Done(Struct, frozen=True):
    """What became of one source: indexed, unchanged, missing (package not installed), or failed."""

    name: str
    outcome: str
    said: str = ""


def sync(
    root: Path, names: tuple[str, ...] = (), *, offline: bool = False, progress: Callable[[Done], None] | None = None
) -> list[Done]:
    """Bring the named sources up to date, or all. Raises ConfigError for a name that nothing has."""
    root = root.resolve()
    known = sources.configured(config.load(root))
    _check(known, names)
    folder = places.made(root)
    done = []
    with places.locked(folder):
        _drop(folder, known)
        for source in known:
            if not names or source.name in names:
                done.append(_one(source, root, folder, offline))
                if progress is not None:
                    progress(done[-1])
    return done


def _check(known: tuple[ContextSource, ...], names: tuple[str, ...]) -> None:
    every = [source.name for source in known]
    twice = next((name for name in every if every.count(name) > 1), None)
    if twice:
        raise ConfigError(f"two context sources of the name {twice!r}", code="duplicate-name")
    for name in names:
        if name not in every:
            raise ConfigError(f"no context source {name!r}", hint=f"known: {', '.join(every)}")


def _drop(folder: Path, known: tuple[ContextSource, ...]) -> None:
    """Stop serving what is no longer configured, and clear what an interrupted sync left."""
    for partial in folder.glob("*.partial"):
        partial.unlink(missing_ok=True)
    kept = tuple(record for record in places.read(folder).records if record.name in {source.name for source in known})
    places.write(folder, Manifest(records=kept))


def _one(source: ContextSource, root: Path, folder: Path, offline: bool) -> Done:
    before = places.read(folder).get(source.name)
    try:
        found = sources.look(source, root, folder, offline=offline)
        mark = fingerprint(source, found)
        if before is not None and before.fingerprint == mark and (folder / before.shard).is_file():
            return Done(source.name, "unchanged", _said(before))
        record = _index(source, found, mark, folder)
    except Missing as error:
        return Done(source.name, "missing", str(error))
    except SourceFailed as error:
        return Done(source.name, "failed", f"{error}{'; the last version stays' if before else ''}")
    others = tuple(other for other in places.read(folder).records if other.name != source.name)
    places.write(folder, Manifest(records=tuple(sorted((*others, record), key=lambda item: item.name))))
    return Done(source.name, "indexed", _said(record))


def fingerprint(source: ContextSource, found: Found) -> str:
    """What the shard of this source, as it is now, would be marked with."""
    parts = (
        RULES,
        source.kind,
        source.dsl,
        source.license,
        found.license,
        found.version,
        found.commit,
        found.fingerprint,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _index(source: ContextSource, found: Found, mark: str, folder: Path) -> Record:
    name = f"{source.name}-{mark[:12]}.db"
    built = shard.build(folder / name, sources.texts(source, found))
    return Record(
        name=source.name,
        kind=source.kind,
        where=source.where,
        dsl=source.dsl,
        version=found.version,
        commit=found.commit,
        license=found.license,
        synced_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fingerprint=mark,
        shard=name,
        files=built.files,
        chunks=built.chunks,
        source_bytes=built.source_bytes,
        left_out=built.left_out,
        left_out_count=built.left_out_count,
    )


def _said(record: Record) -> str:
    label = record.version or record.commit[:12]
    left = f", {record.left_out_count} files left out" if record.left_out_count else ""
    return f"{label + ': ' if label else ''}{record.files:,} files, {record.chunks:,} chunks{left}"
