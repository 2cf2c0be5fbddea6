"""The untrusted side: what runs in a forked process. It imports one kernel file, calls it, or compiles it.

Nothing here is believed by the referee: every answer is a claim, and what counts is what lies in the arena.
"""

import faulthandler
import importlib
import inspect
import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from kernelci import backends
from kernelci.workbench import namespaces, zygote
from kernelci.workbench.bound import BoundCall
from kernelci.workbench.looking import looked_at
from kernelci.workbench.private import packed, private, unpack, written
from kernelci.workbench.protocol import (
    AWAKE_S,
    AllDone,
    Audit,
    Build,
    Call,
    Calls,
    Channel,
    ChannelClosed,
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
    Ready,
    Series,
    TensorPlace,
    ToCandidate,
    Turn,
    Value,
    Warm,
)
from kernelci.workbench.raising import raised
from kernelci.workbench.recorder import Recorder
from kernelci.workbench.series import ReadySeries, at_slot, make_ready, settle


def main() -> None:
    """Start as a zygote: `KIND CONTROL_FD BACKEND…`; imports torch and each backend's DSL, then forks on demand.

    Of the kind "single" it forks nothing and serves by itself: `single ARENA_FD BACKEND…`, its channel as stdin.
    """
    kind, control, *names = sys.argv[1:]
    sys.argv = ["kernelci-candidate"]
    missing: dict[str, str] = {}
    importlib.import_module("torch")
    importlib.import_module("kernelci.workbench.arena")
    for name in names:
        try:
            backends.get(name).preload()
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {error}"
    if kind == "single":
        single(int(control), missing)
        return
    if kind == "compile":  # only there: it initialises the CUDA driver, after which a fork can't use it
        importlib.import_module("kernelci.workbench.standin").preload()
    zygote.run(socket.socket(fileno=int(control)), kind, serve, missing)


def single(arena_fd: int, missing: dict[str, str]) -> None:
    """Be the one candidate of a sandbox that was made for it (kernelci.workbench.single)."""
    sock = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.chdir(private())
    faulthandler.enable(2)
    if zygote.SANDBOXED:
        namespaces.limited()
    Channel(sock, ToCandidate).send(Ready(missing))
    serve(sock, arena_fd)


def serve(sock: socket.socket, arena_fd: int) -> None:
    """Answer the referee's messages until it closes the channel."""
    channel = Channel(sock, ToCandidate)
    kernel: LoadedKernel | None = None
    awake_s = 0.0
    while True:
        try:
            message = channel.receive(awake_s=awake_s)
        except ChannelClosed:
            return
        try:
            if isinstance(message, Load):
                kernel = LoadedKernel(message, arena_fd)
                answer: Message = Loaded(kernel.parameters)
            elif isinstance(message, Build):
                from kernelci.compiling.answering import build

                answer = build(message)
            elif isinstance(message, Warm):
                importlib.import_module("kernelci.workbench.expression").warm()
                answer = Prepared()
            elif isinstance(message, Pack):
                answer = Packed(packed())
            else:
                assert kernel is not None
                answer = kernel.answer(message)
        except Exception as error:
            answer = raised(error)
        channel.send(answer)
        awake_s = AWAKE_S if isinstance(message, Turn) else 0.0


