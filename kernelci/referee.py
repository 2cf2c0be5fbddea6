"""The trusted side of one kernel: it draws, holds what is true, and asks the candidate.

Rungs see it as `rungs.Referee`.
"""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import torch
from msgspec.structs import replace

from kernelci import backends, cold, disturbing, extent, wording
from kernelci.card import Card
from kernelci.catalog import Kernel
from kernelci.compiling.builder import Compilation, source_of
from kernelci.config import cache_folder
from kernelci.court import Court, Start, keep_compiled, start, start_baseline
from kernelci.errors import Stop
from kernelci.model import Finding, RungResult
from kernelci.reference import Case, Reference, ReferenceFailed, TensorSpec
from kernelci.tracing.regions import Trace
from kernelci.workbench import baselines, hidden, nvml, oracle, profiler, sanitizer
from kernelci.workbench.arena import Arena
from kernelci.workbench.audit import Auditor, recording_cost
from kernelci.workbench.calibration import Calibration, Probe, calibrate
from kernelci.workbench.drawn import NEAR, VARIED, Drawn, plan, planned, split
from kernelci.workbench.protocol import Followed, Source
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent
from kernelci.workbench.trial import Trial, is_refusal, plainly, repeats, run_all, run_drawn

# Cases of sizes that no file names, per run.
HIDDEN_CASES = {"gpu": 6, "interpreter": 2}
WATCH_ELEMENTS = 8192


