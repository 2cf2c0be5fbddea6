"""Candidates for a look inside: those that a tool starts (compute-sanitizer or Nsight Compute), in a sandbox of their
own, and those that make trace builds."""

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kernelci.config import Config
from kernelci.court import Court, Start, environment_for, hidden_folders, load_limit_s, start
from kernelci.reference import Case, Reference
from kernelci.tracing.prelude import TraceAt
from kernelci.tracing.regions import Trace
from kernelci.workbench import profiler, sandbox, sanitizer, tracer, trial
from kernelci.workbench.arena import Arena
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.instruments import home_of_nsight_compute
from kernelci.workbench.protocol import Followed
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.single import Single, Wrap

FOLLOWED_CALLS = 5  # of which the median one is shown


class Tool(Struct, frozen=True):
    """What stands around the candidate: its part of the command line, the folders that it needs, its variables, its
    deadline. `separate`: each tensor in an allocation of its own; `folder`: it leaves several files."""

    wrap: Wrap
    shown: Sequence[Path]
    limit_s: float
    environment: Mapping[str, str] = {}
    separate: bool = False
    folder: bool = False


def opened(court: Court, what: Start, tool: Tool) -> tuple[Session, Single]:
    """A session whose candidate the tool starts, and what reads the tool's files."""
    device, config = court.device, court.config
    kind = environment_for("cuda", what.backend, device)
    single = Single(
        (what.backend,),
        lambda cache: kind(cache) | dict(tool.environment),
        hidden_folders(court),
        devices=sandbox.gpu_nodes(device.node),
        wrap=tool.wrap,
        shown=tool.shown,
        folder=tool.folder,
    )
    limits = Limits(load_limit_s(config, what.backend), tool.limit_s, config.memory_bytes)
    where = (what.source, what.entry, what.backend, device.torch_name)
    return Session(single, *where, limits, what.caches, separate=tool.separate), single


def sanitizing(tool: str, config: Config) -> Tool:
    """compute-sanitizer's tool of this name, with each tensor in an allocation of its own."""
    binary = sanitizer.find()
    assert binary is not None
    wrap = partial(sanitizer.command, binary, tool)
    return Tool(wrap, (binary.parent,), config.sanitize_timeout_s, sanitizer.ENVIRONMENT, separate=True)


def inspect(court: Court, what: Start, tool: str, drawn: Sequence[Drawn]) -> sanitizer.Inspection:
    """A tool's run over these draws, in a process of its own."""
    found = partial(opened, court, what, sanitizing(tool, court.config))
    return sanitizer.inspect(tool, found, drawn, court.config.sanitize_timeout_s)


def profiling(binary: Path, limit_s: float) -> Tool:
    """Nsight Compute, which leaves a report and its log."""
    return Tool(partial(profiler.command, binary), (home_of_nsight_compute(binary),), limit_s, folder=True)


def profile(court: Court, what: Start, reference: Reference, case: Case) -> profiler.Profile:
    """What Nsight Compute sees of one call of a case, in a process of its own. Raises Stop."""
    binary, limit_s = profiler.require(), court.config.profile_timeout_s
    drawn = profiler.drawn(reference, case, court.seed, court.device.torch_name)
    return profiler.profile(partial(opened, court, what, profiling(binary, limit_s)), drawn, binary, limit_s)


def trace(court: Court, side: str, what: Start, reference: Reference, case: Case, regions: tuple[str, ...]) -> Trace:
    """What one call of a case records of its own inside, in a process of its own. Raises Stop."""
    device = court.device.torch_name
    drawn = profiler.drawn(reference, case, court.seed, device)

    def traced(arena: Arena, at: TraceAt) -> Session:
        return start(court, side, replace(what, caches=(), trace=at), arena)  # caches hold builds without marks

    def clock_hz() -> float | None:
        return court.state_of_gpu().state(whole=False).sm_clock_hz

    return tracer.trace(traced, drawn, regions, device, court.config.compile_timeout_s, sm_clock_hz=clock_hz)


def follow(court: Court, side: str, what: Start, reference: Reference, case: Case) -> Followed:
    """What host and GPU did in a few calls of a case, in a process of its own that records it. Raises Stop."""
    drawn = profiler.drawn(reference, case, court.seed, court.device.torch_name)
    with contextlib.closing(start(court, side, replace(what, audit=True), None)) as session:
        return trial.follow(session, drawn, FOLLOWED_CALLS)
