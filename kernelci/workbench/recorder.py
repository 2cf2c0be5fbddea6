"""The untrusted side of the ledger: CUPTI in a candidate's own process. What it writes is evidence, never proof.

A `Recorder` is made before the calls that it shall see, graphs included: CUPTI names a graph's nodes only where it was
on when the graph was made. It needs cupti-python and a driver that permits tracing; elsewhere a ledger says why not.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kernelci.workbench.activity import MAX_LINES, MAX_NS, MAX_RECORDS, Activity, Kind, printable
from kernelci.workbench.chronicle import Chronicle
from kernelci.workbench.protocol import Followed, Ledger

BUFFER_BYTES = 8 * 2**20
CANARY_ELEMENTS = 1024
_LIMIT = 2**31 - 1


class Record(NamedTuple):
    """One launch, copy or fill. Times in ns on the GPU's clock; `node` is 0 outside of a graph."""

    kind: Kind
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stream: int
    node: int
    start_ns: int
    end_ns: int


class Recorder:
    """Records what the GPU does between `start` and `stop`; `device` is torch's name of it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._tally = Tally()
        self._chronicle: Chronicle | None = None
        self._cupti: Any = None
        self.missing = ""
        try:
            self._enable()
            self._require_canary()
        except Exception as error:  # no package, no library, no permission: each is only told
            self.missing = printable(f"{type(error).__name__}: {error}", 1000)

    def start(self) -> None:
        """Forget what was seen so far."""
        if not self.missing:
            self._settle()
            with self._lock:
                self._tally = Tally()

    def stop(self) -> Ledger:
        """Wait for the device; what it did since `start`."""
        if self.missing:
            return Ledger(missing=self.missing)
        self._settle()
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally.ledger(self._lost())

    def follow(self, run: Callable[[], object], calls: int) -> Followed:
        """Make so many calls, each until the device is done; all that host and GPU did meanwhile, one by one."""
        if self.missing:
            return Followed(missing=self.missing)
        import torch

        self._settle()
        chronicle = Chronicle(self._cupti, self._record)
        with self._lock:
            self._chronicle = chronicle
        with self._functions():
            for number in range(calls):
                began = self._cupti.get_timestamp()
                run()
                returned = self._cupti.get_timestamp()
                torch.cuda.synchronize(self._device)
                chronicle.mark("call", f"call {number}", began, returned)
                chronicle.mark("wait", "wait for the device", returned, self._cupti.get_timestamp())
            self._settle()
        with self._lock:
            self._chronicle = None
        return chronicle.told(self._lost())

    @contextlib.contextmanager
    def _functions(self) -> Iterator[None]:
        """Under it the functions of the API are recorded too."""
        kinds = self._cupti.ActivityKind.RUNTIME, self._cupti.ActivityKind.DRIVER
        for kind in kinds:
            self._cupti.activity_enable(kind)
        try:
            yield
        finally:
            for kind in kinds:
                self._cupti.activity_disable(kind)

    def close(self) -> None:
        """Record no more."""
        for kind in self._kinds() if self._cupti else ():
            with contextlib.suppress(Exception):
                self._cupti.activity_disable(kind)

    def _kinds(self) -> tuple[Any, ...]:
        kinds = self._cupti.ActivityKind
        return kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET

    def _enable(self) -> None:
        from cupti import cupti

        self._cupti = cupti
        cupti.activity_register_callbacks(_buffer, self._completed)
        for kind in self._kinds():
            cupti.activity_enable(kind)

    def _require_canary(self) -> None:
        """Raise unless a kernel that surely ran was seen: some drivers permit everything and record nothing."""
        import torch

        torch.zeros(CANARY_ELEMENTS, device=self._device).add_(1.0)
        self._settle()
        if not self._tally.seen:
            raise RuntimeError("CUPTI accepts the request and records nothing")

    def _settle(self) -> None:
        import torch

        torch.cuda.synchronize(self._device)
        self._cupti.activity_flush_all(1)

    def _completed(self, activities: Iterable[Any]) -> None:
        """CUPTI's callback, from a thread of its own; the records live only as long as the call."""
        with self._lock:
            sink = self._chronicle or self._tally
            for activity in activities:
                try:
                    if self._chronicle is not None:
                        self._chronicle.take(activity)
                    else:
                        self._tally.add(self._record(activity))
                except Exception:
                    sink.dropped += 1

    def _record(self, activity: Any) -> Record:
        kernels, copies, _ = self._kinds()
        place = (activity.stream_id, activity.graph_node_id, activity.start, activity.end)
        if activity.kind == kernels:
            grid = (activity.grid_x, activity.grid_y, activity.grid_z)
            return Record("kernel", activity.name, grid, (activity.block_x, activity.block_y, activity.block_z), *place)
        if activity.kind == copies:
            return Record("memcpy", _direction(self._cupti, activity.copy_kind), (0, 0, 0), (0, 0, 0), *place)
        return Record("memset", "", (0, 0, 0), (0, 0, 0), *place)

    def _lost(self) -> int:
        """Records for which CUPTI had no buffer."""
        lost = ctypes.c_size_t(0)
        with contextlib.suppress(Exception):
            self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(lost))
        return lost.value


