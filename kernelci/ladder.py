"""The ladder: all kernels of a run up the rungs, first together and then one by one in quiet, all of it recorded."""

import contextlib
import datetime
import secrets
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import kernelci
from kernelci import results
from kernelci.ascent import Ascent, Progress, Rungs
from kernelci.basing import Base
from kernelci.budget import stated
from kernelci.catalog import Catalog, Kernel
from kernelci.comparison import settle
from kernelci.compiling.builder import Builder
from kernelci.config import Config, cache_folder
from kernelci.court import Court, compile_ahead, zygote_for
from kernelci.errors import ConfigError, Stop
from kernelci.gate import Gate
from kernelci.gpus import unknown
from kernelci.lanes import spread
from kernelci.model import SCHEMA_VERSION, Change, KernelReport, Report, RungResult
from kernelci.referee import KernelReferee
from kernelci.reference import ReferenceFailed
from kernelci.rungs import Rung
from kernelci.rungs import ladder as all_rungs
from kernelci.workbench import drawn, sandbox
from kernelci.workbench.ahead import Ahead
from kernelci.workbench.device import choose, environment, find, find_all, serves
from kernelci.workbench.draws import FAMILIES
from kernelci.workbench.truths import Truths

# Kernels that climb at once: each waits for its own candidate most of the time (compiling for its first calls).
LANES = {True: 4, False: 2}
SWITCH_S = 5e-4  # Python's 5 ms would keep the thread that waits for a window from noting its end


class Plan(Struct, frozen=True):
    """What a run is asked to do. Empty means all: kernels, rungs, targets."""

    kernels: tuple[Kernel, ...]
    out: Path
    rungs: tuple[str, ...] = ()
    own: Mapping[str, tuple[str, ...]] = {}
    """The rungs of single kernels, by name, that climb others than the rest."""
    targets: tuple[str, ...] = ()
    seed: str = ""
    case: str = ""
    draw: str = ""
    tier: str = "pr"
    all_configs: bool = False
    base: Base | None = None
    """What to compare with; its folder must stay until the run ends."""
    change: Change | None = None
    notes: tuple[str, ...] = ()
    """What the report is to say besides."""


def climb(catalog: Catalog, config: Config, plan: Plan, progress: Progress | None = None) -> Report:
    """Climb with every kernel of the plan. Raises RunnerBroken.

    results.json is written even where a kernel fails, and holds the finished kernels of a run that is interrupted.
    """
    began = time.monotonic()
    known = all_rungs(catalog.root / config.rungs)
    usual = chosen(known, plan.rungs)
    rungs = {one.name: chosen(known, plan.own[one.name]) if one.name in plan.own else usual for one in plan.kernels}
    _check_asked(config, plan)
    results.check_writable(plan.out)
    results.check_writable(cache_folder(config), "name another: `cache` in the configuration, or KERNELCI_CACHE")
    results.begin(plan.out)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    done: dict[str, Ascent] = {}
    over = threading.Event()
    with opened(catalog, config, plan) as court:
        try:
            _climb_all(plan, court, rungs, _until(over, progress), done)
        finally:
            over.set()
            report = _reported(plan, court, started, time.monotonic() - began, done)
            results.write(report, plan.out)
    return report


def _until(over: threading.Event, progress: Progress | None) -> Progress | None:
    """What tells of rungs until it is over: after an interrupt those that are still climbed end with their processes,
    which is nobody's fault."""

    def tell(kernel: Kernel, result: RungResult) -> None:
        if progress is not None and not over.is_set():
            progress(kernel, result)

    return tell if progress is not None else None


def _reported(plan: Plan, court: Court, started: str, seconds: float, done: dict[str, Ascent]) -> Report:
    done = {name: ascent for name, ascent in dict(done).items() if ascent.told}
    kernels = tuple(done[kernel.name].report() for kernel in plan.kernels if kernel.name in done)
    missing = len(plan.kernels) - sum(ascent.finished for ascent in done.values())
    report = Report(
        SCHEMA_VERSION,
        kernelci.__version__,
        started,
        round(seconds, 3),
        environment(court.device, sandbox.level().text),
        kernels,
        court.seed,
        (*plan.notes, *((f"interrupted: {missing} of {len(plan.kernels)} kernels did not finish",) if missing else ())),
        plan.change,
    )
    return stated(settle(report, Gate.now(court.config.gate)), court.config.budget)


def _dumps(plan: Plan) -> bool:
    """Whether the machine code will be shown: disassembling takes longer than compiling a small kernel."""
    asked = (plan.rungs, *plan.own.values())
    return plan.tier != "watch" and any(not rungs or "dump" in rungs for rungs in asked)


@contextlib.contextmanager
def opened(catalog: Catalog, config: Config, plan: Plan) -> Iterator[Court]:
    """What all kernels of a run share; its processes end with the block."""
    devices = choose(config.gpus, (find(),) if config.gpus == "1" else find_all())
    device = devices[0]
    seed = plan.seed or secrets.token_hex(8)
    court = Court(
        catalog=catalog,
        config=config,
        device=device,
        devices=devices,
        builder=Builder(config, sass=_dumps(plan), hidden=(catalog.root, *((plan.base.root,) if plan.base else ()))),
        zygotes={},
        truths=Truths(device.torch_name, seed),
        references={},
        out=plan.out,
        seed=seed,
        tier=plan.tier,
        case_filter=plan.case,
        draw_filter=plan.draw,
        all_configs=plan.all_configs,
        base=plan.base,
        ahead=Ahead(cache_folder(config) / "baselines") if config.baselines else None,
    )
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield court
    finally:
        sys.setswitchinterval(switch_s)
        court.builder.close()
        for waiting in court.waiting.values():
            waiting.close()
        for zygote in court.zygotes.values():
            zygote.close()
        if court.ahead is not None:
            court.ahead.close()


