"""The ladder on a small project: outcomes, reasons for what is skipped, and rungs of the user's own."""

from pathlib import Path
from typing import Any

import pytest

from kernelci import basing, catalog, config, ladder, results, rungs
from kernelci.errors import ConfigError
from kernelci.model import Report, RungResult
from kernelci.workbench.device import Device

REFERENCE = """
from kernelci.reference import check, like
def cases():
    yield check(n=4, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x
"""
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "copy"
# backend = "triton"
# entry = "copy"
# targets = ["sm_80"]
# ///
def copy(x, y):
    y.copy_(x)
"""
OWN = """
from kernelci.errors import Stop
from kernelci.rungs import Findings, rung
@rung("own", after=("precheck",))
def own(referee):
    {body}
"""


@pytest.fixture(autouse=True)
def _own_rungs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    rungs.ladder()
    monkeypatch.setattr(rungs, "_REGISTRY", dict(rungs._REGISTRY))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of one reference and one kernel."""
    for place, text in (("references/copy.py", REFERENCE), ("kernels/copy/plain.py", KERNEL)):
        _file(tmp_path / place, text)
    return tmp_path


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _climb(root: Path, *wanted: str, **flags: int) -> Report:
    options = config.load(root, {}, {"cache": str(root / "cache"), **flags})
    found = catalog.scan(root, options)
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", wanted))


def _rung(report: Report, name: str) -> RungResult:
    found = report.kernels[0].rung(name)
    assert found is not None
    return found


def _reason(report: Report, name: str) -> str:
    finding = _rung(report, name).finding
    return finding.reason if finding else ""


def test_report_is_written(root: Path) -> None:
    assert _climb(root, "precheck") == results.read(root / "out")


def test_what_was_not_asked_for_is_skipped(root: Path) -> None:
    report = _climb(root, "precheck")
    assert ("", "not-requested", "not-requested") == tuple(
        _reason(report, name) for name in ("precheck", "compile", "run")
    )


def test_unknown_rung(root: Path) -> None:
    with pytest.raises(ConfigError, match="no rung 'surprise'"):
        _climb(root, "surprise")


def test_own_rung_is_climbed(root: Path) -> None:
    _file(root / "rungs" / "own.py", OWN.format(body="return Findings(notes=[referee.kernel.name])"))
    assert ("PASSED", ("copy/plain",)) == (
        _rung(_climb(root, "own"), "own").outcome,
        _rung(_climb(root, "own"), "own").notes,
    )


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("raise KeyError('gone')", "BROKEN", "rung-error"),
        ("raise Stop('wrong', 'text')", "FAILED", "wrong"),
        ("raise Stop('no-gpu', 'text')", "SKIPPED", "no-gpu"),
        ("return None", "BROKEN", "rung-error"),
    ],
)
def test_own_rung_that_raises(root: Path, body: str, outcome: str, reason: str) -> None:
    _file(root / "rungs" / "own.py", OWN.format(body=body))
    report = _climb(root, "own")
    assert (outcome, reason) == (_rung(report, "own").outcome, _reason(report, "own"))


def test_a_rung_knows_where_its_seconds_went(root: Path) -> None:
    body = (
        "referee.trial(referee.cases()[0], 'normal:0')\n    spent = referee.spent\n"
        "    return Findings(notes=[' '.join(str(part > 0) for part in (spent.drawing, spent.starting, spent.calls))])"
    )
    _file(root / "rungs" / "own.py", OWN.format(body=body))
    assert ("True True True",) == _rung(_climb(root, "own"), "own").notes


def test_own_rung_that_can_not_be_imported(root: Path) -> None:
    _file(root / "rungs" / "own.py", "1 / 0")
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        _climb(root, "precheck")


def test_rung_after_one_that_failed(root: Path) -> None:
    _file(root / "kernels" / "copy" / "plain.py", KERNEL.replace('entry = "copy"', 'entry = "other"'))
    report = _climb(root, "compile")
    assert ("entry-missing", "earlier-rung") == (_reason(report, "precheck"), _reason(report, "compile"))


