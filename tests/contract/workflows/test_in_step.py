"""action.yml, its documentation, the code behind it and the workflows that use it say the same."""

import re
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelci.cli import cli
from kernelci.hub import action, init, workflow

REPOSITORY = Path(__file__).resolve().parents[3]
ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text())
PAGE = (REPOSITORY / "docs" / "action.md").read_text()
WORKFLOWS = [file for file in workflow.read(REPOSITORY) if file.path != "action.yml"]


def test_inputs_are_documented_with_their_defaults() -> None:
    expected = {name: given["default"] for name, given in ACTION["inputs"].items()}
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:`([^`]*)`)? *\|", PAGE, re.MULTILINE)
    assert expected == dict(rows)


def test_outputs_are_documented() -> None:
    line = re.search(r"^Outputs: (.*?)\. ", PAGE, re.MULTILINE | re.DOTALL)
    assert line is not None
    assert list(ACTION["outputs"]) == re.findall(r"`([a-z-]+)`", line[1])


def test_every_input_reaches_the_code() -> None:
    steps = ACTION["runs"]["steps"]
    passed = {value for step in steps for value in step.get("env", {}).values()}
    assert set(ACTION["inputs"]) == {name for value in passed for name in re.findall(r"inputs\.([a-z-]+)", value)}
    names = {name for step in steps for name in step.get("env", {}) if name.startswith("KERNELCI_ACTION_")}
    code = "".join((REPOSITORY / "kernelci" / "hub" / name).read_text() for name in ("action.py", "installing.py"))
    used = set(re.findall(r'given\("([A-Z_]+)"', code)) | {
        name.removeprefix("KERNELCI_ACTION_") for name in re.findall(r"KERNELCI_ACTION_[A-Z_]+", code)
    }
    shell = "".join(step.get("run", "") for step in steps)
    assert set() == {name for name in names if name.removeprefix("KERNELCI_ACTION_") not in used and name not in shell}


def test_modes_are_those_of_the_code() -> None:
    described = ACTION["inputs"]["mode"]["description"]
    assert [] == [mode for mode in action.MODES if not re.search(rf"\b{mode}\b", described) or f"`{mode}`" not in PAGE]


def _uses() -> list[tuple[str, dict[str, Any]]]:
    return [(file.path, step.given) for file in WORKFLOWS for _, step in file.steps if step.uses.startswith("./")]


@pytest.mark.parametrize(("path", "given"), _uses())
def test_workflows_give_inputs_that_there_are(path: str, given: dict[str, Any]) -> None:
    assert set() == set(given) - {"__line__"} - set(ACTION["inputs"])
    assert given["mode"] in action.MODES


@pytest.mark.parametrize(
    "text", [PAGE, (REPOSITORY / "README.md").read_text(), (REPOSITORY / "action.yml").read_text()]
)
def test_every_verb_that_is_named_exists(text: str) -> None:
    verbs = set(re.findall(r"`kernelci ([a-z]+)", text)) | set(
        re.findall(r"^ {4}(?:\S+/)?kernelci ([a-z]+)", text, re.M)
    )
    assert set() == verbs - set(cli.commands)


def test_the_verbs_of_the_hub_are_documented() -> None:
    wanted = {"init", "judge", "plan", "merge", "audit", "rehearse", "feedback"}
    assert set() == {verb for verb in wanted if f"`kernelci {verb}" not in PAGE}


def test_the_modes_that_climb_are_those_of_the_ladder() -> None:
    from kernelci.hub.request import Mode

    assert set(typing.get_args(Mode)) < set(action.MODES)


WRITTEN = [Path(name).stem for name in init.FILES if name.startswith(".github/workflows/")]
RANK = {"none": 0, "read": 1, "write": 2}


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that has just adopted kernelci."""
    folder = tmp_path_factory.mktemp("adopted")
    init.create(folder, "octo/kernelci@" + "0123456789" * 4)
    return folder


def _jobs(root: Path, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((root / ".github" / "workflows" / f"{name}.yml").read_text())["jobs"])


def _called(adopted: Path, name: str) -> tuple[dict[str, Any], str]:
    """The one job of a workflow that init writes, and the name of the workflow here that it calls."""
    (caller,) = _jobs(adopted, name).values()
    return caller, Path(caller["uses"].partition("@")[0]).stem


@pytest.mark.parametrize("name", WRITTEN)
def test_what_init_writes_grants_what_the_called_jobs_need_and_no_more(name: str, adopted: Path) -> None:
    """GitHub refuses a run at its start where a called job asks for more than its caller was given."""
    caller, called = _called(adopted, name)
    needed: dict[str, str] = {}
    for job in _jobs(REPOSITORY, called).values():
        for scope, level in job["permissions"].items():
            needed[scope] = max(needed.get(scope, "none"), level, key=RANK.__getitem__)
    assert needed == caller["permissions"]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_init_writes_gives_inputs_that_the_called_workflow_has(name: str, adopted: Path) -> None:
    caller, called = _called(adopted, name)
    found = yaml.safe_load((REPOSITORY / ".github" / "workflows" / f"{called}.yml").read_text())
    inputs = found[True]["workflow_call"]["inputs"]  # YAML 1.1 reads `on` as true
    assert set() == set(caller["with"]) - set(inputs)
    kinds = {"string": str, "boolean": bool, "number": int}
    given = {key: value for key, value in caller["with"].items() if "${{" not in str(value)}
    assert [] == [key for key, value in given.items() if not isinstance(value, kinds[inputs[key]["type"]])]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_init_writes_is_set_off_by_what_ours_is(name: str, adopted: Path) -> None:
    ours, theirs = (
        next(file for file in workflow.read(root) if file.path == f".github/workflows/{name}.yml").triggers
        for root in (REPOSITORY, adopted)
    )
    by_hand = {"workflow_dispatch"}
    assert ours - {"workflow_call"} - by_hand == theirs - by_hand


def test_an_action_is_pinned_alike_wherever_it_is_used() -> None:
    texts = [file.text for file in workflow.read(REPOSITORY)]
    pins = re.findall(r"uses: ((?!\./)[^@\s]+)@([0-9a-f]{40}) # (v[0-9.]+)$", "\n".join(texts), re.MULTILINE)
    used = {step.uses for file in workflow.read(REPOSITORY) for _, step in file.steps if not step.uses.startswith("./")}
    assert {f"{name}@{commit}" for name, commit, _ in pins} == used - {""}
    assert len({name for name, _, _ in pins}) == len(set(pins))


def test_the_job_that_runs_kernels_at_night_can_only_read() -> None:
    jobs = _jobs(REPOSITORY, "nightly")
    climbing = {name for name, job in jobs.items() if "fromJSON" in job["runs-on"]}
    assert ({"climb"}, {"contents": "read"}) == (climbing, jobs["climb"]["permissions"])
