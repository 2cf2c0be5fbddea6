"""How long indexing takes, and how large the index is: `python benchmarks/retrieval/size.py FOLDER…`.

Each folder's text files become one source of a project that is made for this and thrown away. Both clocks are shown,
since on a machine that does other work too only the CPU's says what indexing costs.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from kernelci.context import places, sync


def cpu() -> float:
    """Seconds of CPU of this process and of those that it waited for."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> int:
    """Index, and print."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        tables = (
            f"[[context]]\nname = 'source-{number}'\nkind = 'folder'\nwhere = '{Path(folder).resolve()}'\n"
            for number, folder in enumerate(sys.argv[1:])
        )
        (root / "kernelci.toml").write_text("\n".join(tables), encoding="utf-8")
        wall, used = time.monotonic(), cpu()
        sync.sync(root, progress=lambda done: print(f"{done.name}: {done.outcome}: {done.said}"))
        wall, used = time.monotonic() - wall, cpu() - used
        records = places.read(places.home(root)).records
        sources = sum(record.source_bytes for record in records) / 2**20
        index = sum((places.home(root) / record.shard).stat().st_size for record in records) / 2**20
    print(f"{sources:.0f} MiB of sources in {wall:.1f} s ({used:.1f} s of CPU)")
    print(f"index: {index:.0f} MiB, {index / sources:.2f} times its sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
