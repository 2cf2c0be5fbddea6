"""What this GPU does today, measured once per run: a copy, a matmul per dtype, and what the clock itself costs."""

import random
from collections.abc import Callable, Iterator, Sequence

import torch
from msgspec import Struct
from msgspec.structs import replace

from kernelci import gpus
from kernelci.reference import Cost
from kernelci.workbench.arena import Arena, dtype_of
from kernelci.workbench.clock import Overhead, Window, overhead
from kernelci.workbench.protocol import Call, Series, Source, TensorPlace
from kernelci.workbench.series import usual_mode
from kernelci.workbench.session import Session
from kernelci.workbench.stopwatch import stopwatch

COPY_BYTES = 2**30
MATMUL_SIZE = 8192
REPEATS = 10
# A kernel that does next to nothing, in a candidate like any other.
PROBE_ENTRY = "probe"
PROBE = Source(
    "probe",
    "probe.py",
    {
        "probe.py": b"""import torch


def probe(x, y, cycles=0):
    if cycles:
        torch.cuda._sleep(cycles)
    else:
        torch.add(x, 1.0, out=y)
"""
    },
)
# On tensors that lie where slot 0 has its first guard zone.
PROBE_CALL = Call({}, {"x": TensorPlace(0, (16,), (1,), "float32")}, {"y": TensorPlace(1024, (16,), (1,), "float32")})
LONG, LONG_CYCLES = 0, 36_000_000  # the number of its long window, and 20 ms of an idle SM's cycles
PROBE_SIZES = (128, 256, 512, 1024)
PROBE_ROUNDS = 8
DTYPES = ("float16", "bfloat16", "float32")
PROBE_FILL_BYTES = 2**28
# Where gpus.toml does not know a GPU, this much more than what was measured is taken for impossible.
MARGIN = 1.25


Opened = Callable[[Arena, Source, str], Session]


class Calibration(Struct, frozen=True):
    """Ceilings measured on this GPU in this run (byte/s, FLOP/s by dtype), those of its datasheet, and the clock's own
    cost."""

    copy_bytes_per_s: float
    overhead: Overhead
    peaks: dict[str, float]
    limit_bytes_per_s: float
    limit_flops_per_s: dict[str, float]
    l2_bytes: int

    def least_ns(self, cost: Cost, dtype: str, calls: int) -> float:
        """What a call must take at the least, ns: by the datasheet, and as if what fits in the L2 never left it."""
        moved = max((cost.bytes or 0.0) * calls - 2 * self.l2_bytes, 0.0) / calls
        flops = self.limit_flops_per_s.get(dtype, 0.0)
        return 1e9 * max(moved / self.limit_bytes_per_s, cost.flops / flops if flops else 0.0)

    def is_bound_by_arithmetic(self, cost: Cost, dtype: str) -> bool:
        """Whether at the measured ceilings its arithmetic takes a call longer than its bytes."""
        flops = self.peaks.get(dtype, 0.0)
        return bool(flops) and cost.flops / flops > (cost.bytes or 0.0) / self.copy_bytes_per_s

    def ceiling_ns(self, cost: Cost, dtype: str) -> float:
        """What a call takes at the ceilings that were measured here, ns."""
        flops = self.peaks.get(dtype, 0.0)
        return 1e9 * max((cost.bytes or 0.0) / self.copy_bytes_per_s, cost.flops / flops if flops else 0.0)


def calibrate(device: str, name: str, opened: Opened) -> Calibration:
    """Measure all on a device with this name. `opened` starts candidates for the probe. Raises Stop."""
    gpu = gpus.by_name(name)
    copied, peaks = copy_bandwidth(device), {dtype: matmul_peak(device, dtype) for dtype in DTYPES}
    limits = {dtype: MARGIN * peak for dtype, peak in peaks.items()}
    if gpu is not None:
        limits |= {dtype: gpu.peak(dtype) for dtype in peaks}
    return Calibration(
        copied,
        clock_overhead(device, opened),
        peaks,
        gpu.memory_bandwidth_bytes_per_s if gpu else MARGIN * copied,
        limits,
        gpu.l2_bytes if gpu else torch.cuda.get_device_properties(device).L2_cache_size,
    )


def copy_bandwidth(device: str) -> float:
    """Bytes read and written in a second by a copy of a gibibyte within the GPU's memory."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / _seconds(device, lambda: target.copy_(source))


def matmul_peak(device: str, dtype: str) -> float:
    """FLOP in a second of torch's own matmul of square matrices of normal numbers; 0 for a dtype it does not take."""
    try:
        left, right = (torch.randn(MATMUL_SIZE, MATMUL_SIZE, device=device).to(dtype_of(dtype)) for _ in range(2))
        return 2 * MATMUL_SIZE**3 / _seconds(device, lambda: left @ right)
    except RuntimeError:
        return 0.0


def _seconds(device: str, work: Callable[[], object]) -> float:
    """Of the fastest of some: a ceiling is what the GPU reaches where nothing disturbs it and it is not hot yet."""
    work()
    times = []
    for _ in range(REPEATS):
        stop = stopwatch(device)
        work()
        times.append(stop())
    return min(times) / 1e9


class Probe:
    """A candidate like any other with a kernel that does next to nothing: its windows take what the clock itself costs.

    `opened` starts it on an arena with this source and entry. Raises Stop.
    """

    def __init__(self, arena: Arena, opened: Opened) -> None:
        self._device = arena.device
        self._session = opened(arena, PROBE, PROBE_ENTRY)
        for size in PROBE_SIZES:
            self._session.prepare(Series(size, PROBE_CALL, (0,) * size, 0, usual_mode(self._device)))
        if self._device != "cpu":
            long = replace(PROBE_CALL, arguments=PROBE_CALL.arguments | {"cycles": LONG_CYCLES})
            self._session.prepare(Series(LONG, long, (0,), 0, "graph"))

    def window(self, size: int) -> Window:
        """A window of so many calls; the referee must have used the GPU just before, as before any other."""
        return Window(size, *self._session.go(size))

    def wake(self) -> None:
        """A short window that counts for nothing: the first after a wait takes longer by the referee's clock."""
        self.window(PROBE_SIZES[0])
        self.turn()

    def turn(self) -> None:
        """What comes before the values of any window."""
        self._session.turn({})

    def sample(self) -> Window:
        """A window as long as those that are measured, in a kernel that only waits; without a GPU one of some size."""
        if self._device == "cpu":
            return self.window(random.choice(PROBE_SIZES))
        return Window(1, *self._session.go(LONG))

    def close(self) -> None:
        """End the candidate."""
        self._session.close()


def clock_overhead(device: str, opened: Opened) -> Overhead:
    """The cost of a window beside its calls, where nothing else is there. Raises Stop."""
    arena = Arena(device, 2**16)
    probe = Probe(arena, opened)
    try:
        return overhead([probe.window(size) for size in by_lot(device, PROBE_SIZES, PROBE_ROUNDS, probe.turn)])
    finally:
        probe.close()
        arena.close()


def by_lot(device: str, sizes: Sequence[int], rounds: int, turn: Callable[[], None]) -> Iterator[int]:
    """Each size so many times in an order by lot; there was a turn, and the referee has used the GPU just before, as
    before any window."""
    filling = torch.empty(PROBE_FILL_BYTES if device != "cpu" else 1, dtype=torch.uint8, device=device)
    order = [size for size in sizes for _ in range(rounds)]
    random.shuffle(order)
    for size in order:
        turn()
        stop = stopwatch(device)
        filling.random_(0, 255)
        stop()
        yield size
