"""The untrusted side of a call's timeline: single records, where a ledger has sums (kernelci.workbench.recorder)."""

import re
import threading
from collections.abc import Callable
from typing import Any

from kernelci.workbench.activity import MAX_NS, printable
from kernelci.workbench.happening import HOST, MAX_HAPPENINGS, Happening, Kind
from kernelci.workbench.protocol import Followed

# Names end in the version that introduced a function, and in how it treats the default stream.
_ENDINGS = re.compile(r"(_v\d+|_ptsz|_ptds)+\Z")
_LANES = 2**32 - 1


class Chronicle:
    """Collects what CUPTI delivers and what the calling thread marks itself; bounded, and what is beyond counted."""

    def __init__(self, cupti: Any, record: Callable[[Any], Any]) -> None:
        """`record` makes a recorder's Record of an activity on the GPU."""
        self._cupti = cupti
        self._record = record
        self._threads = {_identity(): 0}
        self._found: list[tuple[Kind, str, int, int, int, int]] = []
        self.dropped = 0

    def take(self, activity: Any) -> None:
        """Take one activity of CUPTI's. Raises what reading it raises."""
        kinds = self._cupti.ActivityKind
        if activity.kind in (kinds.RUNTIME, kinds.DRIVER):
            lane = self._threads.setdefault(activity.thread_id, len(self._threads))
            self._add("api", self._function(activity), activity.start, activity.end, lane, activity.correlation_id)
        else:
            one = self._record(activity)
            self._add(one.kind, one.name, one.start_ns, one.end_ns, one.stream, activity.correlation_id)

    def mark(self, kind: Kind, name: str, start_ns: int, end_ns: int) -> None:
        """Something that the calling thread did, by CUPTI's clock."""
        self._add(kind, name, start_ns, end_ns, 0, 0)

    def _add(self, kind: Kind, name: str, start: int, end: int, lane: int, correlation: int) -> None:
        if len(self._found) >= MAX_HAPPENINGS or not 0 < start <= end:
            self.dropped += 1
            return
        self._found.append((kind, printable(name), start, end, lane & _LANES, correlation & _LANES))

    def _function(self, activity: Any) -> str:
        runtime = activity.kind == self._cupti.ActivityKind.RUNTIME
        numbers = self._cupti.RuntimeApiTraceCbid if runtime else self._cupti.DriverApiTraceCbid
        try:
            return plain(numbers(activity.cbid).name)
        except ValueError:
            return f"{'runtime' if runtime else 'driver'} function {activity.cbid}"

    def told(self, lost: int = 0) -> Followed:
        """The message; `lost`: records that never came."""
        first = min((start for _, _, start, _, _, _ in self._found), default=0)
        found = [
            Happening(kind, name, min(start - first, MAX_NS), min(end - first, MAX_NS), lane, correlation)
            for kind, name, start, end, lane, correlation in self._found
        ]
        found.sort(key=lambda one: (one.start_ns, -one.end_ns, HOST.index(one.kind) if one.kind in HOST else len(HOST)))
        return Followed(tuple(found), min(self.dropped + lost, 10**9))


def plain(name: str) -> str:
    """`cudaLaunchKernel` of `cudaLaunchKernel_ptsz_v7000`."""
    return _ENDINGS.sub("", name)


def _identity() -> int:
    """The calling thread as CUPTI names it: pthread_self, cut to 32 bits."""
    return threading.get_ident() & _LANES
