"""Status: what is served, and what is stale, missing or failed against what is configured and installed now."""

from pathlib import Path

from msgspec import Struct

from kernelci import config
from kernelci.config import ContextSource
from kernelci.context import places, sources, sync
from kernelci.context.places import Record
from kernelci.context.sources import Missing, SourceFailed


class State(Struct, frozen=True, kw_only=True):
    """One source: current, stale, not indexed, missing (not installed), or unreachable."""

    name: str
    kind: str
    state: str
    said: str
    record: Record | None


def states(root: Path) -> list[State]:
    """Every configured source against the world as it is, without the network."""
    root = root.resolve()
    folder = places.home(root)
    manifest = places.read(folder)
    return [_state(source, root, folder, manifest.get(source.name)) for source in sources.configured(config.load(root))]


def _state(source: ContextSource, root: Path, folder: Path, record: Record | None) -> State:
    state, said = _compared(source, root, folder, record)
    return State(name=source.name, kind=source.kind, state=state, said=said, record=record)


def _compared(source: ContextSource, root: Path, folder: Path, record: Record | None) -> tuple[str, str]:
    if record is not None and not (folder / record.shard).is_file():
        return "not indexed", "its index is gone; kernelci context sync"
    if record is None and source.kind in ("git", "web"):
        return "not indexed", "kernelci context sync"
    try:
        found = sources.look(source, root, folder, offline=True)
    except Missing as error:
        return "missing", str(error)
    except SourceFailed as error:
        return "unreachable", str(error)
    if record is None:
        return "not indexed", "kernelci context sync"
    if record.fingerprint != sync.fingerprint(source, found):
        other = (
            f"{record.version} is indexed, {found.version} is here" if found.version != record.version else "it changed"
        )
        return "stale", f"{other}; kernelci context sync {source.name}"
    return "current", ""


def table(found: list[State]) -> str:
    """The states as a person reads them."""
    lines = []
    for state in found:
        record = state.record
        label = (record.version or record.commit[:12]) if record else ""
        held = f"{record.files:,} files, {record.chunks:,} chunks, {record.synced_at}" if record else ""
        lines.append("  ".join(part for part in (f"{state.name:<14}", f"{state.state:<12}", label, held) if part))
        lines += [f"{'':<16}{state.said}"] if state.said else []
        if record:
            lines.append(f"{'':<16}license: {record.license}")
            lines += [f"{'':<16}left out: {text}" for text in record.left_out[:3]]
            more = record.left_out_count - 3
            lines += [f"{'':<16}and {more:,} more left out (--json lists the first hundred)"] if more > 0 else []
    return "\n".join(lines)
