"""Options: default < [tool.kernelci] in pyproject.toml (or kernelci.toml) < KERNELCI_* < flag, in one table."""

import datetime
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Struct

from kernelci.errors import ConfigError

FILES = ("kernelci.toml", "pyproject.toml")
"""Where options stand: in one of them, and not in both."""
Positive = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9](?:-?[A-Za-z0-9_]){0,60}$")]


class ContextSource(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[[tool.kernelci.context]]` table: something that `kernelci context` indexes."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    kind: Literal["package", "git", "web", "folder", "kernels"]
    where: Annotated[str, Meta(max_length=2000)] = ""
    """Packages (separated by commas), a git URL, a page's URL, or a folder; nothing for the project's own kernels."""
    dsl: Annotated[str, Meta(pattern=r"^[a-z0-9-]{0,32}$")] = ""
    """cutedsl, tilelang, triton, ptx, cuda, …; empty for what concerns all."""
    ref: Annotated[str, Meta(pattern=r"^[^-\s][^\s]{0,199}$|^$")] = ""
    """git: a commit, tag or branch; empty: the remote's own default."""
    paths: tuple[str, ...] = ()
    """Only files that match one of these wildcards (`*` crosses slashes); empty: all that can be read."""
    exclude: tuple[str, ...] = ()
    license: Annotated[str, Meta(max_length=200)] = ""
    """Overrides what the source says of itself."""


Share = Annotated[float, Meta(ge=0, lt=1)]
Wildcard = Annotated[str, Meta(min_length=1, max_length=300)]
Said = Annotated[str, Meta(pattern=r"\S", max_length=300)]
Label = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.:+-]{0,99}$")]


class GateRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[[tool.kernelci.gate.rule]]` table: what holds for some kernels or cases; a later rule overrides."""

    kernel: Annotated[Wildcard, Meta(description="kernels, for example `softmax/*`")] = "*"
    case: Annotated[Wildcard, Meta(description="cases, for example `*-fp16`")] = "*"
    floor: Annotated[Share | None, Meta(description="practical floor; left out: as before")] = None
    end_to_end_floor: Annotated[Share | None, Meta(description="that of the call end to end")] = None
    blocks: Annotated[bool | None, Meta(description="whether SLOWER fails the kernel")] = None


class Waiver(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[[tool.kernelci.gate.waiver]]` table: a reviewed word that something may be slower, for a while."""

    kernel: Annotated[Wildcard, Meta(description="kernels")]
    case: Annotated[Wildcard, Meta(description="cases")] = "*"
    owner: Annotated[Said, Meta(description="who answers for it")]
    reason: Annotated[Said, Meta(description="why it may be slower")]
    expires: Annotated[datetime.date, Meta(description="the last day on which it holds, for example 2027-01-31")]


class GateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[tool.kernelci.gate]`: when a time that is slower than the base's fails its kernel."""

    floor: Annotated[Share, Meta(description="changes of time up to this share don't matter")] = 0.005
    end_to_end_floor: Annotated[Share, Meta(description="the same for the call end to end, host included")] = 0.05
    blocks: Annotated[bool, Meta(description="whether SLOWER fails the kernel, or is only shown")] = True
    rule: Annotated[tuple[GateRule, ...], Meta(description="exceptions for some kernels or cases")] = ()
    waiver: Annotated[tuple[Waiver, ...], Meta(description="slower times that somebody answers for")] = ()


class RunnerOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[tool.kernelci.runner]`: a GPU host that takes jobs from GitHub. It stands in a file of the host, never in a
    repository."""

    repository: Annotated[
        str,
        Meta(
            pattern=r"^$|^[A-Za-z0-9][\w.-]{0,99}(/[A-Za-z0-9_.][\w.-]{0,99})?$",
            description="where runners are registered: `OWNER/NAME`, or an organization",
        ),
    ] = ""
    group: Annotated[AtLeastOne, Meta(description="number of the runner group; 1 is the default group")] = 1
    labels: Annotated[tuple[Label, ...], Meta(max_length=40, description="labels besides those of the hardware")] = ()
    version: Annotated[
        str, Meta(pattern=r"^$|^\d{1,4}(\.\d{1,6}){2}$", description="version of GitHub's runner that setup installs")
    ] = ""
    sha256: Annotated[
        str, Meta(pattern=r"^$|^[0-9a-f]{64}$", description="SHA-256 of its archive; GitHub's release notes name it")
    ] = ""
    installation: Annotated[str, Meta(description="folder that GitHub's runner lies in")] = (
        "/opt/kernelci-runner/actions-runner"
    )
    state: Annotated[str, Meta(description="folder of jobs, caches and records")] = "/var/lib/kernelci-runner"
    broker: Annotated[str, Meta(description="socket of the broker, which holds the token")] = (
        "/run/kernelci-broker/socket"
    )
    host_user: Annotated[str, Meta(description="user of the loop: the only one that the broker serves")] = "root"
    user: Annotated[
        str, Meta(description="user that jobs run as, by name or number; empty: that of the loop, which contains less")
    ] = "kernelci-job"
    app: Annotated[int, Meta(ge=0, description="number of the GitHub App that the broker speaks for; 0: a token")] = 0
    app_installation: Annotated[int, Meta(ge=0, description="number of its installation")] = 0
    repositories: Annotated[
        tuple[Wildcard, ...], Meta(description="repositories whose jobs are admitted; empty: `repository`")
    ] = ()
    workflows: Annotated[
        tuple[Wildcard, ...],
        Meta(description="workflow files that are admitted, as `OWNER/NAME/PATH@REF`; none unless named"),
    ] = ()
    refs: Annotated[tuple[Wildcard, ...], Meta(description="refs whose jobs are admitted")] = (
        "refs/heads/main",
        "refs/pull/*/merge",
    )
    events: Annotated[tuple[Wildcard, ...], Meta(description="events whose jobs are admitted")] = (
        "pull_request",
        "push",
        "schedule",
        "workflow_dispatch",
    )
    actors: Annotated[
        tuple[Wildcard, ...], Meta(description="who may set a job off: both the actor and who ran it again")
    ] = ("*",)
    trusted_refs: Annotated[
        tuple[Wildcard, ...], Meta(description="refs whose jobs, but for those of pull requests, fill the base's cache")
    ] = ("refs/heads/main",)
    time_limit_s: Annotated[Seconds, Meta(description="a job is killed after so long")] = 7200.0
    stop_grace_s: Annotated[Seconds, Meta(description="what a killed job's runner gets to tell GitHub")] = 10.0
    failures: Annotated[AtLeastOne, Meta(description="failures of the host in a row that quarantine it")] = 3
    retry_s: Annotated[Seconds, Meta(description="wait after a failure; twice as long after each further one")] = 30.0
    disk_free_bytes: Annotated[
        int, Meta(ge=0, description="disk space below which no job is taken, and caches are dropped")
    ] = 20 * 2**30
    gpu_memory_used_bytes: Annotated[
        int, Meta(ge=0, description="GPU memory that may be in use between jobs; the driver takes some itself")
    ] = 2 * 2**30
    compute_mode: Annotated[
        Literal["", "default", "exclusive", "prohibited"],
        Meta(description="compute mode that each GPU must have; empty: that at the start of the loop"),
    ] = "default"
    max_skew_s: Annotated[Seconds, Meta(description="largest difference between this host's clock and GitHub's")] = 60.0
    pull_caches: Annotated[int, Meta(ge=0, description="pull requests whose caches are kept")] = 8
    environment: Annotated[
        tuple[str, ...], Meta(description="further environment variables of the loop that jobs see")
    ] = ()
    probe: Annotated[
        bool, Meta(description="whether a known sum is computed on each GPU before the host offers itself")
    ] = True


class BudgetOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[tool.kernelci.budget]`: how much GPU time the runs of one pull request may take; the base's holds."""

    gpu_minutes: Annotated[
        float, Meta(ge=0, le=1e6, description="minutes of GPU jobs, all runs of a pull request together; 0: any number")
    ] = 0.0
    runs: Annotated[
        int, Meta(ge=0, le=10**6, description="runs that reach a GPU, attempts included; 0: any number")
    ] = 0


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every option with its default. A new one is a new line here; docs/configuration.md is generated from it."""

    references: Annotated[str, Meta(description="folder of the references")] = "references"
    kernels: Annotated[str, Meta(description="folder of the kernels")] = "kernels"
    rungs: Annotated[str, Meta(description="folder of this repository's own rungs")] = "rungs"
    out: Annotated[str, Meta(description="folder that a run leaves its report in")] = "kernelci-report"
    cache: Annotated[str, Meta(description="folder for compiled kernels; empty: the user's cache folder")] = ""
    targets: Annotated[tuple[str, ...], Meta(description="targets that kernels without a list of their own get")] = (
        "sm_80",
        "sm_90a",
        "sm_100a",
    )
    jobs: Annotated[int, Meta(ge=0, description="compile processes at once; 0: one per core")] = 0
    lanes: Annotated[int, Meta(ge=0, description="kernels that climb at once; 0: 4 on a GPU, 2 without")] = 0
    gpus: Annotated[
        str,
        Meta(
            pattern=r"^(all|[1-9]\d{0,2}|(\d{1,3},)+(\d{1,3})?)$",
            description="GPUs that kernels are spread over: how many, `all`, or their numbers: `0,2` (`1,` for one)",
        ),
    ] = "1"
    seeds: Annotated[AtLeastOne, Meta(description="normal draws per check case")] = 3
    compile_timeout_s: Annotated[Seconds, Meta(description="deadline for one kernel on one target")] = 120.0
    load_timeout_s: Annotated[Seconds, Meta(description="deadline for importing a kernel file")] = 60.0
    call_timeout_s: Annotated[
        Seconds, Meta(description="deadline for one call on a GPU, first compilation included")
    ] = 60.0
    sanitize_timeout_s: Annotated[
        Seconds, Meta(description="deadline for one tool of the sanitize rung, over all its calls")
    ] = 120.0
    baselines: Annotated[
        bool, Meta(description="whether what a user would otherwise call is timed too, once for each reference")
    ] = True
    profile: Annotated[
        str,
        Meta(
            pattern=r"^[\w.*?/\[\]+=-]{1,200}$",
            description="bench rows that Nsight Compute looks into: `changed` against base, `all`, `none`, or a "
            "wildcard of kernels or cases",
        ),
    ] = "changed"
    profile_rows: Annotated[
        AtLeastOne, Meta(description="rows of a kernel that are profiled at most, slowest first")
    ] = 4
    profile_timeout_s: Annotated[
        Seconds, Meta(description="deadline for one row under Nsight Compute, compilation included")
    ] = 120.0
    interpreter_timeout_s: Annotated[Seconds, Meta(description="deadline for one call in the CPU interpreter")] = 60.0
    interpreter_elements: Annotated[
        AtLeastOne, Meta(description="largest case for the CPU interpreter, in elements of inputs and outputs")
    ] = 2**19
    interpreter_rows: Annotated[
        AtLeastOne,
        Meta(
            description="largest case for the CPU interpreter, in rows of inputs and outputs: it takes 1.5 ms for each "
            "program, which mostly has a row, and a call has `interpreter_timeout_s`"
        ),
    ] = 2**13
    interpreter_flops: Annotated[Positive, Meta(description="largest case for the CPU interpreter, in FLOP")] = 1e8
    case_elements: Annotated[
        AtLeastOne, Meta(description="largest case of the correctness rung on a GPU, in output elements")
    ] = 2**24
    case_flops: Annotated[Positive, Meta(description="largest case of the correctness rung on a GPU, in FLOP")] = 1e11
    roofline_stop: Annotated[
        float, Meta(gt=0, le=1, description="share of the ceiling that binds from which on the roofline says stop")
    ] = 0.9
    memory_bytes: Annotated[AtLeastOne, Meta(description="host memory that a candidate may use")] = 8 * 2**30
    ssh: Annotated[
        str,
        Meta(min_length=1, max_length=1000, description="program, with its arguments, that `run --on` connects with"),
    ] = "ssh"
    on_command: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="what starts kernelci on the machine of `run --on`, for example `/opt/kernelci/bin/kernelci`",
        ),
    ] = "kernelci"
    owners: Annotated[
        tuple[Login, ...],
        Meta(
            description="who may have a change's own judge run as second referee; empty: whoever maintains or "
            "administers the repository"
        ),
    ] = ()
    second_timeout_s: Annotated[Seconds, Meta(description="deadline for the second referee, all kernels together")] = (
        1800.0
    )
    gate: Annotated[GateOptions, Meta(description="when a slower time blocks; see below")] = GateOptions()
    runner: Annotated[RunnerOptions, Meta(description="a GPU host that takes jobs; see below")] = RunnerOptions()
    budget: Annotated[BudgetOptions, Meta(description="GPU time of one pull request; see below")] = BudgetOptions()
    context: Annotated[
        tuple[ContextSource, ...],
        Meta(description="what agents can look up; empty: the installed DSLs and own kernels"),
    ] = ()


def names() -> tuple[str, ...]:
    """Every option."""
    return tuple(field.name for field in msgspec.structs.fields(Config))


def load(root: Path, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None) -> Config:
    """The options of the project at `root`. Raises ConfigError naming the source and the key that is wrong."""
    merged: dict[str, Any] = {}
    for source, values in (
        _from_files(root),
        ("environment", _from_environment(os.environ if environ is None else environ)),
        ("command line", {key: value for key, value in (flags or {}).items() if value is not None}),
    ):
        merged |= values
        _convert(source, merged)
    return _convert("", merged)


def _convert(source: str, values: Mapping[str, Any]) -> Config:
    try:
        return msgspec.convert(values, Config, strict=source != "environment")
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {error}", hint=_meaning(str(error))) from error


def _meaning(said: str) -> str:
    """What the option takes that a message of msgspec's names, or nothing."""
    key = re.search(r"`\$\.(\w+)`", said)
    known = get_type_hints(Config, include_extras=True)
    told = [one.description for one in getattr(known.get(key[1]), "__metadata__", ())] if key else []
    return f"{key[1]}: {told[0]}" if key and told else ""


def _from_files(root: Path) -> tuple[str, dict[str, Any]]:
    own, shared = (root / name for name in FILES)
    table = in_pyproject(root)
    if own.is_file() and table:
        raise ConfigError(
            f"options stand in {own.name} and in {shared.name} [tool.kernelci]",
            hint="keep one of them, and move the rest",
        )
    if own.is_file():
        return own.name, _read(own)
    return ("defaults", {}) if table is None else (f"{shared.name} [tool.kernelci]", table)


def in_pyproject(root: Path) -> dict[str, Any] | None:
    """[tool.kernelci] of a project's pyproject.toml, empty where it has none; None without that file. Raises
    ConfigError."""
    path = root / FILES[1]
    if not path.is_file():
        return None
    table = _read(path).get("tool", {})
    own = table.get("kernelci", {}) if isinstance(table, dict) else {}
    if not isinstance(own, dict):
        raise ConfigError(f"{path.name}: tool.kernelci is no table")
    return own


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}", hint="correct the file: it must be readable, and TOML") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(Config):
        text = environ.get(f"KERNELCI_{field.name.upper()}")
        if text is not None:
            found[field.name] = _parsed(field.name, text)
    return found


def _parsed(name: str, text: str) -> Any:
    """Text of an environment variable as the option's type: lists are separated by commas."""
    default = getattr(Config(), name)
    if isinstance(default, Struct):
        raise ConfigError(f"KERNELCI_{name.upper()}: a table stands in a file", hint="set it in pyproject.toml")
    try:
        if isinstance(default, bool):
            return msgspec.convert(text, bool, strict=False)
        if isinstance(default, tuple):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return type(default)(text)
    except ValueError as error:
        raise ConfigError(f"KERNELCI_{name.upper()}={text!r}: {error}") from error


def cache_folder(config: Config) -> Path:
    """Where compiled kernels are kept between runs."""
    if config.cache:
        return Path(config.cache).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kernelci"
