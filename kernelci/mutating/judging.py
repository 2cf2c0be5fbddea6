"""Mutants up the ladder: many in one climb, sharing its warm processes and its oracles."""

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelci import catalog as catalogs
from kernelci import config as configs
from kernelci.catalog import Kernel
from kernelci.compiling.builder import Compilation
from kernelci.config import Config
from kernelci.court import Court
from kernelci.errors import ConfigError, KernelciError
from kernelci.ladder import LANES, Plan, chosen, climb_one, opened
from kernelci.lanes import spread
from kernelci.model import KernelReport
from kernelci.mutating import allclose, outcomes, project
from kernelci.mutating.mutants import Mutant, Request, diff
from kernelci.mutating.outcomes import Fate, Judged, Result
from kernelci.referee import KernelReferee
from kernelci.rungs import Rung, ladder
from kernelci.workbench.device import Device

PREFERRED_TARGET = "sm_90a"
# Mutants may loop without end, so deadlines are short; on a GPU the first call of a kernel includes its compilation.
INTERPRETER_TIMEOUT_S = 15.0
CALL_TIMEOUT_S = 45.0
# The largest check cases are the only ones that reach kernels for long rows; one draw of each is cheap enough here.
INTERPRETER_ELEMENTS = 2**21
INTERPRETER_ROWS = 2304  # 3 s of the deadline, where each is a program's; the tallest case of a matmul has 2207

# Sanitize stands between them; it takes long, and what it alone sees is no wrong answer.
JUDGING = ("correctness", "perturb")

Told = Callable[[Judged], None]
Tell = Callable[["_Climb", Judged], None]
_Item = TypeVar("_Item")


def judge(
    root: Path, requests: Sequence[Request], budget_s: float = 0.0, told: Told | None = None
) -> list[Result | KernelciError]:
    """Climb with the original of each request, then with every mutant; none begins after `budget_s` (0: no end).

    For each request its result, or why there is none: the original itself does not pass. All have one seed. After an
    interrupt the mutants that were judged by then are in the results, and the others were not judged.
    """
    began = time.monotonic()
    deadline = began + budget_s if budget_s else float("inf")
    root, over = root.resolve(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="kernelci-mutants-", ignore_cleanup_errors=True) as folder:
        options = _short(configs.load(root), Path(folder))
        known = catalogs.scan(root, options)
        with opened(known, options, Plan((), Path(folder) / "out", seed=requests[0].seed)) as court:
            climbs = [_Climb(court, request, Path(folder) / str(place)) for place, request in enumerate(requests)]
            lanes, interrupted = court.config.lanes or LANES[court.device.is_gpu], False
            try:
                _climb_all(climbs, lanes, deadline, _until(over, told))
            except KeyboardInterrupt:
                interrupted = True
            over.set()
            device = court.device.name if court.device.is_gpu else "interpreter (CPU)"
    took = round(time.monotonic() - began, 1)
    # An interrupt may have ended the originals' processes too, which says nothing of them.
    return [(None if interrupted else climb.error) or _result(climb, device, took, interrupted) for climb in climbs]


def _result(climb: "_Climb", device: str, took_s: float, interrupted: bool) -> Result:
    request, found = climb.request, climb.found()
    return Result(
        kernel=request.kernel.name,
        device=device,
        seed=request.seed,
        known=request.known,
        duration_s=took_s,
        figures=outcomes.figures(found),
        mutants=found,
        interrupted=interrupted,
    )


def _until(over: threading.Event, told: Told | None) -> Tell:
    """What tells of mutants until it is over: what still climbs after an interrupt ends with its process, and that is
    no fate."""

    def tell(climb: "_Climb", judged: Judged) -> None:
        if over.is_set():
            return
        climb.judged[judged.id] = judged
        if told is not None:
            told(judged)

    return tell


