"""The ladder: all kernels of a run up the rungs, each rung's fault contained, all of it recorded."""

import contextlib
import datetime
import secrets
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

import kernelci
from kernelci import results
from kernelci.catalog import Catalog, Kernel
from kernelci.compiling.builder import Builder
from kernelci.config import Config
from kernelci.errors import ConfigError, GpuSick, RunnerBroken, Verdict
from kernelci.model import SCHEMA_VERSION, Finding, KernelReport, Report, Row, RungResult, worst
from kernelci.reasons import Outcome, outcome_of
from kernelci.referee import Court, KernelReferee, zygote_for
from kernelci.reference import ReferenceFailed
from kernelci.rungs import Findings, Rung
from kernelci.rungs import ladder as all_rungs
from kernelci.workbench import sandbox
from kernelci.workbench.device import Device, environment, find
from kernelci.workbench.truths import Truths

Progress = Callable[[Kernel, RungResult], None]
# Kernels that climb at once: each waits for its own candidate most of the time (compiling for its first calls).
LANES = {True: 4, False: 2}


class Plan(Struct, frozen=True):
    """What a run is asked to do. Empty means all: kernels, rungs, targets."""

    kernels: tuple[Kernel, ...]
    out: Path
    rungs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    seed: str = ""
    case: str = ""
    draw: str = ""
    tier: str = "pr"
    all_configs: bool = False


def climb(catalog: Catalog, config: Config, plan: Plan, progress: Progress | None = None) -> Report:
    """Climb with every kernel of the plan. Raises RunnerBroken.

    results.json is written even where a kernel fails, and holds the finished kernels of a run that is interrupted.
    """
    began = time.monotonic()
    rungs = chosen(all_rungs(catalog.root / config.rungs), plan.rungs)
    _prepare(plan.out)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    done: dict[str, KernelReport] = {}
    with opened(catalog, config, plan) as court:
        try:
            _climb_all(plan, court, rungs, progress, done)
        finally:
            report = _reported(plan, court, started, time.monotonic() - began, done)
            results.write(report, plan.out)
    return report


def _reported(plan: Plan, court: Court, started: str, seconds: float, done: dict[str, KernelReport]) -> Report:
    kernels = tuple(done[kernel.name] for kernel in plan.kernels if kernel.name in done)
    missing = len(plan.kernels) - len(kernels)
    return Report(
        SCHEMA_VERSION,
        kernelci.__version__,
        started,
        round(seconds, 3),
        environment(court.device, sandbox.level().text),
        kernels,
        court.seed,
        (f"interrupted: {missing} of {len(plan.kernels)} kernels did not finish",) if missing else (),
    )


def _dumps(plan: Plan) -> bool:
    """Whether the machine code will be shown: disassembling takes longer than compiling a small kernel."""
    return plan.tier != "watch" and (not plan.rungs or "dump" in plan.rungs)


@contextlib.contextmanager
def opened(catalog: Catalog, config: Config, plan: Plan) -> Iterator[Court]:
    """What all kernels of a run share; its processes end with the block."""
    device = find()
    seed = plan.seed or secrets.token_hex(8)
    court = Court(
        catalog=catalog,
        config=config,
        device=device,
        builder=Builder(config, sass=_dumps(plan), hidden=(catalog.root,)),
        zygotes={},
        truths=Truths(device.torch_name, seed),
        references={},
        out=plan.out,
        seed=seed,
        tier=plan.tier,
        case_filter=plan.case,
        draw_filter=plan.draw,
        all_configs=plan.all_configs,
    )
    try:
        yield court
    finally:
        court.builder.close()
        for zygote in court.zygotes.values():
            zygote.close()


def chosen(known: tuple[Rung, ...], wanted: tuple[str, ...]) -> tuple[tuple[Rung, bool], ...]:
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


