"""The messages between referee, zygote and candidate (kernelci.workbench.channel carries them).

A message is a msgspec Struct in MessagePack behind its length in four bytes. What comes from a candidate is decoded
strictly, bounded in size, and never more than a claim.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kernelci.tracing.prelude import TraceAt
from kernelci.workbench.activity import Activities, Count, Nanoseconds, Said
from kernelci.workbench.channel import Channel as Channel
from kernelci.workbench.channel import ChannelClosed as ChannelClosed
from kernelci.workbench.channel import DeadlinePassed as DeadlinePassed
from kernelci.workbench.channel import Refused as Refused
from kernelci.workbench.happening import MAX_CALLS, Happenings


class Message(Struct, tag=True, frozen=True, forbid_unknown_fields=True):
    """Base of all messages."""


# referee to zygote, and back


class Fork(Message, frozen=True):
    """Fork a process; its channel, log, and arena come as file descriptors with this message."""

    token: int
    memory_bytes: int = 0


class Kill(Message, frozen=True):
    """Kill a forked process with everything it started; `stack`: let it write where it is first."""

    token: int
    stack: bool = False


class Ready(Message, frozen=True):
    """The zygote has made its imports; `missing` names those that failed."""

    missing: dict[str, str] = {}


class Exited(Message, frozen=True):
    """A forked process ended, with an exit code or a signal's number."""

    token: int
    code: int
    signal: int


# referee to candidate