def _climb_all(climbs: Sequence["_Climb"], lanes: int, deadline: float, tell: Tell) -> None:
    """Everything is handed to the compilers at once, the originals first; then one climb after another per lane, the
    kernels in turns, so that a budget that ends has been spent on all of them."""
    for climb, mutant in in_turns([(climb, mutant) for mutant in climb.request.mutants] for climb in climbs):
        climb.start(mutant)
    spread(climbs, [_Climb.look_at_original] * lanes)
    sound = [climb for climb in climbs if climb.error is None]
    spread(sound, [_Climb.look_for_unreached] * lanes)

    def one(turn: tuple[_Climb, tuple[Mutant, KernelReferee]]) -> None:
        climb, started = turn
        tell(climb, climb.one(*started, deadline))

    spread(in_turns([(climb, each) for each in climb.started] for climb in sound), [one] * lanes)


def in_turns(rows: Iterable[Iterable[_Item]]) -> Iterator[_Item]:
    """The first of each row, then the second of each that has one, and so on."""
    turns = itertools.chain.from_iterable(itertools.zip_longest(*rows))
    return (item for item in turns if item is not None)


def _short(options: Config, folder: Path) -> Config:
    """Short deadlines, nothing for times, and a cache that goes with the mutants."""
    return msgspec.structs.replace(
        options,
        cache=str(folder / "cache"),
        interpreter_timeout_s=min(options.interpreter_timeout_s, INTERPRETER_TIMEOUT_S),
        call_timeout_s=min(options.call_timeout_s, CALL_TIMEOUT_S),
        interpreter_elements=max(options.interpreter_elements, INTERPRETER_ELEMENTS),
        interpreter_rows=min(options.interpreter_rows, INTERPRETER_ROWS),
        baselines=False,
    )


