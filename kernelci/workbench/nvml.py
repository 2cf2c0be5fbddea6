"""The state of a GPU while it is measured: clocks, power, temperature, throttling and other processes, by NVML.

A thread samples it around each block of measurements; pure functions then say whether the block counts. Whatever this
machine does not tell is None, and nothing is dropped for it.
"""

import statistics
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from msgspec import Struct

from kernelci.workbench.nvml_handle import POWER_CAP, THROTTLES, Handle, ours

PERIOD_S = 0.01
WHOLE_EVERY = 50  # samples; between them only what changes fast is asked, since each question costs time
# Below this share of the row's own usual clock a block was not measured on the same machine, so to speak. Within a row
# the clocks of a healthy GPU stay within a few percent, also at its power limit.
LOWEST_CLOCK = 0.85


class State(Struct, frozen=True):
    """One look at a GPU. None: this machine does not tell, or it was not asked this time."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    """The average of the last second on most GPUs (NVML's nvmlDeviceGetPowerUsage)."""
    power_limit_w: float | None = None
    temperature_c: float | None = None
    throttle: int | None = None
    """NVML's clocks event reasons, as bits."""
    foreign: tuple[int, ...] | None = None
    """Processes that compute on this GPU and are none of ours."""
    """When it was taken, by time.monotonic."""


class Sampled(Struct, frozen=True):
    """What was seen during a block: the SM clock's median and extremes, and what the rest came to."""

    samples: int = 0
    sm_clock_hz: float | None = None
    sm_clock_low_hz: float | None = None
    sm_clock_high_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    throttle: int = 0
    foreign: tuple[int, ...] = ()


def summary(states: Sequence[State]) -> Sampled:
    """Median, minimum and maximum of the SM clock, mean power, highest temperature, every throttle bit and process."""
    clocks = _known(state.sm_clock_hz for state in states)
    powers = _known(state.power_w for state in states)
    throttle = 0
    for state in states:
        throttle |= state.throttle or 0
    return Sampled(
        samples=len(states),
        sm_clock_hz=_or_none(statistics.median, clocks),
        sm_clock_low_hz=_or_none(min, clocks),
        sm_clock_high_hz=_or_none(max, clocks),
        memory_clock_hz=_or_none(statistics.median, _known(state.memory_clock_hz for state in states)),
        power_w=_or_none(statistics.fmean, powers),
        power_limit_w=_or_none(min, _known(state.power_limit_w for state in states)),
        temperature_c=_or_none(max, _known(state.temperature_c for state in states)),
        throttle=throttle,
        foreign=tuple(sorted({pid for state in states for pid in state.foreign or ()})),
    )


def why_dropped(sampled: Sampled, normal_clock_hz: float | None) -> str:
    """Why a block does not count; empty if it does. `normal_clock_hz`: the median SM clock of this row's blocks.

    A power cap is no reason by itself: it is how a large matmul runs on a healthy GPU.
    """
    throttles = [name for bit, name in THROTTLES.items() if sampled.throttle & bit]
    if throttles:
        return f"{' and '.join(throttles)} throttle"
    if sampled.foreign:
        pids = ", ".join(map(str, sampled.foreign[:5]))
        return f"another process (pid {pids}) on the GPU"
    if normal_clock_hz and sampled.sm_clock_hz is not None and sampled.sm_clock_hz < LOWEST_CLOCK * normal_clock_hz:
        share = 100 * sampled.sm_clock_hz / normal_clock_hz
        return f"clocks fell to {share:.0f} % of the usual {normal_clock_hz / 1e6:.0f} MHz"
    return ""


def remarks(sampled: Sampled) -> tuple[str, ...]:
    """What is worth a note and no reason to drop anything."""
    capped = bool(sampled.throttle & POWER_CAP)
    limit = f" at {sampled.power_limit_w:.0f} W" if sampled.power_limit_w else ""
    return (f"clocks held down by the power limit{limit}",) if capped else ()


def foreign(pids: tuple[int, ...] | None, is_ours: Callable[[int], bool | None] = ours) -> tuple[int, ...] | None:
    """The processes that are surely not ours; one that can't be seen may be a candidate that just ended.

    None where none is ours, though we compute there too: the driver then counts processes in a namespace that we can't
    see, and the numbers mean nothing here.
    """
    if pids is None:
        return None
    whose = {pid: is_ours(pid) for pid in pids}
    if whose and True not in whose.values():
        return None
    return tuple(pid for pid in pids if whose[pid] is False)


class Device:
    """Looks at one GPU by its UUID. Works without NVML: every reading is then None."""

    def __init__(self, uuid: str) -> None:
        self._handle = Handle(uuid)
        self.missing = self._handle.missing

    def state(self, whole: bool = True) -> State:
        """A look; not `whole`: only clocks, power and throttling. Our own process must compute there already."""
        handle = self._handle
        quick = State(
            sm_clock_hz=handle.number("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM", scale=1e6),
            memory_clock_hz=handle.number("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM", scale=1e6),
            power_w=handle.number("nvmlDeviceGetPowerUsage", scale=1e-3),
            throttle=handle.throttle(),
        )
        return self._with_rest(quick) if whole else quick

    def _with_rest(self, quick: State) -> State:
        return State(
            quick.sm_clock_hz,
            quick.memory_clock_hz,
            quick.power_w,
            power_limit_w=self._handle.number("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3),
            temperature_c=self._handle.number("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
            throttle=quick.throttle,
            foreign=foreign(self._handle.pids()),
        )


class Watch:
    """Samples a GPU in a thread: `with Watch(device) as watch: …`, then `watch.sampled`. Serves one block."""

    def __init__(self, device: Device, period_s: float = PERIOD_S) -> None:
        self._device = device
        self._period_s = period_s
        self._states: list[State] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nvml", daemon=True)
        self.sampled = Sampled()

    def start(self) -> "Watch":
        """Take the first sample, and go on in the background."""
        if not self._device.missing:
            self._states.append(self._device.state())
            self._thread.start()
        return self

    def stop(self) -> Sampled:
        """Take the last sample; what was seen."""
        if self._thread.is_alive():
            self._end.set()
            self._thread.join()
            self._states.append(self._device.state())
        self.sampled = summary(self._states)
        return self.sampled

    def _watch(self) -> None:
        while not self._end.wait(self._period_s):
            self._states.append(self._device.state(whole=len(self._states) % WHOLE_EVERY == 0))

    def __enter__(self) -> "Watch":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _or_none(what: Callable[[list[float]], float], values: list[float]) -> float | None:
    return what(values) if values else None
