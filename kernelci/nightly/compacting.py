"""Merging the nights of past months, and forgetting what is older than the retention, in one commit."""

import datetime
from collections import defaultdict

from kernelci import history
from kernelci.nightly.branch import Change, Edit, Snapshot

KEEP_DAYS = 800
SETTLED_DAYS = 3  # after its end a month's last nights have been pushed


def compaction(today: datetime.date, keep_days: int = KEEP_DAYS) -> Change:
    """The edit that merges past months (one file a month and GPU) and drops what ended before the retention.

    A night that arrives after its month was merged is merged into one more file.
    """
    oldest = today - datetime.timedelta(days=keep_days)

    def edit(now: Snapshot) -> Edit:
        gone = [path for path in now.tree if (day := history.last_day(path)) is not None and day < oldest]
        groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for path in sorted(now.tree.keys() - set(gone)):
            of = history.month_of(path)
            if of is not None and _over(of[0], today):
                groups[of].append(path)
        added = {}
        for (month, gpu), paths in groups.items():
            lines = b"".join(history.unpacked(data) for data in now.read(paths))
            name, data = history.month_file(month, gpu, lines)
            added[name] = data
        merged = [path for paths in groups.values() for path in paths]
        message = f"compaction: {len(merged)} nights merged, {len(gone)} files past {keep_days} days dropped"
        return Edit(added, tuple(gone + merged), message)

    return edit


def _over(month: str, today: datetime.date) -> bool:
    end = history.last_day(f"{history.MONTHS}/{month}")
    return end is not None and end + datetime.timedelta(days=SETTLED_DAYS) < today
