"""The court: what all referees of a run share on one device, and the processes that run kernels there."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kernelci import backends
from kernelci.basing import Base
from kernelci.catalog import Catalog
from kernelci.compiling.builder import Builder
from kernelci.config import Config
from kernelci.errors import Stop
from kernelci.reference import Case, Reference, ReferenceFailed
from kernelci.reference import load as load_reference
from kernelci.tracing.prelude import TraceAt
from kernelci.workbench import baselines, expression, nvml, sandbox
from kernelci.workbench.ahead import Ahead, compiled, key_of
from kernelci.workbench.arena import Arena
from kernelci.workbench.audit import RecordingCost
from kernelci.workbench.baselines import Kept
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.device import Device, versions
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Forker, Limits, Session
from kernelci.workbench.truths import Truths
from kernelci.workbench.waiting import Waiting

BASELINE = "baseline"  # the side of what a kernel is measured beside


class Court(Struct):
    """What all referees of a run share."""

    catalog: Catalog
    config: Config
    device: Device
    builder: Builder
    zygotes: dict[str, Zygote]
    truths: Truths
    references: dict[str, Reference | ReferenceFailed]
    out: Path
    seed: str
    tier: str = "pr"
    case_filter: str = ""
    draw_filter: str = ""
    all_configs: bool = False
    base: Base | None = None
    devices: tuple[Device, ...] = ()
    calibration: Calibration | None = None
    baselines: Kept = {}
    ahead: Ahead | None = None
    """What torch.compile takes for baselines, done beside the earlier rungs."""
    waiting: dict[str, Waiting] = {}
    """By reference and device: a process that has made the imports of a baseline."""
    state: nvml.Device | None = None
    recording_cost: RecordingCost | None = None
    """What a ledger costs on this GPU's host; None: not asked yet."""

    def state_of_gpu(self) -> nvml.Device:
        """What tells the state of this court's GPU; without one it tells nothing."""
        if self.state is None:
            self.state = nvml.Device(self.device.uuid)
        return self.state

    def reference(self, name: str) -> Reference:
        """A loaded reference; each is loaded once. Raises Stop("unknown-reference") or Stop("reference")."""
        if name not in self.references:
            path = self.catalog.references.get(name)
            if path is None:
                known = ", ".join(self.catalog.references) or "none"
                raise Stop("unknown-reference", f"no reference {name!r}; known are {known}")
            try:
                self.references[name] = load_reference(path)
            except ReferenceFailed as error:
                self.references[name] = error
        found = self.references[name]
        if isinstance(found, ReferenceFailed):
            raise Stop("reference", str(found))
        return found


class Start(Struct, frozen=True):
    """What a candidate is started with: a kernel's files, its entry and backend, what compiling left in caches,
    whether it records what its GPU does, and where it leaves a trace."""

    source: Source
    entry: str
    backend: str
    caches: tuple[bytes, ...] = ()
    audit: bool = False
    trace: TraceAt | None = None


_STARTING = threading.Lock()


def zygote_for(court: Court, backend: str, side: str = "head") -> Zygote:
    """The zygote that runs one side's kernels of a backend, started when first asked for."""
    device = court.device
    kind = "cuda" if device.is_gpu else "interpret"
    key = f"{side} {kind} {backend} {device.torch_name}"
    nodes = sandbox.gpu_nodes(device.node) if kind == "cuda" else []
    with _STARTING:
        if key not in court.zygotes:
            environment = environment_for(kind, backend, device, side)
            court.zygotes[key] = Zygote(kind, (backend,), environment, hidden_folders(court), nodes)
        return court.zygotes[key]