@pytest.mark.parametrize(
    ("old", "new", "outcome", "reason"),
    [
        ("yield check(n=4", "1 / 0; yield check(n=4", "BROKEN", "reference"),
        ("yield check(n=4", "return; yield check(n=4", "BROKEN", "no-cases"),
        ('like("x")', 'like("z")', "BROKEN", "reference"),
        ("draw.normal", "draw.surprise", "BROKEN", "reference"),
        ("def reference", "def referenc", "BROKEN", "reference"),
    ],
)
def test_reference_that_is_broken(root: Path, old: str, new: str, outcome: str, reason: str) -> None:
    _file(root / "references" / "copy.py", REFERENCE.replace(old, new))
    report = _climb(root, "precheck")
    assert (outcome, reason, 4) == (_rung(report, "precheck").outcome, _reason(report, "precheck"), report.exit_code)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (KERNEL[: KERNEL.index("def")], "", "card"),
        ('backend = "triton"', 'backend = "fortran"', "unknown-backend"),
        ('reference = "copy"', 'reference = "cpy"', "unknown-reference"),
        ("def copy(x, y):", "def copy(x, y)", "syntax"),
        ("y.copy_(x)", "y.copy_(x) # \0", "syntax"),
        ("def copy(x, y):", "def copy(x, z):", "entry-signature"),
        ("def copy(x, y):", "def copy(y):", "entry-signature"),
        ("def copy(x, y):", "def copy(x, /, y):", "entry-signature"),
        ("dependencies = []", 'dependencies = ["no-such-package-at-all"]', "missing-dependency"),
        ("dependencies = []", 'dependencies = ["torch<0.1"]', "missing-dependency"),
        ("dependencies = []", 'dependencies = ["torch >> 1"]', "card"),
        ('["sm_80"]', '["sm_42"]', "card"),
    ],
)
def test_precheck(root: Path, old: str, new: str, reason: str) -> None:
    _file(root / "kernels" / "copy" / "plain.py", KERNEL.replace(old, new))
    assert reason == _reason(_climb(root, "precheck"), "precheck")


@pytest.mark.parametrize("signature", ["x, y", "y, x", "x", "x, *, y", "x, y, block=128", "**tensors"])
def test_precheck_takes(root: Path, signature: str) -> None:
    _file(root / "kernels" / "copy" / "plain.py", KERNEL.replace("def copy(x, y):", f"def copy({signature}):"))
    assert _reason(_climb(root, "precheck"), "precheck") == ""


@pytest.mark.parametrize(("folder", "step"), [("out", "--out"), ("cache", "KERNELCI_CACHE")])
def test_a_folder_that_can_not_be_written(root: Path, folder: str, step: str) -> None:
    _file(root / folder, "a file")
    with pytest.raises(ConfigError, match="can't write to") as caught:
        _climb(root, "precheck")
    assert ("output-folder", True) == (caught.value.code, step in caught.value.hint)


@pytest.mark.parametrize("asked", [{"targets": ("sm_42",)}, {"draw": "outlier:0"}, {"draw": "normal:0+poke.x"}])
def test_what_nobody_knows_is_refused_before_anything_is_climbed(root: Path, asked: dict[str, Any]) -> None:
    options = config.load(root, {}, {"cache": str(root / "cache")})
    found = catalog.scan(root, options)
    with pytest.raises(ConfigError, match=r"the target 'sm_42'|no draw '(outlier:0|normal:0\+poke.x)'"):
        ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("precheck",), **asked))
    assert not (root / "out").exists()


def test_a_full_disk_is_no_bug(root: Path) -> None:
    _file(root / "rungs" / "own.py", OWN.format(body="raise OSError(28, 'No space left on device', '/cache')"))
    report = _climb(root, "own")
    assert ("no-space", 4) == (_reason(report, "own"), report.exit_code)


# Rungs in company and in quiet; each tells what it does in a file. `still` fails if another kernel is in it too, and
# `pair` waits for another kernel.
PHASES = """
import threading, time
from kernelci.rungs import Findings, rung
busy, both = threading.Lock(), threading.Barrier(2, timeout=30)
def tell(referee, name):
    with (referee.out / "told").open("a") as file:
        file.write(f"{name} {referee.kernel.name}\\n")
    return Findings()
@rung("still", after=("precheck",), needs=("quiet",))
def still(referee):
    assert busy.acquire(blocking=False)
    time.sleep(0.05)
    busy.release()
    return tell(referee, "still")
@rung("above", after=("still",))
def above(referee):
    return tell(referee, "above")
@rung("pair", after=("precheck",))
def pair(referee):
    both.wait()
    return tell(referee, "pair")
"""