class TensorPlace(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor within the arena: where it begins in bytes, its shape, strides in elements, and dtype."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


Value = TensorPlace | float | int | bool | str | None


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """A kernel's own files by name, and which of them is its Python file: a candidate can't read the project."""

    folder: str
    name: str
    files: dict[str, bytes]


class Load(Message, frozen=True):
    """Import a kernel file. `device` is "cpu" or "cuda:N"; `arena` the handle of GPU memory, empty on the CPU.

    `caches` are what the compile processes of this kernel left in their DSL's cache, as tar archives.
    `separate`: each call gets every tensor in an allocation of its own and of its exact size, copied from the arena and
    back, outputs not filled: so a sanitizer sees each access beyond a tensor, and each read of what nobody wrote.
    `audit`: record what the GPU does, from before the kernel is imported.
    `trace`: make trace builds (docs/trace.md), for a process that serves nothing else.
    """

    source: Source
    entry: str
    backend: str
    device: str
    arena_bytes: int
    arena: bytes = b""
    caches: tuple[bytes, ...] = ()
    separate: bool = False
    audit: bool = False
    trace: TraceAt | None = None


class Call(Message, frozen=True):
    """Call the entry once. `case` holds the case's values; `outputs` are passed by name if the entry takes them.

    `config`: the number of the tuning configuration that autotuners must take; None lets them choose.
    `profiled`: a profiler around this process is to look at this call.
    """

    case: dict[str, Any]
    arguments: dict[str, Value]
    outputs: dict[str, TensorPlace]
    config: int | None = None
    profiled: bool = False


class Calls(Message, frozen=True):
    """Make these calls one after another, and wait for the device once, at the end."""

    calls: tuple[Call, ...]


class Workspace(Struct, frozen=True, forbid_unknown_fields=True):
    """A region of the arena, in bytes, that serves a candidate's allocations."""

    begin: int
    size: int


class Series(Message, frozen=True):
    """Get ready to call the entry once on each of these slots, in this order; slot i lies i · `stride` bytes further.

    `call` is the call on slot 0. `mode` "graph": captured once, replayed on `Go`; "eager": called one after another;
    "each": likewise, waiting for the device after each call. A series that can't be captured is answered so.
    """

    number: int
    call: Call
    slots: tuple[int, ...]
    stride: int
    mode: Literal["graph", "eager", "each"]
    workspace: Workspace | None = None
    """What an entry that returns its outputs allocates from; without one they are copied to their places."""


class Go(Message, frozen=True):
    """Make the calls of a series that is ready, and answer when the device is done with all of its work."""

    number: int


class Audit(Message, frozen=True):
    """Tell what the GPU did since the last such message; only after a load that asked to record it."""


class Follow(Message, frozen=True):
    """Make a call `calls` times after one that nobody looks at, waiting for the device after each, and tell all that
    host and GPU did meanwhile; only after a load that asked to record it."""

    call: Call
    calls: Annotated[int, Meta(ge=1, le=MAX_CALLS)]


AWAKE_S = 0.1  # both sides of a window are awake for so long: before it after a Turn, and while it lasts


class Turn(Message, frozen=True):
    """Get ready for series of this case: what the kernel prepares for a case is no part of a call's time.

    It names the case and not the series, so that nobody knows before `Go` which window comes.
    """

    case: dict[str, Any]


class Forget(Message, frozen=True):
    """Drop all series: their graphs take memory."""


class Warm(Message, frozen=True):
    """Make the imports that torch.compile needs; before a load, and only of code that is trusted."""


class Pack(Message, frozen=True):
    """Give back what compilers left in this process's cache; only asked of code that is trusted."""


class Build(Message, frozen=True):
    """Compile a kernel for a target, without a GPU, for each of the cases; `keep_cache`: give the DSL's cache back."""

    source: Source
    entry: str
    backend: str
    target: str
    cases: tuple[Call, ...]
    all_configs: bool = False
    keep_cache: bool = False
    sizes: tuple[Call, ...] = ()
    """Cases whose launches are told, and not compiled."""


# candidate to referee


class Loaded(Message, frozen=True):
    """The file is imported; `in_place`: the entry takes the outputs by name."""

    parameters: tuple[str, ...]


class Returned(Struct, frozen=True, forbid_unknown_fields=True):
    """What the entry returned under an output's name: a claim; the values lie in the arena."""

    shape: tuple[int, ...]
    dtype: str


class Done(Message, frozen=True):
    """The call came back. `returned` is empty where outputs were written in place.

    `configs`: how many configurations the longest autotuner's list had.
    """

    returned: dict[str, Returned] = {}
    configs: Annotated[int, Meta(ge=0, le=10_000)] = 0


class Spots(Struct, frozen=True, forbid_unknown_fields=True):
    """Where each call of a series leaves an output that it returns, in bytes within the arena; strides in elements."""

    offsets: Annotated[tuple[Annotated[int, Meta(ge=0, lt=2**62)], ...], Meta(max_length=2**16)]
    shape: tuple[int, ...]
    strides: tuple[Annotated[int, Meta(ge=0, lt=2**62)], ...]
    dtype: str


class Prepared(Message, frozen=True):
    """A series is ready. `refused`: why it could not be captured; it is then none. `spots`: where results will lie, by
    output; `copied`: why they are copied instead, though there is a workspace.

    `config`: the number of the tuning configuration that the autotuner took, -1 where there is no autotuner; `choice`:
    that configuration in words.
    """

    refused: Annotated[str, Meta(max_length=4000)] = ""
    config: Annotated[int, Meta(ge=-1, le=10_000)] = -1
    spots: dict[str, Spots] = {}
    copied: Annotated[str, Meta(max_length=1000)] = ""
    choice: Annotated[str, Meta(max_length=400)] = ""


class Finished(Message, frozen=True):
    """All calls of a series are done; `device_ns` between two events around them, 0 without a GPU: a claim.

    `spots`: where results lie, if that is not where they were said to; never of a graph.
    """

    device_ns: Annotated[float, Meta(ge=0.0, le=1e13)] = 0.0
    spots: dict[str, Spots] = {}


# The reasons that a candidate may give; all others are found by the referee itself.
_CLAIMS = "raised|compile-error|shared-memory|out-of-memory|gpu-fault|needs-data|candidate-start"
Claim = Annotated[str, Meta(pattern=rf"^({_CLAIMS})\Z")]


class Raised(Message, frozen=True):
    """Something went wrong in Python; `reason` is a code of kernelci.reasons."""

    reason: Claim
    message: str
    file: str = ""
    line: Annotated[int, Meta(ge=0, le=2**31)] = 0
    log: str = ""


class AllDone(Message, frozen=True):
    """The answers to `Calls`, in order. After an exception the next call is made, after any other fault none."""

    answers: tuple[Done | Raised, ...]


class BuiltKernel(Struct, frozen=True, forbid_unknown_fields=True):
    """One compiled kernel: its symbol, configuration, and files by extension (`ptx`, `cubin`, …)."""

    symbol: str
    config: str
    files: dict[str, bytes]
    case: str = ""
    block: tuple[int, int, int] | None = None
    grid: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int = 0


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """A launch that a case would make."""

    case: Annotated[str, Meta(max_length=300)]
    symbol: Annotated[str, Meta(max_length=300)]
    grid: tuple[Annotated[int, Meta(ge=0, lt=2**62)], ...]


class Built(Message, frozen=True):
    """What compiling gave; `notes` tell of configurations that do not fit."""

    kernels: tuple[BuiltKernel, ...]
    notes: tuple[str, ...] = ()
    cache: bytes = b""
    launches: Annotated[tuple[Launch, ...], Meta(max_length=10_000)] = ()


class Packed(Message, frozen=True):
    """The cache as a tar archive, which a load can be given; empty where there is none, or too much."""

    cache: bytes = b""


class Ledger(Message, frozen=True):
    """What CUPTI saw on the GPU while calls were made: a claim, since it was collected beside the kernel.

    `busy_ns`: time in which at least one activity ran, overlaps counted once; `span_ns`: from the first one's start to
    the last one's end. `dropped`: activities that were not recorded. `missing`: why there is no ledger at all.
    """

    activities: Activities = ()
    busy_ns: Nanoseconds = 0.0
    span_ns: Nanoseconds = 0.0
    dropped: Count = 0
    missing: Said = ""


class Followed(Message, frozen=True):
    """What CUPTI saw on the host and on the GPU, in order of its beginnings; `dropped`: what of it was not recorded."""

    happenings: Happenings = ()
    dropped: Count = 0
    missing: Said = ""


ToZygote = Fork | Kill
FromZygote = Ready | Exited
ToCandidate = Load | Call | Calls | Build | Series | Go | Audit | Follow | Forget | Turn | Warm | Pack
FromCandidate = Loaded | Done | AllDone | Raised | Built | Prepared | Finished | Ledger | Followed | Packed
