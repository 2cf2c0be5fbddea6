"""A session: one kernel's candidate process and its arena; a candidate that dies is replaced for the next call."""

import signal
import time
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.tracing.prelude import TraceAt
from kernelci.workbench import health
from kernelci.workbench.arena import Arena
from kernelci.workbench.process import Candidate, Ended
from kernelci.workbench.protocol import (
    AWAKE_S,
    AllDone,
    Audit,
    Call,
    Calls,
    DeadlinePassed,
    Done,
    Finished,
    Follow,
    Followed,
    Forget,
    Go,
    Ledger,
    Load,
    Loaded,
    Message,
    Pack,
    Packed,
    Prepared,
    Raised,
    Refused,
    Series,
    Source,
    Spots,
    Turn,
)

Answer = TypeVar("Answer", bound=Message)

# Calls that are made together have the time of so many: where the first is through, the others are as a rule quick.
TOGETHER = 2
NOT_WHEN_CALLED = ("needs-data", "candidate-start")
ARENA_BYTES = 16 * 2**20  # grown on demand; all of it is compared after each call


class Limits:
    """Deadlines in seconds and host memory in bytes for one session."""

    def __init__(self, load_s: float, call_s: float, memory_bytes: int) -> None:
        self.load_s = load_s
        self.call_s = call_s
        self.memory_bytes = memory_bytes


class Forker(Protocol):
    """What starts candidates: a zygote, or for tools that must start them a Single."""

    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> Candidate:
        """A fresh process that may take this much memory (0: any)."""