# `pair` stops the one kernel, whose `last` goes on until the other has interrupted the run.
STOPPED = """
from kernelci.errors import Stop
stopped = threading.Event()
def stopped_or_interrupted(referee):
    if referee.kernel.name == "copy/plain":
        raise Stop("wrong", "text")
    stopped.wait(30)
    raise KeyboardInterrupt
@rung("last", after=("precheck",))
def last(referee):
    stopped.set()
    time.sleep(1)
    return Findings()
"""


@pytest.fixture
def two(root: Path) -> Path:
    """The project with a second kernel, and rungs that need quiet."""
    _file(root / "kernels" / "copy" / "second.py", KERNEL)
    _file(root / "rungs" / "phases.py", PHASES)
    return root


def _told(root: Path) -> list[str]:
    return (root / "out" / "told").read_text().splitlines()


def test_what_needs_quiet_comes_one_by_one_after_all_that_does_not(two: Path) -> None:
    report = _climb(two, "pair", "above", lanes=2)
    told = _told(two)
    assert (0, {"pair copy/plain", "pair copy/second"}) == (report.exit_code, set(told[:2]))
    assert ["still copy/plain", "above copy/plain", "still copy/second", "above copy/second"] == told[2:]


def test_the_report_keeps_the_ladders_order(two: Path) -> None:
    names = [rung.rung for rung in _climb(two, "pair", "above", lanes=2).kernels[0].rungs]
    assert ["still", "above", "pair"] == names[-3:]


def test_quiet_rungs_of_a_kernel_that_failed_are_settled_at_once(two: Path) -> None:
    _file(two / "kernels" / "copy" / "plain.py", KERNEL.replace('entry = "copy"', 'entry = "other"'))
    report = _climb(two, "above")
    assert ("earlier-rung", ["still copy/second", "above copy/second"]) == (_reason(report, "above"), _told(two))


@pytest.mark.parametrize(("reason", "timed"), [("cost", True), ("interpreter-cost", False), ("wrong", False)])
def test_what_is_too_large_for_other_rungs_is_timed_all_the_same(two: Path, reason: str, timed: bool) -> None:
    below = f"""
from kernelci.errors import Stop
@rung("below", after=("precheck",))
def below(referee):
    raise Stop({reason!r}, "text")
"""
    phases = PHASES.replace('rung("still", after=("precheck",)', 'rung("still", after=("below",)')
    _file(two / "rungs" / "phases.py", f"{phases.partition('@rung')[0]}{below}@rung{phases.partition('@rung')[2]}")
    report = _climb(two, "still")
    found = report.kernels[0].rung("still")
    assert found is not None
    assert ("PASSED" if timed else "SKIPPED") == found.outcome


def test_an_interrupt_in_quiet_keeps_what_was_found_in_company(two: Path) -> None:
    _file(two / "rungs" / "phases.py", PHASES.replace("assert busy", "raise KeyboardInterrupt\n    assert busy"))
    with pytest.raises(KeyboardInterrupt):
        _climb(two, "pair", "above", lanes=2)
    report = results.read(two / "out")
    assert ("", "interrupted", "interrupted") == tuple(_reason(report, name) for name in ("pair", "still", "above"))
    assert ("interrupted: 2 of 2 kernels did not finish",) == report.notes