class _Climb:
    """One kernel's mutants, in a court that other kernels' share; the original and the probes compile at once."""

    def __init__(self, court: Court, request: Request, folder: Path) -> None:
        self._court = court
        self.request = request
        self._kernel = request.kernel
        self._folder = folder
        self._target = target_of(request.kernel, court.config, court.device)
        self._rungs = tuple(pair for pair in chosen(ladder(), JUDGING) if pair[1])
        # Before correctness, which drops the calls that both look at.
        at = next(index for index, (rung, _) in enumerate(self._rungs) if rung.name in JUDGING)
        self._with_allclose = (*self._rungs[:at], (allclose.RUNG, True), *self._rungs[at:])
        self._original = self._started(project.variant(self._kernel, self._kernel.name, {}, self._place("original")))
        self._probes = self._started_probes()
        self._unreached: frozenset[str] = frozenset()
        self.started: list[tuple[Mutant, KernelReferee]] = []
        self.judged: dict[str, Judged] = {}
        self.error: KernelciError | None = None
        """Why no mutant of it says anything: it does not pass itself."""

    def start(self, mutant: Mutant) -> None:
        """Begin to compile it."""
        self.started.append((mutant, self._started(project.mutated(self._kernel, mutant, self._folder))))

    def found(self) -> tuple[Judged, ...]:
        """What became of each mutant."""
        return tuple(self.judged.get(each.id) or self._unjudged(each) for each in self.request.mutants)

    def _unjudged(self, mutant: Mutant) -> Judged:
        return outcomes.judged(mutant, None, self._diff(mutant))

    def _diff(self, mutant: Mutant) -> str:
        return diff(mutant, (self._kernel.path.parent / mutant.file).read_bytes())

    def _place(self, name: str) -> Path:
        return self._folder / "kernels" / name

    def _started(self, kernel: Kernel) -> KernelReferee:
        referee = KernelReferee(kernel, self._court, (self._target,))
        referee.start_compiling()
        return referee

    def one(self, mutant: Mutant, referee: KernelReferee, deadline: float) -> Judged:
        """Climb with a mutant, unless it is too late; only in time is a survivor looked at again."""
        if time.monotonic() >= deadline:
            return self._unjudged(mutant)
        found = outcomes.judged(mutant, _climb(referee, self._with_allclose), self._diff(mutant))
        if found.fate is Fate.SURVIVED and time.monotonic() < deadline:
            found = self._looked_closer(found, mutant, referee.kernel)
        return found

    def _looked_closer(self, found: Judged, mutant: Mutant, kernel: Kernel) -> Judged:
        """A survivor may be none; and if it is asked for, the interpreter tries all draws, as a GPU does."""
        fate = self._why_alive(mutant, kernel)
        if fate is not Fate.SURVIVED:
            return msgspec.structs.replace(found, fate=fate, allclose="", allclose_one="")
        if self._court.device.is_gpu or not self.request.all_draws:
            return found
        again = outcomes.judged(mutant, self._with_all_draws(kernel), found.diff)
        return msgspec.structs.replace(again, allclose=found.allclose, allclose_one=found.allclose_one)

    def _with_all_draws(self, kernel: Kernel) -> KernelReport:
        referee = self._started(kernel)
        referee.plan_draws(few=False)
        return _climb(referee, self._rungs)

    def _why_alive(self, mutant: Mutant, kernel: Kernel) -> Fate:
        if mutant.reaches in self._unreached:
            return Fate.UNREACHED
        if not mutant.device:
            return Fate.SURVIVED
        for every in (False, True):  # the representative cases first: most differ there, and cost less
            own, others = self._compiled(kernel, every), self._compiled(self._original.kernel, every)
            if own.stop is not None:
                return Fate.NOT_COMPILED
            if _code(own) != _code(others):
                return Fate.SURVIVED
        return Fate.IDENTICAL

    def look_at_original(self) -> None:
        """Climb with the original; where it does not pass, that is the error."""
        report = _climb(self._original, self._rungs)
        stopped = report.stopped_at
        if stopped is not None and stopped.finding is not None:
            self.error = ConfigError(
                f"{report.name} itself is stopped at {stopped.rung}: {stopped.finding.message[:500]}",
                hint="mutants say something only of a kernel that passes; `kernelci run` shows why it does not",
            )

    def _started_probes(self) -> dict[str, KernelReferee]:
        """By function, the kernel without that function's stores."""
        functions = {mutant.reaches for mutant in self.request.mutants}
        return {
            name: self._started(
                project.variant(self._kernel, f"{self._kernel.name}#{name}", changed, self._place(name))
            )
            for name, changed in project.storeless(self._kernel)
            if name in functions
        }

    def look_for_unreached(self) -> None:
        """Which functions' stores can go without any case noticing: no case calls them on this machine."""
        run = tuple(pair for pair in self._rungs if pair[0].name not in JUDGING)
        self._unreached = frozenset(
            name for name, referee in self._probes.items() if _climb(referee, run).stopped_at is None
        )

    def _compiled(self, kernel: Kernel, every: bool) -> Compilation:
        """The builds of the representative cases, or of `every` one."""
        reference = KernelReferee(kernel, self._court, (self._target,)).reference
        return self._court.builder.submit(kernel, reference, self._target, every).result()


def _code(compiled: Compilation) -> set[tuple[object, ...]]:
    """What must be equal for two kernels to be the same on a GPU."""
    return {
        (build.kernel.case, build.kernel.symbol, build.kernel.config, build.kernel.dynamic_shared_bytes,
         build.files.get("sass") or build.files.get("ptx"))
        for build in compiled.builds
    }  # fmt: skip


def _climb(referee: KernelReferee, rungs: tuple[tuple[Rung, bool], ...]) -> KernelReport:
    try:
        return climb_one(referee, rungs, None)
    finally:
        referee.forget()


def target_of(kernel: Kernel, config: Config, device: Device) -> str:
    """The one target to compile for: the device's own, else Hopper's, else the card's first."""
    card = kernel.card
    targets = card.targets if card is not None and card.targets else config.targets
    for wanted in (device.target if device.is_gpu else "", PREFERRED_TARGET):
        if wanted in targets:
            return wanted
    return targets[0]