class KernelReferee:
    """One kernel's climb: its reference, its compilations, its session with a candidate."""

    def __init__(self, kernel: Kernel, court: Court, targets: tuple[str, ...], side: str = "head") -> None:
        self.kernel = kernel
        self.side = side
        self.base: KernelReferee | None = None
        self.is_new = False
        self.climbed: dict[str, RungResult] = {}
        self.config = court.config
        self.device = court.device
        self.out = court.out
        self.tier = court.tier
        self.targets = targets
        self.court = court
        self.spent = Spent()
        """Where the seconds of the rung go that is being climbed."""
        self._session: Session | None = None
        self._disturbed: dict[str, Session] = {}
        self._plan: dict[str, tuple[str, ...]] = {}
        self._trials: dict[tuple[str, str], Trial | Stop] = {}
        self._futures: dict[str, Future[Compilation]] = {}
        self._caches: tuple[Future[bytes], ...] = ()
        if court.base is not None and side == "head":
            self._oppose(court.base.kernel(kernel.name))

    @contextlib.contextmanager
    def on(self, court: Court) -> Iterator[None]:
        """Climb on in this court, of the same run and perhaps on another GPU; what was begun there ends with the block.

        Both sides go together, and it becomes the GPU of this thread.
        """
        court.device.enter()
        for one in filter(None, (self, self.base)):
            one.court, one.device = court, court.device
        try:
            yield
        finally:
            self.forget()

    def _oppose(self, kernel: Kernel | None) -> None:
        """Take the base's kernel of the same name for the other side. The same sources are compiled once."""
        self.is_new = kernel is None
        if kernel is not None:
            self.base = KernelReferee(kernel, self.court, self.targets, side="base")
            if (kernel.path.name, kernel.sha256()) == (self.kernel.path.name, self.kernel.sha256()):
                self.base._futures = self._futures

    @property
    def card(self) -> Card:
        """The kernel's card. Raises Stop("card")."""
        if self.kernel.card is None:
            raise Stop("card", self.kernel.error, file=str(self.kernel.path), line=1)
        return self.kernel.card

    @property
    def reference(self) -> Reference:
        """The loaded reference. Raises Stop("unknown-reference") or Stop("reference")."""
        return self.court.reference(self.kernel.reference)

    @property
    def interpreted(self) -> bool:
        """Whether the kernel runs in Triton's interpreter here."""
        return not self.device.is_gpu

    def start_compiling(self) -> None:
        """Begin to compile for all targets in the background; faults come out of `compiled`."""
        if self.kernel.card is None or self.card.backend not in backends.names():
            return
        try:
            # Of the base only what will be compared here; the rest where it is asked for.
            for target in self.targets if self.side == "head" else {self.device.target} & set(self.targets):
                self._futures[target] = self._submitted(target)
            if self.device.is_gpu:
                target = self.device.target
                self._caches = self.court.builder.fill_caches(self.kernel, self.reference, target, self.side)
        except (Stop, ReferenceFailed):
            return  # precheck or `compiled` says so
        if self.base is not None and self.device.is_gpu:
            self.base.start_compiling()

    def _submitted(self, target: str) -> "Future[Compilation]":
        return self.court.builder.submit(self.kernel, self.reference, target, self.court.all_configs, self.side)

    def compiled(self, target: str) -> Compilation:
        """The compilation for a target; waits for it. Raises Stop."""
        try:
            if target not in self._futures:
                self._futures[target] = self._submitted(target)
            return self._futures[target].result()
        except ReferenceFailed as error:
            raise Stop("reference", str(error)) from error

    def cases(self) -> tuple[Case, ...]:
        """Check cases, and on a GPU bench cases too, as this device runs them; narrowed by --case."""
        found = self.reference.cases()
        if self.interpreted:
            found = tuple(case for case in found if case.kind == "check")
        if self.tier == "watch":
            checks = (case for case in found if case.kind == "check")
            found = tuple(one for one in checks if 0 < extent.extent(self.reference, one).touched <= WATCH_ELEMENTS)
        wanted = self.court.case_filter
        named = tuple(case for case in found if wanted in ("", case.id))
        if named or not wanted:
            return named
        other = self.reference.case_of(wanted)
        return (other,) if other is not None and other.kind == "hidden" else ()

    def why_no_case(self) -> str:
        """Why there is no case to execute here, with the names of those that there are."""
        return wording.no_case(self.court.case_filter, self.reference.cases(), self.interpreted)

    def hidden(self) -> tuple[Case, ...]:
        """Cases of this run alone, of sizes drawn from the reference's domain; none where one case is asked for."""
        if self.court.case_filter or self.tier == "watch":
            return ()
        count = HIDDEN_CASES["interpreter" if self.interpreted else "gpu"]
        return hidden.cases(self.reference, self.court.seed, count, lambda case: self.why_not(case) is None)

    def draws(self, case: Case) -> tuple[str, ...]:
        """All families and some variants on a GPU; in the interpreter one normal draw and a turn of the others."""
        if self.court.draw_filter:
            return (self.court.draw_filter,)
        if self.tier == "watch":
            return (VARIED,)
        if not self._plan:
            self.plan_draws(few=self.interpreted)
        return self._plan.get(planned(case), (VARIED,))

    def plan_draws(self, few: bool) -> None:
        """Say which draws each case gets from now on: `few` take turns, else every case gets all of them."""
        cases = [one for one in (*self.cases(), *self.hidden()) if self.why_not(one) is None]
        self._plan = plan(self.reference, cases, self.config.seeds, few)

    def require_sound(self) -> None:
        """Raise Stop where the controls show that the reference can't tell right from wrong."""
        weak = self.court.truths.weakness(self.reference, cache_folder(self.config) / "controls")
        if weak is not None:
            raise Stop(weak.reason, weak.message)

    def why_not(self, case: Case) -> Stop | None:
        """Why a case is beyond this device or tier, or None."""
        return extent.beyond(self.reference, case, self.config, self.tier, self.interpreted)

    def outputs(self, case: Case, draw: str) -> dict[str, TensorSpec]:
        """The declared outputs."""
        return self.drawn(case, draw).outputs

    def truth(self, case: Case, draw: str) -> oracle.Truth:
        """What is true of a case and draw. Raises Stop("reference")."""
        return self.drawn(case, draw).truth

    def trial(self, case: Case, draw: str) -> Trial:
        """The candidate's two calls on a case and draw; made once. Raises Stop."""
        key = (planned(case), draw)
        if key not in self._trials:
            self.start_trials((case, draw))
        found = self._trials[key]
        if isinstance(found, Stop):
            raise found
        return found

    def start_trials(self, *calls: tuple[Case, str]) -> str:
        """Make the trials of cases and draws together, calls interleaved; `trial` then gives each. A fault ends it: the
        name of the draw with the fault, or nothing."""
        new = {(planned(case), draw): self.drawn(case, draw) for case, draw in calls}
        untried = {key for key in new if key not in self._trials}
        # Beside what the draw differs from in an element or two, in one process: there a kept answer shows.
        again = {(name, split(draw)[0]) for name, draw in untried if split(draw)[1] in NEAR} & new.keys()
        keys = {f"{name} under {draw}": (name, draw) for name, draw in new if (name, draw) in untried | again}
        try:
            found = self._tried({name: new[key] for name, key in keys.items()}) if keys else {}
        except Stop as stop:
            found = dict.fromkeys(keys, stop)
        self._trials |= {keys[name]: trial for name, trial in found.items()}
        faults = ((draw, self._trials.get((planned(case), draw))) for case, draw in calls)
        return next((draw for draw, one in faults if isinstance(one, Stop) and not is_refusal(draw, one)), "")

    def _tried(self, drawn: dict[str, Drawn]) -> dict[str, Trial | Stop]:
        session = self._running()
        before = session.starting_s
        try:
            with self.spent.during("calls"):
                return run_all(session, drawn, self.seed)
        finally:
            self.spent.add("starting", session.starting_s - before)
            self.spent.add("calls", before - session.starting_s)

    @property
    def configs(self) -> int:
        """How many configurations the kernel's autotuner has, as far as calls have shown; 0: no autotuner."""
        return self._session.configs if self._session else 0

    def pinned(self, case: Case, draw: str, config: int) -> Trial:
        """The trial of a case and draw with this one of the autotuner's configurations. Raises Stop."""
        return run_drawn(self._running(), self.drawn(case, draw), config)

    def disturbed(self, case: Case, draw: str, name: str) -> Trial:
        """The trial of a case and draw under a disturbance (kernelci.disturbing), in a candidate of its own.

        Raises Stop.
        """
        if name not in self._disturbed:
            what = self._start_of()
            stub = replace(what, source=disturbing.source(what.source, what.entry, name))
            self._disturbed[name] = self._start(stub, None)
        return run_drawn(self._disturbed[name], self.drawn(case, draw))

    def repeats(self, case: Case, draw: str, count: int) -> list[dict[str, torch.Tensor]]:
        """The distinct outputs of many calls on the same inputs. Raises Stop."""
        return repeats(self._running(), self.drawn(case, draw), count)

    def plainly(self, case: Case, draw: str) -> dict[str, torch.Tensor]:
        """What one call leaves in zeroed outputs, whatever else it does. Raises Stop where it does not come back."""
        return plainly(self._running(), self.drawn(case, draw))

    def release(self, case: Case) -> None:
        """Drop the trials of a case, whose outputs take memory."""
        name = planned(case)
        self._trials = {key: trial for key, trial in self._trials.items() if key[0] != name}

    def drawn(self, case: Case, draw: str) -> Drawn:
        """Inputs, declared outputs and the truth of a case and draw. Raises Stop("reference")."""
        try:
            with self.spent.during("drawing"):
                return self.court.truths.get(self.reference, extent.as_run(case, self.interpreted), draw)
        except ReferenceFailed as error:
            raise Stop("reference", str(error)) from error

    def substitution(self, case: Case) -> str:
        """What is said of a case that runs with other data than it names, or nothing."""
        return extent.substitution(case, self.interpreted)

    def _running(self) -> Session:
        if self._session is None:
            self._session = self.open()
        return self._session

    def open(self, arena: Arena | None = None, audit: bool = False) -> Session:
        """A session with a fresh candidate of this kernel, on an arena that others use too or on its own."""
        return self._start(self._start_of(audit), arena)

    def _start_of(self, audit: bool = False) -> Start:
        caches = tuple(filter(None, (future.result() for future in self._caches)))
        return Start(source_of(self.kernel), self.card.entry, self.card.backend, caches, audit)

    def _start(self, what: Start, arena: Arena | None) -> Session:
        return start(self.court, self.side, what, arena)

    @property
    def seed(self) -> str:
        """The run's secret seed."""
        return self.court.seed

    def watch(self) -> nvml.Watch:
        """A context that samples the state of this GPU."""
        return nvml.Watch(self.court.state_of_gpu())

    def probe(self, arena: Arena) -> Probe:
        """A probe of the clock's own cost, among this kernel's candidates. Raises Stop."""
        return Probe(arena, self._trusted)

    def _trusted(self, arena: Arena, source: Source, entry: str, audit: bool = False) -> Session:
        """A session with a source of our own."""
        return self._start(Start(source, entry, self.card.backend, audit=audit), arena)

    def auditor(self) -> Auditor:
        """What audits this kernel's cases. Raises Stop."""
        court, target = self.court, self.device.target
        if court.recording_cost is None:
            court.recording_cost = recording_cost(self.device.torch_name, partial(self._trusted, audit=True))
        symbols = self.compiled(target).symbols() if target in self.targets else frozenset[str]()
        return Auditor(partial(self.open, audit=True), symbols, court.recording_cost)

    def calibration(self) -> Calibration:
        """What this GPU does today; measured when first asked for. Raises Stop."""
        court = self.court
        if court.calibration is None:
            court.calibration = calibrate(self.device.torch_name, self.device.name, self._trusted)
        return court.calibration

    def baselines(self, cases: tuple[Case, ...], calibration: Calibration) -> tuple[baselines.Found, str]:
        """What a user would otherwise call on these cases, by case, measured once a run; and what that took."""
        court, device = self.court, self.device.torch_name
        opened, keep = partial(start_baseline, court), partial(keep_compiled, court, self.reference)
        return baselines.measured_once(court.baselines, device, self.reference, cases, calibration, opened, keep)

    def inspect(self, tool: str, cases: tuple[Case, ...]) -> sanitizer.Inspection:
        """A tool's run over the first draw of each of these cases, in a process of its own."""
        return cold.inspect(self.court, self._start_of(), tool, [self.drawn(case, VARIED) for case in cases])

    def profile(self, case: Case) -> profiler.Profile:
        """What Nsight Compute sees of one call of a case, in a process of its own. Raises Stop."""
        return cold.profile(self.court, self._start_of(), self.reference, case)

    def trace(self, case: Case) -> Trace:
        """What one call of a case records of its own inside, in a process of its own. Raises Stop."""
        return cold.trace(self.court, self.side, self._start_of(), self.reference, case, self.card.regions)

    def follow(self, case: Case) -> Followed:
        """What host and GPU did in a few calls of a case, in a process of its own. Raises Stop."""
        return cold.follow(self.court, self.side, self._start_of(), self.reference, case)

    def finding(self, stop: Stop, case: Case | None = None, draw: str = "", rung: str = "") -> Finding:
        """A stop as a record, with the command that reproduces it."""
        where = f"--draw {draw} --seed {self.court.seed}" if draw else ""
        command = wording.command(self.kernel.name, rung, case.id if case is not None else "", where)
        return wording.finding(stop, self.kernel, self._root, command if self.side == "head" else "")

    @property
    def _root(self) -> Path:
        return ((self.court.base if self.side == "base" else None) or self.court).catalog.root

    def relative(self, file: str) -> str:
        """A file's path within the project, or its end if it lies elsewhere."""
        return wording.relative(file, self.kernel, self._root)

    def forget(self) -> None:
        """Drop trials, whose outputs take memory, and end the session; the base's too."""
        if self.base is not None:
            self.base.forget()
        self._trials.clear()
        for session in filter(None, (self._session, *self._disturbed.values())):
            session.close()
        self._session = None
        self._disturbed.clear()