def test_an_interrupt_in_company_begins_nothing_more(two: Path) -> None:
    _file(two / "rungs" / "phases.py", PHASES.replace("both.wait()", "raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        _climb(two, "pair", "above", lanes=1)
    report = results.read(two / "out")
    assert ((), ("interrupted: 2 of 2 kernels did not finish",)) == (report.kernels, report.notes)
    assert not (two / "out" / "told").exists()


def test_an_interrupt_in_company_keeps_what_had_stopped_a_kernel(two: Path) -> None:
    """The kernel is stopped, and would climb on; another one's interrupt ends the run meanwhile."""
    _file(
        two / "rungs" / "phases.py", PHASES.replace("both.wait()", "return stopped_or_interrupted(referee)") + STOPPED
    )
    with pytest.raises(KeyboardInterrupt):
        _climb(two, "pair", "last", lanes=2)
    report = results.read(two / "out")
    assert (["copy/plain"], "wrong") == ([kernel.name for kernel in report.kernels], _reason(report, "pair"))


def test_a_kernel_may_have_rungs_of_its_own(two: Path) -> None:
    options = config.load(two, {}, {"cache": str(two / "cache")})
    found = catalog.scan(two, options)
    own = {"copy/second": ("above",)}
    report = ladder.climb(found, options, ladder.Plan(found.kernels, two / "out", ("precheck",), own))
    assert ["still copy/second", "above copy/second"] == _told(two)
    assert ("not-requested", "copy/plain") == (_reason(report, "above"), report.kernels[0].name)


def test_no_candidate_lives_while_it_is_quiet(two: Path) -> None:
    started = "referee.trial(referee.cases()[0], 'normal:0'); both.wait()"
    over = "assert referee._session is None and not referee._trials; assert busy"
    _file(two / "rungs" / "phases.py", PHASES.replace("both.wait()", started).replace("assert busy", over))
    report = _climb(two, "pair", "still", lanes=2)
    assert ("", "") == (_reason(report, "pair"), _reason(report, "still"))


# What a rung sees of the base: the other kernel of that name, in a sandbox of its own, on the same draws.
SIDES = """
from kernelci.rungs import Findings, rung
@rung("sides", after=("precheck",), needs=("quiet",))
def sides(referee):
    if referee.base is None:
        return Findings(notes=["new" if referee.is_new else "alone"])
    found = []
    for side in (referee, referee.base):
        trial, truth = (ask(side.cases()[0], "normal:0") for ask in (side.trial, side.truth))
        found.append(f"{side.side} {bool((trial.outputs['y'] == truth.oracle['y']).all())}")
    return Findings(notes=[*found, *sorted(referee.court.zygotes)])
"""


@pytest.fixture
def base(root: Path, tmp_path_factory: pytest.TempPathFactory) -> basing.Base:
    """The project as it was: its kernel doubled; and the project compares both in a rung."""
    folder = tmp_path_factory.mktemp("base")
    _file(folder / "kernels" / "copy" / "plain.py", KERNEL.replace("y.copy_(x)", "y.copy_(x + x)"))
    _file(root / "rungs" / "sides.py", SIDES)
    return basing.in_folder(folder)


def _against(root: Path, base: basing.Base | None) -> Report:
    options = config.load(root, {}, {"cache": str(root / "cache")})
    found = catalog.scan(root, options)
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("sides",), base=base))


def test_every_gpu_has_lanes_of_its_own_and_one_in_quiet(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two CPUs stand for two GPUs: `still` of both kernels wait for each other, so both lanes must be in it."""
    devices = (Device("cpu", "one"), Device("cpu", "two"))
    monkeypatch.setattr(ladder, "choose", lambda wanted, known: devices)
    meet = "assert busy.acquire(blocking=False)\n    time.sleep(0.05)\n    busy.release()"
    told = 'f"{name} {referee.kernel.name}\\n"'
    text = PHASES.replace(meet, "both.wait()").replace(told, 'f"{name} {referee.device.name}\\n"')
    _file(two / "rungs" / "phases.py", text)
    report = _climb(two, "pair", "above", lanes=1)
    told_devices = [sorted(line for line in _told(two) if line.startswith(name)) for name in ("pair", "still")]
    assert (0, [["pair one", "pair two"], ["still one", "still two"]]) == (report.exit_code, told_devices)


def test_base_and_head_run_in_sandboxes_of_their_own(root: Path, base: basing.Base) -> None:
    notes = _rung(_against(root, base), "sides").notes
    assert ("head True", "base False", "base interpret triton cpu", "head interpret triton cpu") == notes


def test_a_kernel_that_the_base_has_not_is_new(root: Path, base: basing.Base) -> None:
    (base.root / "kernels" / "copy" / "plain.py").rename(base.root / "kernels" / "copy" / "other.py")
    assert ("new",) == _rung(_against(root, basing.in_folder(base.root)), "sides").notes


def test_without_a_base_nothing_is_compared(root: Path, base: basing.Base) -> None:
    assert ("alone",) == _rung(_against(root, None), "sides").notes