def _prepare(out: Path) -> None:
    """An empty dumps folder and no old results. Raises ConfigError where the folder can't be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(out / "dumps", ignore_errors=True)
        (out / results.FILE_NAME).unlink(missing_ok=True)
        probe = out / ".writable"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"can't write to {out}: {error.strerror}", hint="name another with --out", code="output-folder"
        ) from error


def _climb_all(
    plan: Plan,
    court: Court,
    rungs: tuple[tuple[Rung, bool], ...],
    progress: Progress | None,
    done: dict[str, KernelReport],
) -> None:
    """All kernels, several at once; each report goes into `done` when it is there."""
    referees = [KernelReferee(kernel, court, _targets(kernel, court.config, plan.targets)) for kernel in plan.kernels]
    wanted = {rung.name for rung, climbed in rungs if climbed}
    if "compile" in wanted:
        for referee in referees:
            referee.start_compiling()
    if wanted & {"run", "correctness"}:
        warm(plan.kernels, court)

    def one(referee: KernelReferee) -> None:
        try:
            done[referee.kernel.name] = climb_one(referee, rungs, progress)
        finally:
            referee.forget()

    lanes = ThreadPoolExecutor(court.config.lanes or LANES[court.device.is_gpu], thread_name_prefix="lane")
    try:
        for future in [lanes.submit(one, referee) for referee in referees]:
            future.result()
    finally:  # an interrupted run does not wait: what still runs ends with its zygote
        lanes.shutdown(wait=False, cancel_futures=True)


def warm(kernels: Iterable[Kernel], court: Court) -> None:
    """Start the zygotes that will run kernels, so that their imports overlap with compiling."""
    for kernel in kernels:
        card = kernel.card
        if card is not None and _device_for(card.backend, court.device):
            zygote_for(court, "cuda" if court.device.is_gpu else "interpret", card.backend)


def _targets(kernel: Kernel, config: Config, asked: Iterable[str]) -> tuple[str, ...]:
    own = kernel.card.targets if kernel.card and kernel.card.targets else config.targets
    return tuple(target for target in own if not asked or target in asked)


def climb_one(referee: KernelReferee, rungs: tuple[tuple[Rung, bool], ...], progress: Progress | None) -> KernelReport:
    """One kernel up the rungs; each rung's fault ends as its outcome."""
    kernel = referee.kernel
    done: dict[str, RungResult] = {}
    for rung, climbed in rungs:
        began = time.monotonic()
        finding = _why_skipped(referee, rung, climbed, done)
        result = _skipped(rung, finding) if finding else _run(referee, rung, began)
        done[rung.name] = result
        if progress is not None:
            progress(kernel, result)
    path = referee.relative(str(kernel.path))
    return KernelReport(kernel.name, kernel.reference, kernel.backend, path, kernel.sha256(), tuple(done.values()))


def _why_skipped(referee: KernelReferee, rung: Rung, climbed: bool, done: dict[str, RungResult]) -> Finding | None:
    if not climbed:
        return Finding("not-requested", f"{rung.name} was not asked for")
    blocked = next((name for name in rung.after if name in done and _blocks(done[name], rung)), None)
    if blocked is not None:
        return _after(done[blocked])
    if rung.name == "compile" and not referee.targets:
        return Finding("target", "none of the asked targets is in the card's list")
    if "gpu" in rung.needs and not referee.device.is_gpu:
        return Finding("no-gpu", "no GPU on this machine")
    if "device" in rung.needs and not _device_for(referee.card.backend, referee.device):
        return Finding("no-interpreter", f"no GPU on this machine, and {referee.card.backend} has no interpreter")
    return None


def _blocks(below: RungResult, rung: Rung) -> bool:
    """Whether a rung can't be climbed after what became of one that it stands on.

    Host code that asks for values can't be compiled without any, but where kernels run it gets them.
    """
    if below.finding is not None and below.finding.reason == "needs-data" and {"device", "gpu"} & set(rung.needs):
        return False
    return below.outcome is not Outcome.PASSED


def _after(blocking: RungResult) -> Finding:
    """A rung that stands on one that did not pass is skipped, with that one's own reason if it was skipped too."""
    if blocking.outcome is Outcome.SKIPPED and blocking.finding is not None:
        return blocking.finding
    return Finding("earlier-rung", f"{blocking.rung} is {blocking.outcome}")


def _device_for(backend: str, device: Device) -> bool:
    return device.is_gpu or backend == "triton"


def _skipped(rung: Rung, finding: Finding) -> RungResult:
    return RungResult(rung.name, outcome_of(finding.reason), finding=finding)


def _run(referee: KernelReferee, rung: Rung, began: float) -> RungResult:
    try:
        return _judged(rung, rung.run(referee), began)
    except Verdict as verdict:
        finding = referee.finding(verdict, rung=rung.name)
    except ReferenceFailed as error:
        finding = Finding("reference", str(error)[:10_000])
    except RunnerBroken as error:
        finding = Finding("gpu-sick" if isinstance(error, GpuSick) else "candidate-start", error.message)
    except Exception as error:
        finding = Finding("rung-error", f"{type(error).__name__}: {error}", log=traceback.format_exc()[-8000:])
    return RungResult(rung.name, outcome_of(finding.reason), round(time.monotonic() - began, 3), finding)


def _judged(rung: Rung, found: Findings, began: float) -> RungResult:
    """The rung's outcome is its worst row's; that row's finding speaks for it."""
    outcome = worst([row.outcome for row in found.rows]) if found.rows else Outcome.PASSED
    finding = None if outcome is Outcome.PASSED else _spokesman(found.rows, outcome)
    return RungResult(
        rung.name,
        outcome,
        round(time.monotonic() - began, 3),
        finding,
        tuple(found.rows),
        tuple(found.metrics),
        tuple(found.artifacts),
        tuple(found.notes),
    )


def _spokesman(rows: list[Row], outcome: Outcome) -> Finding | None:
    return next((row.finding for row in rows if row.outcome is outcome), None)
