"""A workflow file, read as data: its triggers, jobs and steps, each with the line that it stands on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from kernelci.errors import ConfigError

MAX_BYTES = 2**20
_LINE = "__line__"


class Step(Struct, frozen=True):
    """One step: `uses` or `run`."""

    line: int
    uses: str
    run: str
    given: dict[str, Any]


class Job(Struct, frozen=True):
    """One job; `permissions` is None where the job says nothing."""

    name: str
    line: int
    runs_on: tuple[str, ...]
    permissions: Any
    uses: str
    secrets: Any
    steps: tuple[Step, ...]


class Workflow(Struct, frozen=True):
    """One file under .github/workflows, or an action (which has no triggers, and its steps in one job)."""

    path: str
    text: str
    triggers: frozenset[str]
    permissions: Any
    jobs: tuple[Job, ...]

    @property
    def steps(self) -> Iterator[tuple[Job, Step]]:
        """Every step with its job."""
        return ((job, step) for job in self.jobs for step in job.steps)


class _Loader(yaml.SafeLoader):
    """YAML as GitHub reads it: `on` is a word, and each mapping knows its line."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep=True)
        return {**found, _LINE: node.start_mark.line + 1}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(root: Path) -> list[Workflow]:
    """Every workflow and composite action of a repository. Raises ConfigError naming the file that can't be read."""
    return [parse(str(path.relative_to(root)), _text(path)) for path in paths(root)]


def paths(root: Path) -> list[Path]:
    """Where a repository's workflows and composite actions lie."""
    folder = root / ".github"
    found = [
        *(folder / "workflows").glob("*.y*ml"),
        *(folder / "actions").rglob("action.y*ml"),
        *root.glob("action.y*ml"),
    ]
    return sorted(found)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES or path.is_symlink():
            raise ConfigError(f"{path} is a link, or larger than {MAX_BYTES // 2**20} MiB")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read {path}: {error}") from error


def parse(path: str, text: str) -> Workflow:
    """A workflow from its text. Raises ConfigError."""
    try:
        found = yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} is no YAML: {error}") from error
    table = _table(found)
    jobs = tuple(_job(str(name), _table(job)) for name, job in _table(table.get("jobs")).items() if name != _LINE)
    if runs := _table(table.get("runs")):
        jobs = (*jobs, _job("runs", runs))
    return Workflow(path, text, _triggers(table.get("on")), _plain(table.get("permissions")), jobs)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    return {key: each for key, each in value.items() if key != _LINE} if isinstance(value, dict) else value


def _triggers(value: Any) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else list(_plain(_table(value)))
    return frozenset(map(str, names))


def _job(name: str, job: dict[str, Any]) -> Job:
    steps = tuple(_step(_table(step)) for step in job.get("steps") or () if isinstance(step, dict))
    return Job(
        name,
        job.get(_LINE, 1),
        _labels(job.get("runs-on")),
        _plain(job.get("permissions")),
        str(job.get("uses") or ""),
        _plain(job.get("secrets")),
        steps,
    )


def _labels(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        return _labels(value.get("labels") or value.get("group"))
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _step(step: dict[str, Any]) -> Step:
    return Step(step.get(_LINE, 1), str(step.get("uses") or ""), str(step.get("run") or ""), _table(step.get("with")))