def _buffer() -> tuple[int, int]:
    """The size of a buffer, and 0: as many records as it holds."""
    return BUFFER_BYTES, 0


def _direction(cupti: Any, kind: int) -> str:
    """A copy's direction in CUPTI's word: HTOD, DTOD …"""
    with contextlib.suppress(Exception):
        return str(cupti.ActivityMemcpyKind(kind).name)
    return str(kind)


class Line:
    """Equal records, counted."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self.nodes: set[int] = set()

    def add(self, record: Record) -> None:
        """One more."""
        took = record.end_ns - record.start_ns
        self.count += 1
        self.total_ns += took
        self.longest_ns = max(self.longest_ns, took)
        if record.node:
            self.nodes.add(record.node)


class Tally:
    """Sums records into lines, bounded in records and in lines; all that is beyond is counted."""

    def __init__(self) -> None:
        self.dropped = 0
        self.seen = 0
        self._lines: dict[tuple[Any, ...], Line] = {}
        self._times: list[tuple[int, int]] = []

    def add(self, record: Record) -> None:
        """Take a record; one without times, or beyond the bound, is only counted as dropped."""
        if self.seen >= MAX_RECORDS or not 0 < record.start_ns <= record.end_ns:
            self.dropped += 1
            return
        self.seen += 1
        key = (record.kind, printable(record.name), record.grid, record.block, record.stream)
        if key not in self._lines and len(self._lines) >= MAX_LINES - 1:
            key = ("rest", "", (0, 0, 0), (0, 0, 0), 0)
        self._lines.setdefault(key, Line()).add(record)
        self._times.append((record.start_ns, record.end_ns))

    def ledger(self, lost: int = 0) -> Ledger:
        """The message; `lost`: records that never came."""
        activities = tuple(_activity(key, line) for key, line in self._lines.items())
        busy, span = _busy(self._times)
        return Ledger(activities, _bounded(busy), _bounded(span), min(self.dropped + lost, 10**9))


def _activity(key: tuple[Any, ...], line: Line) -> Activity:
    kind, name, grid, block, stream = key
    sizes = tuple(min(size, _LIMIT) for size in (*grid, *block))
    return Activity(
        kind, name, sizes[:3], sizes[3:], stream, line.count, _bounded(line.total_ns), _bounded(line.longest_ns),
        len(line.nodes),
    )  # fmt: skip


def _bounded(time_ns: int) -> float:
    """A time as the message takes it; a driver's nonsense must not make it unreadable."""
    return float(min(time_ns, MAX_NS))


def _busy(times: list[tuple[int, int]]) -> tuple[int, int]:
    """The time covered by at least one interval, and the time from the first start to the last end."""
    busy, until = 0, 0
    for start, end in sorted(times):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy, until - min((start for start, _ in times), default=until)