class Session:
    """Calls of one kernel. Every fault of the kernel comes out as a Stop with its reason.

    After a fault on a GPU the GPU itself is asked: one that is sick raises GpuSick, which is nobody's stop.
    """

    def __init__(
        self,
        forker: Forker,
        source: Source,
        entry: str,
        backend: str,
        device: str,
        limits: Limits,
        caches: tuple[bytes, ...] = (),
        separate: bool = False,
        arena: Arena | None = None,
        audit: bool = False,
        trace: TraceAt | None = None,
    ) -> None:
        """`arena`: one that several sessions work on by turns, and that outlives them; by default one of its own.

        `audit`: the candidate records what its GPU does. `trace`: it makes trace builds, which nobody times.
        """
        self._health = health.monitor(device)
        self._separate = separate
        self._audit = audit
        self._trace = trace
        self._forker = forker
        self._load = (source, entry, backend, "cpu" if device == "cpu" else "cuda:0")  # the only one that it sees
        self._device = device
        self._caches = caches
        self.limits = limits
        self._candidate: Candidate | None = None
        self._started = 0
        self.starting_s = 0.0  # of all of its candidates: forks and imports
        self._shared = arena is not None
        self.arena = arena or Arena(device, ARENA_BYTES)
        self.parameters: tuple[str, ...] = ()
        self._spots: dict[int, dict[str, Spots]] = {}  # by series
        self._graphs: frozenset[int] = frozenset()  # the series whose results can't move
        self.configs = 0  # of the longest list that an autotuner chose from
        self.profiled = False  # whether a profiler around the candidate is to look at calls

    def reserve(self, size: int) -> None:
        """Make the arena at least `size` bytes large; a larger one needs a fresh candidate."""
        if size > self.arena.size:
            self._drop()
            self.arena.close()
            self.arena = Arena(self._device, max(size, 2 * self.arena.size))

    def call(self, message: Call) -> Done:
        """Call the entry in the candidate. Raises Stop."""
        answer = self._answered(replace(message, profiled=self.profiled), Done)
        self.configs = max(self.configs, answer.configs)
        return answer

    def call_all(self, messages: Sequence[Call]) -> "list[Done | Stop]":
        """Call the entry on each, in order, and wait for the device once: a Done each, or the Stop of what it
        raised; a worse fault ends them, as the last of a shorter list. Raises Stop for a fault of no one call.
        """
        if len(messages) == 1:
            return [self._attempted(messages[0])]
        answers = self._answered(Calls(tuple(messages)), AllDone, self.patience_s(len(messages))).answers
        found: list[Done | Stop] = []
        for answer in answers[: len(messages)]:
            found.append(answer if isinstance(answer, Done) else self._stop(answer, NOT_WHEN_CALLED))
            if isinstance(answer, Done):
                self.configs = max(self.configs, answer.configs)
            elif self._candidate is None:
                return found
        if len(answers) != len(messages):
            self._drop()
            raise Stop("refused", f"{len(answers)} answers to {len(messages)} calls")
        return found

    def _attempted(self, message: Call) -> "Done | Stop":
        try:
            return self.call(message)
        except Stop as stop:
            if stop.reason != "raised":
                raise
            return stop

    def patience_s(self, calls: int) -> float:
        """The deadline of so many calls together."""
        return self.limits.call_s * min(calls, TOGETHER)

    @property
    def life(self) -> int:
        """Which candidate runs, counted from 1; 0 where none does. What an earlier one got ready is gone."""
        return self._started if self._candidate is not None else 0

    def start(self) -> None:
        """Have the candidate running with the kernel imported, before anything is asked of it. Raises Stop."""
        self._running()

    def prepare(self, message: Series) -> Prepared:
        """Get a series ready in the candidate. Raises Stop."""
        answer = self._answered(message, Prepared)
        self._spots[message.number] = answer.spots
        self._graphs = self._graphs | {message.number} if message.mode == "graph" else self._graphs - {message.number}
        return answer

    def turn(self, case: dict[str, Any]) -> None:
        """Let the kernel prepare for a case, outside of every window. Raises Stop."""
        self._answered(Turn(case), Prepared)

    def spots(self, number: int) -> dict[str, Spots]:
        """Where a series leaves what it returns, by output: a claim. Empty: in its slots."""
        return self._spots.get(number, {})

    def go(self, number: int) -> tuple[int, float]:
        """Run a series; nanoseconds by this side's clock, and by the candidate's events: a claim. Raises Stop."""
        message = Go(number)
        self._running()
        began = time.perf_counter_ns()
        answer = self._answered(message, Finished)
        took = time.perf_counter_ns() - began
        if self._device != "cpu" and not answer.device_ns:
            raise Stop("clocks-disagree", "by the candidate's events the calls took no time at all")
        if answer.spots and number not in self._graphs and self._spots.get(number):
            self._spots[number] = answer.spots
        return took, answer.device_ns

    def ledger(self) -> Ledger:
        """What the candidate says that its GPU did since it was last asked: a claim. Raises Stop."""
        return self._answered(Audit(), Ledger)

    def follow(self, call: Call, calls: int) -> Followed:
        """What the candidate says that host and GPU did in so many calls: a claim. Raises Stop."""
        return self._answered(Follow(call, calls), Followed, self.patience_s(calls + 1))

    def packed(self) -> bytes:
        """What compilers left in the candidate's cache. Raises Stop."""
        return self._answered(Pack(), Packed).cache

    def forget(self) -> None:
        """Drop all series. Raises Stop."""
        self._answered(Forget(), Prepared)

    def _answered(self, message: Message, kind: type[Answer], timeout_s: float = 0.0) -> Answer:
        answer = self._ask(self._running(), message, timeout_s or self.limits.call_s)
        if not isinstance(answer, kind):
            self._drop()
            text = f"the candidate answered a {type(message).__name__.lower()} with {type(answer).__name__}"
            raise Stop("refused", text)
        return answer

    def _running(self) -> Candidate:
        if self._candidate is None:
            began = time.monotonic()
            try:
                self._candidate = self._fresh()
            finally:
                self.starting_s += time.monotonic() - began
        return self._candidate

    def _fresh(self) -> Candidate:
        self._health.require_well()
        self._started += 1
        self._candidate = self._forker.fork(self.arena.fd, self.limits.memory_bytes)
        arena = (self.arena.size, self.arena.handle)
        load = Load(*self._load, *arena, self._caches, self._separate, self._audit, self._trace)
        answer = self._ask(self._candidate, load, self.limits.load_s)
        if not isinstance(answer, Loaded):
            self._drop()
            raise Stop("refused", f"the candidate answered a load with {type(answer).__name__}")
        self.parameters = answer.parameters
        return self._candidate

    def _ask(self, candidate: Candidate, message: Message, timeout_s: float) -> Any:
        try:
            answer = candidate.ask(message, timeout_s, AWAKE_S if isinstance(message, Go) else 0.0)
        except DeadlinePassed:
            raise self._died("hang", f"no answer within {timeout_s:g} s", candidate) from None
        except Refused as error:
            raise self._died("refused", str(error), candidate) from None
        except Ended as end:
            raise self._died(*_reason(end), candidate) from None
        if isinstance(answer, Raised):
            # Host code that asks for data gets data here, and a call comes after the start: such claims are exceptions
            # like any other.
            raise self._stop(answer, ("needs-data",) if isinstance(message, Load) else NOT_WHEN_CALLED)
        return answer

    def _stop(self, answer: Raised, impossible: tuple[str, ...]) -> Stop:
        """What a claim of a fault means."""
        reason = "raised" if answer.reason in impossible else answer.reason
        if answer.reason != "raised":
            self._drop()  # a lost CUDA context, or no memory left: only a fresh process is worth anything
            self._health.after(answer.reason)
        return Stop(reason, answer.message, file=answer.file, line=answer.line, log=answer.log)

    def _died(self, reason: str, message: str, candidate: Candidate) -> Stop:
        log = candidate.log()
        self._drop()
        self._health.after(reason)
        return Stop(reason, message, log=log)

    def renew(self) -> None:
        """End the candidate: the next call finds a fresh one, which remembers nothing."""
        self._drop()

    def _drop(self) -> None:
        if self._candidate is not None:
            self._candidate.close()
            self._candidate = None

    def close(self) -> None:
        """End the candidate and give the arena back."""
        self._drop()
        if not self._shared:
            self.arena.close()


def _reason(end: Ended) -> tuple[str, str]:
    if end.signal == signal.SIGKILL:
        return "out-of-memory", "the process took more memory than it may, and was killed"
    if end.signal:
        return "crashed", f"the process died of {signal.Signals(end.signal).name}"
    return "exited", f"the process ended with exit code {end.code} instead of answering"
