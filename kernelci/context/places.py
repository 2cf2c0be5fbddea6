"""Where the context lives: `.kernelci/context/`, ignored by git, and the manifest that names what is served."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci import whole
from kernelci.errors import ConfigError, unwritten

FORMAT = 1
MANIFEST = "manifest.json"


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of one source that is served: where it came from, and the shard that holds it."""

    name: str
    kind: str
    where: str
    dsl: str
    version: str
    commit: str
    license: str
    synced_at: str
    fingerprint: str
    shard: str
    files: int
    chunks: int
    source_bytes: int
    left_out: tuple[str, ...] = ()
    """Files that were not taken, with the reason; the first hundred."""
    left_out_count: int = 0


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """All sources that are served; replaced as a whole, so that a reader sees the old ones or the new ones."""

    format: int = FORMAT
    records: tuple[Record, ...] = ()

    def get(self, name: str) -> Record | None:
        """The record of a source."""
        return next((record for record in self.records if record.name == name), None)


def home(root: Path) -> Path:
    """The project's context folder."""
    return root.resolve() / ".kernelci" / "context"


def made(root: Path) -> Path:
    """The context folder, made if need be; git ignores it, since documents in it may not be redistributed."""
    folder = home(root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise unwritten(folder, error, "the project's own folder must be writable") from error
    return folder


def read(folder: Path) -> Manifest:
    """The manifest; an empty one where there is none, or one of another format (a sync then makes all anew)."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return Manifest()
    try:
        if json.loads(data).get("format") != FORMAT:
            return Manifest()
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, ValueError, AttributeError):
        return Manifest()


def write(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest, then drop shards that it no longer names."""
    whole.write(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    served = {record.shard for record in manifest.records}
    for shard in folder.glob("*.db"):
        if shard.name not in served:
            shard.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One sync at a time. Raises ConfigError where another one runs."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError("another `kernelci context sync` is running", hint="wait for it") from error
        yield
