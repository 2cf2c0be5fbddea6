"""What action.yml runs: reads its inputs from the environment, climbs or merges, and leaves what the job shows.

Inputs arrive as variables KERNELCI_ACTION_*, never as text in a script. Outputs go to GITHUB_OUTPUT.
"""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci import reporters, results
from kernelci.errors import ConfigError, KernelciError, RunnerBroken, Superseded
from kernelci.hub import DUMPS, PART, REPORT, allowance, artifact_name, event
from kernelci.hub.climbing import climb, climb_change, hear_change
from kernelci.hub.merge import merge
from kernelci.hub.request import Request
from kernelci.model import Report

MODES = ("compile", "run", "nightly", "allow", "second", "merge", "report", "answer")
_POSTING = {"report": "publish", "answer": "answer"}  # verbs that hold a token, and run no code of a change
MIB = 2**20
_PREFIX = "KERNELCI_ACTION_"


class Inputs(Struct, frozen=True, kw_only=True):
    """The inputs of action.yml, as they were given."""

    mode: str
    root: Path
    out: Path
    base: str = ""
    head: str = ""
    kernels: tuple[str, ...] = ()
    seed: str = ""
    part: str = ""
    parts: Path = Path()
    expect: int = 0
    incomplete: str = ""
    attempt: int = 1
    second: bool = False
    """Of a rehearsal: hear the second referee on this machine too."""
    max_dump_bytes: int = 256 * MIB


def read(environ: Mapping[str, str]) -> Inputs:
    """The inputs from the environment. Raises ConfigError naming the one that is wrong."""

    def given(name: str, default: str = "") -> str:
        return environ.get(f"{_PREFIX}{name}", "").strip() or default

    mode = given("MODE", "run")
    if mode not in MODES:
        raise ConfigError(f"input mode: {mode!r}", hint=f"one of {', '.join(MODES)}")
    temporary = Path(environ.get("RUNNER_TEMP") or "/tmp")
    return Inputs(
        mode=mode,
        root=Path(given("ROOT", ".")),
        out=temporary / f"kernelci-{environ.get('GITHUB_JOB', 'job')}-{secrets.token_hex(4)}",
        base=given("BASE"),
        head=given("HEAD", "HEAD"),
        kernels=_names(given("KERNELS")),
        seed=given("SEED"),
        part=given("PART"),
        parts=Path(given("PARTS", ".")),
        expect=_whole("expect", given("EXPECT", "0")),
        incomplete=given("INCOMPLETE"),
        attempt=_whole("attempt", environ.get("GITHUB_RUN_ATTEMPT") or "1"),
        max_dump_bytes=_whole("max-dump-mib", given("MAX_DUMP_MIB", "256")) * MIB,
    )


def _names(text: str) -> tuple[str, ...]:
    """Kernels, as a JSON array (from `kernelci plan`) or separated by white space."""
    if not text.startswith("["):
        return tuple(text.split())
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"input kernels: {error}", hint="a JSON array, or names separated by spaces") from error
    if not all(isinstance(name, str) for name in found):
        raise ConfigError("input kernels: not every entry is a name", hint="a JSON array of texts")
    return tuple(found)


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise ConfigError(f"input {name}: {text!r}", hint="a whole number")
    return int(text)


def act(inputs: Inputs) -> Report:
    """Do what the mode says; the report lies in `inputs.out`."""
    if inputs.mode == "merge":
        return merge(newest_parts(inputs.parts), inputs.out, inputs.expect, inputs.incomplete)
    request = Request(
        project=inputs.root,
        base=inputs.base,
        head=inputs.head,
        out=inputs.out,
        mode="compile" if inputs.mode == "compile" else "run",
        only=inputs.kernels,
        seed=inputs.seed,
        second=inputs.second,
    )
    if inputs.mode == "nightly":
        return _nightly(inputs, msgspec.structs.replace(request, tier="full"))
    if inputs.mode == "second":
        by = allowance.of_event(event.load(), inputs.head).sender.login
        return hear_change(msgspec.structs.replace(request, by=by))
    if inputs.base:
        return climb_change(request)
    climb(inputs.root, request, inputs.kernels)
    return results.read(inputs.out)


def _nightly(inputs: Inputs, request: Request) -> Report:
    """The full tier with the project as it lies there: trusted code. Raises ConfigError where there is a change."""
    if inputs.base:
        raise ConfigError("input base: mode nightly judges no change", hint="mode run judges one, by its base")
    climb(inputs.root, request, inputs.kernels)
    return results.read(inputs.out)


def allow(inputs: Inputs, environ: Mapping[str, str]) -> bool:
    """Whether the label of the event allows the change's own judge to be heard; nothing of the change is read."""
    from kernelci.hub import base
    from kernelci.hub.client import connect

    found = allowance.of_event(event.load(environ), inputs.head)
    client = connect(found.repository.full_name, environ)
    prefix = "" if inputs.root == Path() else f"{inputs.root}/"
    try:
        allowance.check_owner(client, base.options(client, found.pull_request.base.sha, prefix), found.sender.login)
    except allowance.NotAllowed as why:
        print(f"::notice title=kernelci::{_one_line(str(why)).replace('%', '%25')}")
        return False
    return True