class LoadedKernel:
    """A kernel file that was imported, and the arena that its calls work on."""

    def __init__(self, message: Load, arena_fd: int) -> None:
        from kernelci.compiling.loading import load

        self.device = message.device
        self._backend = backends.get(message.backend)
        self._arena = _mapped(message, arena_fd)
        self._separate = message.separate
        self._recorder = Recorder(message.device) if message.audit else None
        for cache in message.caches:
            unpack(cache)
        if message.trace is not None:  # from before the kernel takes anything from its DSL
            backends.begin_trace(message.backend, message.trace, self._arena)
        self._module = load(written(message.source))
        self._entry = getattr(self._module, message.entry)
        self.parameters = tuple(inspect.signature(self._entry).parameters)
        self._prepared: dict[str, Any] | None = None
        self._series: dict[int, ReadySeries] = {}
        self._bounds: tuple[Call | None, int, dict[int, BoundCall]] = (None, 0, {})

    def answer(self, message: Message) -> Message:
        """Do what a message of the kernel's own asks for."""
        if isinstance(message, Series):
            return self.ready(message)
        if isinstance(message, Go):
            return self._go(self._series[message.number])
        if isinstance(message, Audit):
            return self._recorder.stop() if self._recorder else Ledger(missing="nothing was to be recorded")
        if isinstance(message, Follow):
            return self._follow(message)
        if isinstance(message, Turn):
            self._prepare(message.case)
            return Prepared()
        if isinstance(message, Forget):
            self._series.clear()
            self._bounds = (None, 0, {})
            return Prepared()
        if isinstance(message, Calls):
            return self.call_all(message)
        assert isinstance(message, Call)
        return self.call(message)

    def call(self, message: Call) -> Done:
        """Call the entry once, wait for the device, and place what it returned."""
        from kernelci.workbench.separate import Separate

        memory = Separate(self._arena, self.device) if self._separate else self._arena
        with looked_at(self.device if message.profiled else "cpu"):
            done = self._called(memory, message)
            settle(self.device)
        memory.give_back()
        return done

    def call_all(self, message: Calls) -> AllDone:
        """Make the calls in order and wait for the device at the end, up to a fault that is more than an exception."""
        answers: list[Done | Raised] = []
        for call in message.calls:
            answers.append(self._attempted(call))
            if isinstance(answers[-1], Raised) and answers[-1].reason != "raised":
                return AllDone(tuple(answers))
        settle(self.device)
        return AllDone(tuple(answers))

    def _attempted(self, message: Call) -> "Done | Raised":
        try:
            return self.call(message) if self._separate else self._called(self._arena, message)
        except Exception as error:
            return raised(error)

    def _called(self, memory: Any, message: Call) -> Done:
        """The call, made and perhaps still at work on the device. Its tensors are gone when this returns, so that the
        next call may find new ones under the same identity."""
        self._prepare(message.case)
        bound = self._bound(memory, message)
        with self._backend.tuned(message.config) as tuning:
            returned = bound()
        return Done(returned, tuning.configs)

    def ready(self, message: Series) -> Prepared:
        """Make a series ready; its calls' tensors are bound to their slots now, and not when the clock runs."""
        self._prepare(message.call.case)
        calls = self._calls(message)
        with self._backend.tuned(message.call.config) as tuning:
            series, answer = make_ready(message, calls, self.device, self._results(message, calls))
        if series is not None:
            self._series[message.number] = series
        return msgspec.structs.replace(answer, config=tuning.chosen, choice=tuning.said[:400])

    def _calls(self, message: Series) -> list[BoundCall]:
        """The calls of a series; those on slots that another series of the same call has are the same."""
        if self._bounds[:2] != (message.call, message.stride):
            self._bounds = (message.call, message.stride, {})
        known = self._bounds[2]
        for slot in message.slots:
            if slot not in known:
                known[slot] = self._bound(self._arena, at_slot(message.call, slot * message.stride))
        return [known[slot] for slot in message.slots]

    def _results(self, message: Series, calls: list[BoundCall]) -> Any:
        """What keeps the results of an entry that returns them, where a workspace can serve them; else None."""
        from kernelci.workbench.serving import Results

        if message.workspace is None or not calls or calls[0].in_place:
            return None
        return Results([call.raw for call in calls], message.call.outputs, message.workspace, self._arena)

    def _go(self, series: ReadySeries) -> Finished:
        with self._backend.tuned(series.call.config):
            return series.go()

    def _follow(self, message: Follow) -> Followed:
        self._prepare(message.call.case)
        bound = self._bound(self._arena, message.call)
        with self._backend.tuned(message.call.config):
            bound()
            settle(self.device)
            if self._recorder is None:
                return Followed(missing="nothing was to be recorded")
            return self._recorder.follow(bound, message.calls)

    def _bound(self, memory: Any, message: Call) -> BoundCall:
        """A call of the entry on tensors of this memory."""
        arguments = {name: _argument(memory, value) for name, value in message.arguments.items()}
        outputs = {name: memory.blank(place) for name, place in message.outputs.items()}
        return BoundCall(self._entry, arguments, outputs, all(name in self.parameters for name in outputs))

    def _prepare(self, case: Mapping[str, Any]) -> None:
        prepare = getattr(self._module, "prepare", None)
        if callable(prepare) and self._prepared != case:
            from kernelci.compiling.loading import namespace

            prepare(namespace(case))
            self._prepared = dict(case)


def _argument(memory: Any, value: Value) -> Any:
    return memory.view(value) if isinstance(value, TensorPlace) else value


class NotStarted(Exception):
    """The process can't map the arena: no kernel code has run yet, so it is not the kernel's fault."""


def _mapped(message: Load, arena_fd: int) -> Any:
    from kernelci.workbench.arena import Mapped

    try:
        return Mapped(message.device, message.arena_bytes, arena_fd, message.arena)
    except Exception as error:
        raise NotStarted(f"can't map the arena: {type(error).__name__}: {error}") from error