def chosen(known: tuple[Rung, ...], wanted: tuple[str, ...]) -> Rungs:
    """Each rung with whether it is climbed: those asked for, and those that they stand on."""
    names = {rung.name: rung for rung in known}
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ConfigError(f"no rung {unknown[0]!r}", hint=f"known: {', '.join(names)}")
    needed = set(wanted or names)
    for rung in reversed(known):
        if rung.name in needed:
            needed.update(rung.after)
    return tuple((rung, rung.name in needed) for rung in known)


def _check_asked(config: Config, plan: Plan) -> None:
    """Raises ConfigError for a target or a draw that nobody knows."""
    if message := unknown((*plan.targets, *config.targets)):
        raise ConfigError(message, hint="correct --target, or `targets` in the configuration")
    plain, variant, _ = drawn.split(plan.draw)
    if plan.draw and plain.partition(":")[0] not in FAMILIES:
        raise ConfigError(f"no draw {plan.draw!r}", hint=f"for example outliers:0; there are {', '.join(FAMILIES)}")
    if "+" in plan.draw and variant not in drawn.VARIANTS:
        variants = ", ".join(drawn.VARIANTS)
        raise ConfigError(f"no draw {plan.draw!r}", hint=f"for example normal:0+poked.x; variants are {variants}")


def _climb_all(
    plan: Plan, court: Court, rungs: Mapping[str, Rungs], progress: Progress | None, done: dict[str, Ascent]
) -> None:
    """All kernels: several at once as far as they can climb in company, then one at a time on each GPU in quiet.

    `rungs` are each kernel's own. A kernel is in `done` from its start.
    """
    referees = [KernelReferee(kernel, court, _targets(kernel, court.config, plan.targets)) for kernel in plan.kernels]
    all_courts = courts(court)
    _start(all_courts, rungs, referees)

    def in_company(court: Court, referee: KernelReferee) -> None:
        ascent = done[referee.kernel.name] = Ascent(referee, rungs[referee.kernel.name], progress)
        with referee.on(court):
            ascent.in_company()

    def in_quiet(court: Court, ascent: Ascent) -> None:
        with ascent.referee.on(court):
            ascent.in_quiet()

    lanes = court.config.lanes or LANES[court.device.is_gpu]
    spread(referees, [partial(in_company, one) for _ in range(lanes) for one in all_courts])
    left = [done[kernel.name] for kernel in plan.kernels if not done[kernel.name].finished]
    if left:
        for one in all_courts:
            one.truths.drop()
        court.builder.settle()
        if court.ahead is not None:
            court.ahead.settle()
        spread(left, [partial(in_quiet, one) for one in all_courts])


def courts(court: Court) -> tuple[Court, ...]:
    """The court, and one more for each further GPU: with its own truths, and all else in common."""
    others = court.devices[1:]
    return (court, *(replace(court, device=one, truths=Truths(one.torch_name, court.seed)) for one in others))


def _start(courts: Sequence[Court], rungs: Mapping[str, Rungs], referees: Sequence[KernelReferee]) -> None:
    """Begin in the background what takes long: compiling, and the imports of those that will run kernels."""
    wanted = {rung.name for own in rungs.values() for rung, climbed in own if climbed}
    if "compile" in wanted:
        for referee in referees:
            referee.start_compiling()
    if wanted & {"run", "correctness"}:
        for court in courts:
            warm([referee.kernel for referee in referees], court)
            if court.device.is_gpu:  # where the sides are measured
                warm([referee.base.kernel for referee in referees if referee.base is not None], court, "base")
    if "benchmark" in wanted and courts[0].config.baselines:
        _compile_ahead(courts, referees)


def _compile_ahead(courts: Iterable[Court], referees: Iterable[KernelReferee]) -> None:
    """Begin to compile what kernels are measured beside, on a GPU."""
    for court in courts:
        for referee in referees if court.device.is_gpu else ():
            with contextlib.suppress(Stop, ReferenceFailed):  # precheck says so
                compile_ahead(court, referee.reference, [case for case in referee.cases() if case.kind == "bench"])


def warm(kernels: Iterable[Kernel], court: Court, side: str = "head") -> None:
    """Start the zygotes that will run one side's kernels, so that their imports overlap with compiling."""
    for kernel in kernels:
        card = kernel.card
        if card is not None and serves(card.backend, court.device):
            zygote_for(court, card.backend, side)


def _targets(kernel: Kernel, config: Config, asked: Iterable[str]) -> tuple[str, ...]:
    own = kernel.card.targets if kernel.card and kernel.card.targets else config.targets
    return tuple(target for target in own if not asked or target in asked)


def climb_one(referee: KernelReferee, rungs: Rungs, progress: Progress | None = None) -> KernelReport:
    """One kernel up all rungs, where no other runs."""
    ascent = Ascent(referee, rungs, progress)
    ascent.in_company()
    ascent.in_quiet()
    return ascent.report()