def newest_parts(folder: Path) -> list[Path]:
    """The folders with a report; of a shard that was run again, only that of its last attempt."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in sorted(folder.glob("*/results.json")):
        name, _, attempt = path.parent.name.rpartition("-")
        key, number = (name, int(attempt)) if attempt.isdecimal() else (path.parent.name, 0)
        newest[key] = max(newest.get(key, (-1, path.parent)), (number, path.parent))
    return [path for _, path in newest.values()]


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """No line that is printed inside is a command to the runner: a kernel's output may look like one."""
    word = secrets.token_hex(16)
    print(f"::stop-commands::{word}", flush=True)
    try:
        yield
    finally:
        print(f"\n::{word}::", flush=True)


def show(report: Report, inputs: Inputs, environ: Mapping[str, str]) -> None:
    """The step's summary, and the annotations."""
    from kernelci.reporters import Context

    context = Context(folder="the artifacts of this run", page="summary")
    page = reporters.get("markdown").render(report, context)
    if summary := environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(page if isinstance(page, str) else page.decode())
    print(reporters.render("github", report), end="", flush=True)


def pack(inputs: Inputs) -> list[str]:
    """Lay out the two artifacts below `out`: `report` and `dumps`, which stays within its cap; what was left out.

    A part's dumps lie in its report, since both are only for the job that merges.
    """
    folder = inputs.out / "artifacts"
    dumps = folder / ("report" if inputs.part else "dumps")
    (folder / "report").mkdir(parents=True)
    shutil.copy(inputs.out / results.FILE_NAME, folder / "report")
    left_out, total = [], 0
    sources = [inputs.out / name for name in results.FOLDERS if not (inputs.out / name).is_symlink()]
    every = (path for source in sources if source.is_dir() for path in source.rglob("*"))
    files = [path for path in every if path.is_file() and not path.is_symlink()]
    for path in sorted(files, key=lambda path: (path.stat().st_size, path)):
        total += path.stat().st_size
        name = path.relative_to(inputs.out)
        if total > inputs.max_dump_bytes:
            left_out.append(str(name))
            continue
        (dumps / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, dumps / name)
    return left_out


def outputs(inputs: Inputs, code: int, report: Report | None) -> dict[str, str]:
    """What later steps and jobs read."""
    kind = f"{PART}-{inputs.part}" if inputs.part else REPORT
    folder = inputs.out / "artifacts"
    has_dumps = (folder / "dumps").is_dir()
    return {
        "exit-code": str(code),
        "outcome": str(report.outcome) if report else "BROKEN",
        "report": str(folder / "report") if report else "",
        "dumps": str(folder / "dumps") if has_dumps else "",
        "report-artifact": artifact_name(kind, inputs.attempt),
        "dumps-artifact": artifact_name(DUMPS, inputs.attempt),
    }


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Run the action; its last step exits with the code that this writes to `exit-code`, so uploads come first."""
    inputs = read(environ)
    if verb := _POSTING.get(inputs.mode):
        code = subprocess.run([sys.executable, "-P", "-s", "-m", "kernelci", verb], check=False).returncode
        return 0 if code == Superseded.exit_code else code  # a newer run posts; nobody has to look at this job
    if inputs.mode == "allow":
        _output(environ, {"allowed": str(allow(inputs, environ)).lower()})
        return 0
    report, code = None, RunnerBroken.exit_code
    os.environ |= {"TERM": "dumb", "NO_COLOR": "1"}  # a job's log shows no table that moves
    try:
        with silenced():
            report = act(inputs)
        code = 0 if inputs.mode == "second" else exit_code(report)  # what it says is no reason to fail, or to pass
        show(report, inputs, environ)
        if left_out := pack(inputs):
            print(f"::notice title=dumps left out::{len(left_out)} files beyond {inputs.max_dump_bytes // MIB} MiB")
    except KernelciError as error:
        code = error.exit_code
        print(error.rendered(), file=sys.stderr)
        print(f"::error title=kernelci::{_one_line(error.message).replace('%', '%25')}")
    _output(environ, outputs(inputs, code, report))
    return 0


def _output(environ: Mapping[str, str], values: Mapping[str, str]) -> None:
    if path := environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={_one_line(value)}\n" for name, value in values.items())


def exit_code(report: Report) -> int:
    """The report's, but 0 for a change that touches no kernel, and 3 for one that waits for somebody's word."""
    change = report.change
    if change is not None and change.incomplete and report.exit_code == 0:
        return 3
    if change is not None and not report.kernels and not change.removed:
        return 0
    return report.exit_code


def _one_line(text: str) -> str:
    from kernelci import inert

    return inert.line(text, 1000)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelciError as error:
        print(error.rendered(), file=sys.stderr)
        sys.exit(error.exit_code)
