"""The contract of a rung: a function under `@rung(name, after=…, needs=…)` that takes a referee and returns Findings.

A rung registers itself by existing: as a file in this folder, or in the `rungs` folder of the repository that uses
kernelci. Raising Stop ends it for the kernel with that reason; any other exception is BROKEN.
"""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from kernelci.card import Card
from kernelci.catalog import Kernel
from kernelci.config import Config
from kernelci.errors import ConfigError, Stop
from kernelci.model import Artifact, Finding, Metric, Row, RungResult
from kernelci.reasons import outcome_of
from kernelci.reference import Case, Reference, TensorSpec


class Findings(Struct):
    """What a rung found; the ladder derives the outcome from the rows."""

    rows: list[Row] = []
    metrics: list[Metric] = []
    artifacts: list[Artifact] = []
    notes: list[str] = []


class Referee(Protocol):
    """The trusted side of one kernel, as a rung sees it."""

    kernel: Kernel
    config: Config
    targets: tuple[str, ...]
    out: Path
    device: Any
    tier: str
    side: str
    """"head", or "base"."""
    is_new: bool
    """Whether the run compares with a base, and that has no kernel of this name."""

    climbed: Mapping[str, RungResult]
    """What earlier rungs found for this kernel, by name."""

    @property
    def card(self) -> Card:
        """The kernel's card. Raises Stop("card") where it can't be read."""

    @property
    def reference(self) -> Reference:
        """The loaded reference. Raises Stop for an unknown or a broken one."""

    def compiled(self, target: str) -> Any:
        """The Compilation for a target (kernelci.compiling.builder); waits for it."""

    def cases(self) -> tuple[Case, ...]:
        """The check cases, and for a GPU the bench cases, as the device runs them."""

    def hidden(self) -> tuple[Case, ...]:
        """Cases of this run alone, drawn from the reference's domain."""

    def require_sound(self) -> None:
        """Raise Stop where the controls show that the reference can't tell right from wrong."""

    def draws(self, case: Case) -> tuple[str, ...]:
        """The names of the draws that this case gets."""

    def substitution(self, case: Case) -> str:
        """What to say of a case that runs with other data than it names, or nothing."""

    def why_not(self, case: Case) -> Stop | None:
        """Why a case is not run here, if it is not."""

    @property
    def configs(self) -> int:
        """How many configurations the kernel's autotuner has, as far as calls have shown; 0: no autotuner."""

    def pinned(self, case: Case, draw: str, config: int) -> Any:
        """The Trial of a case and draw with this one of the autotuner's configurations. Raises Stop."""

    def disturbed(self, case: Case, draw: str, name: str) -> Any:
        """The Trial of a case and draw under a disturbance (kernelci.disturbing) of this name. Raises Stop."""

    def trial(self, case: Case, draw: str) -> Any:
        """The Trial of a case and draw (kernelci.workbench.trial). Raises Stop."""

    def start_trials(self, *calls: tuple[Case, str]) -> str:
        """Make the trials of cases and draws together; the name of the draw whose fault ended it, or nothing."""

    def release(self, case: Case) -> None:
        """Drop the trials of a case."""

    def repeats(self, case: Case, draw: str, count: int) -> list[dict[str, Any]]:
        """The distinct outputs of many calls on the same inputs. Raises Stop."""

    def drawn(self, case: Case, draw: str) -> Any:
        """The Drawn of a case and draw (kernelci.workbench.drawn). Raises Stop("reference")."""

    def truth(self, case: Case, draw: str) -> Any:
        """The Truth of a case and draw (kernelci.workbench.oracle). Raises Stop("reference")."""

    def outputs(self, case: Case, draw: str) -> dict[str, TensorSpec]:
        """The declared outputs."""

    def inspect(self, tool: str, cases: tuple[Case, ...]) -> Any:
        """The Inspection of a tool's run over these cases (kernelci.workbench.sanitizer)."""

    def profile(self, case: Case) -> Any:
        """The Profile of a case (kernelci.workbench.profiler). Raises Stop."""

    def follow(self, case: Case) -> Any:
        """What host and GPU did in a few calls of a case, as Followed (kernelci.workbench.protocol). Raises Stop."""

    def trace(self, case: Case) -> Any:
        """The Trace of a case (kernelci.tracing.regions). Raises Stop."""

    @property
    def seed(self) -> str:
        """The run's secret seed."""

    @property
    def base(self) -> "Referee | None":
        """The trusted side of the same kernel as the base has it, if there is a base that has it."""

    def open(self, arena: Any = None, audit: bool = False) -> Any:
        """A Session (kernelci.workbench.session) with a fresh candidate of this kernel, on this arena."""

    def auditor(self) -> Any:
        """The Auditor (kernelci.workbench.audit) of this kernel. Raises Stop."""

    def baselines(self, cases: tuple[Case, ...], calibration: Any) -> tuple[dict[str, Any], str]:
        """The Baselines of these cases by case (kernelci.workbench.baselines), and what measuring them took."""

    def calibration(self) -> Any:
        """The Calibration of this GPU (kernelci.workbench.calibration). Raises Stop."""

    def probe(self, arena: Any) -> Any:
        """A Probe (kernelci.workbench.calibration) on this arena. Raises Stop."""

    def watch(self) -> Any:
        """A context that samples the state of the GPU (kernelci.workbench.nvml)."""

    def finding(self, stop: Stop, case: Case | None = None, draw: str = "", rung: str = "") -> Finding:
        """A stop as a record, with the command that reproduces it."""