def start(court: Court, side: str, what: Start, arena: Arena | None = None, forker: Forker | None = None) -> Session:
    """A session with a fresh candidate, on an arena that others use too or on its own; `forker`: what forks it, by
    default its zygote. Raises Stop."""
    config, device = court.config, court.device
    zygote = zygote_for(court, what.backend, side)
    missing = zygote.wait_ready()
    if what.backend in missing:
        raise Stop("missing-dependency", f"{what.backend} can't be imported: {missing[what.backend]}")
    call_s = config.call_timeout_s if device.is_gpu else config.interpreter_timeout_s
    limits = Limits(load_limit_s(config, what.backend), call_s, config.memory_bytes)
    name = device.torch_name
    where = (what.source, what.entry, what.backend, name)
    return Session(forker or zygote, *where, limits, what.caches, arena=arena, audit=what.audit, trace=what.trace)


def load_limit_s(config: Config, backend: str) -> float:
    """The deadline, s, for importing a kernel: where that builds it too, no shorter than that for compiling."""
    builds = not backends.intercepts(backends.get(backend))
    return max(config.load_timeout_s, config.compile_timeout_s) if builds else config.load_timeout_s


def start_baseline(court: Court, arena: Arena, reference: Reference, name: str) -> Session:
    """A session of a baseline, which sees the reference: in a sandbox that no kernel ever enters. Raises Stop."""
    own = _baseline(reference, name)
    if name != expression.COMPILE or court.ahead is None:
        return start(court, BASELINE, own, arena)
    own = replace(own, caches=court.ahead.cache(f"{reference.name} {court.device.name}"))
    return start(court, BASELINE, own, arena, court.waiting.get(f"{reference.name} {court.device.torch_name}"))


def keep_compiled(court: Court, reference: Reference, left: bytes) -> str:
    """Keep what torch.compile has in its cache once a baseline was timed; says what was not compiled before that."""
    return court.ahead.keep(f"{reference.name} {court.device.name}", left) if court.ahead is not None else ""


def _baseline(reference: Reference, name: str) -> Start:
    return Start(baselines.source_of(reference, name), expression.ENTRY, "triton")


def compile_ahead(court: Court, reference: Reference, cases: Sequence[Case]) -> None:
    """Have torch compile a reference for these cases in the background, and a process wait that has made the imports.
    Where that fails, it is done when the baseline is timed."""
    device = court.device
    name = f"{reference.name} {device.torch_name}"
    if court.ahead is None or not cases or name in court.waiting:
        return
    own = _baseline(reference, expression.COMPILE)
    waiting = court.waiting[name] = Waiting(zygote_for(court, own.backend, BASELINE))

    def make(missing: tuple[str, ...], loaded: bytes) -> bytes:
        device.enter()
        wanted = [case for case in cases if case.id in missing]
        begun = replace(own, caches=(loaded,) if loaded else ())
        return compiled(
            device.torch_name, reference, wanted, lambda arena: start(court, BASELINE, begun, arena), loaded
        )

    key = key_of(reference, device.name, versions(("torch", "triton")))
    court.ahead.compile(f"{reference.name} {device.name}", key, [case.id for case in cases], make)
    court.ahead.also(partial(waiting.prepare, court.config.memory_bytes))


def hidden_folders(court: Court) -> tuple[Path, ...]:
    """What no candidate may see: the project, and the base's."""
    return (court.catalog.root, *((court.base.root,) if court.base is not None else ()))


def environment_for(kind: str, backend: str, device: Device, side: str = "head") -> Callable[[Path], dict[str, str]]:
    """What gives a zygote of this kind its variables, from the folder that the DSL may keep things in."""

    def environment(cache: Path) -> dict[str, str]:
        variables = backends.get(backend).environment(cache)
        if side == BASELINE:
            variables |= expression.environment(cache)
        if kind == "interpret":
            variables["TRITON_INTERPRET"] = "1"
        elif kind == "cuda":
            variables.pop("CUDA_VISIBLE_DEVICES", None)
            visible = sandbox.visible_gpu(device.node, device.uuid)
            variables |= {"CUDA_VISIBLE_DEVICES": visible} if visible else {}
        return variables

    return environment