Run = Callable[[Any], Findings]


class Rung(Struct, frozen=True):
    """One step of the ladder. `after`: rungs that must have passed; `needs`: "device", or "gpu"; "quiet": no other
    kernel may run meanwhile, so it is climbed when all kernels have climbed what needs none."""

    name: str
    run: Run
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


ORDER = (
    "precheck",
    "compile",
    "run",
    "correctness",
    "sanitize",
    "perturb",
    "benchmark",
    "dump",
    "trace",
    "profile",
    "roofline",
)
_REGISTRY: dict[str, Rung] = {}


def rung(name: str, *, after: Iterable[str] = (), needs: Iterable[str] = ()) -> Callable[[Run], Run]:
    """Register the decorated function as a rung of the ladder."""

    def register(function: Run) -> Run:
        _REGISTRY[name] = Rung(name, function, tuple(after), tuple(needs))
        return function

    return register


def ladder(own: Path | None = None) -> tuple[Rung, ...]:
    """All rungs in order: ours, then those of the repository's `own` folder. Raises ConfigError for a broken one."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for path in sorted(own.glob("*.py")) if own and own.is_dir() else ():
        _load(path)
    known = sorted((name for name in _REGISTRY if name in ORDER), key=ORDER.index)
    return tuple(_REGISTRY[name] for name in [*known, *(name for name in _REGISTRY if name not in ORDER)])


def _load(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"kernelci_rung_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(
            f"rung {path}: importing it raised {type(error).__name__}: {error}", hint="correct it, or take it out"
        ) from error


def elements(referee: Referee, case: Case) -> int:
    """How many elements a case's outputs have."""
    from kernelci.workbench.drawn import VARIED  # which imports torch

    return sum(spec.elements for spec in referee.outputs(case, VARIED).values())


def failed(
    referee: Referee, stop: Stop, case: Case | None = None, draw: str = "", target: str = "", rung: str = ""
) -> Row:
    """A row for a case that ended with a stop."""
    finding = referee.finding(stop, case, draw, rung)
    return Row(outcome_of(stop.reason), case.id if case else "", target, draw, finding)


def kept(referee: Referee, path: Path, content: bytes, kind: str) -> Artifact:
    """Write a file of this path below the report's folder; its record."""
    (referee.out / path).parent.mkdir(parents=True, exist_ok=True)
    (referee.out / path).write_bytes(content)
    return Artifact(str(path), kind, len(content))


def safe(text: str) -> str:
    """A text of the kernel's (a symbol, a case) as a part of a path: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".") or "_"


def with_metrics(row: Row, metrics: Iterable[Metric], notes: Iterable[str] = ()) -> Row:
    """The row with metrics and notes added."""
    return msgspec.structs.replace(row, metrics=(*row.metrics, *metrics), notes=(*row.notes, *notes))
