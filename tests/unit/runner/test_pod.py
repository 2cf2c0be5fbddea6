"""The same on Kubernetes: the hook that admits a job in a pod, and the values of the chart."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelci.resources import folder

HOOK = folder("runner") / "pod-started.sh"
VALUES = folder("runner") / "arc-values.yaml"
# Top-level keys of the chart gha-runner-scale-set 0.14.2 (its values.yaml; it has no schema).
KEYS = {
    "annotations", "containerMode", "controllerServiceAccount", "githubConfigSecret", "githubConfigUrl",
    "githubServerTLS", "keyVault", "labels", "listenerMetrics", "listenerTemplate", "maxRunners", "minRunners",
    "namespaceOverride", "proxy", "resourceMeta", "runnerGroup", "runnerScaleSetName", "scaleSetLabels", "template",
}  # fmt: skip


@pytest.fixture
def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(VALUES.read_text().replace("OWNER/NAME", "octo-org/kernels"))
    return found


@pytest.fixture
def runner(values: dict[str, Any]) -> dict[str, Any]:
    (found,) = values["template"]["spec"]["containers"]
    assert "runner" == found["name"]  # the chart looks for this name
    return dict(found)


def _hook(
    tmp_path: Path, runner: dict[str, Any], job: dict[str, str], used: str = "0", ecc: str = "0"
) -> "subprocess.CompletedProcess[str]":
    """The hook under a worker that would go on whatever it says."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/bash\ncase "$*" in *memory*) printf "%b\\n" "{used}";; *) printf "%b\\n" "{ecc}";; esac\n')
    smi.chmod(0o755)
    env = {each["name"]: each["value"] for each in runner["env"]} | job
    env |= {"PATH": f"{tmp_path}:/usr/bin:/bin", "KERNELCI_LAST_WORDS_S": "0"}
    worker = f"bash -e {HOOK}; echo with $?; echo always"
    return subprocess.run(["bash", "-c", worker], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_job_of_a_pull_request_is_taken(tmp_path: Path, runner: dict[str, Any], pull: dict[str, str]) -> None:
    told = _hook(tmp_path, runner, pull)

    assert ["kernelci: this pool takes the job", "with 0", "always"] == told.stdout.splitlines(), told.stderr


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"GITHUB_REPOSITORY": "octo-org/other"}, "repository 'octo-org/other' is not admitted here"),
        ({"GITHUB_REF": "refs/heads/main"}, "ref 'refs/heads/main' is not admitted here"),
        ({"GITHUB_WORKFLOW_REF": ""}, "workflow '' is not admitted here"),
        ({"GITHUB_EVENT_NAME": "push"}, "event 'push' is not admitted here"),
    ],
)
def test_any_other_ends_its_worker(
    tmp_path: Path, runner: dict[str, Any], pull: dict[str, str], changes: dict[str, str], why: str
) -> None:
    told = _hook(tmp_path, runner, pull | changes)

    assert (-9, [f"::error title=not taken by this pool::{why}"]) == (told.returncode, told.stdout.splitlines())


@pytest.mark.parametrize(
    ("used", "ecc", "why"),
    [
        ("0\\n9000", "0", "9000 MiB of a GPU's memory are in use, and no job runs"),
        ("Unknown Error", "0", "Unknown MiB of a GPU's memory are in use, and no job runs"),
        ("512", "0\\n3", "a GPU has uncorrected memory errors"),
    ],
)
def test_a_gpu_that_is_not_free(
    tmp_path: Path, runner: dict[str, Any], pull: dict[str, str], used: str, ecc: str, why: str
) -> None:
    told = _hook(tmp_path, runner, pull, used, ecc)

    assert (-9, f"::error title=not taken by this pool::{why}\n") == (told.returncode, told.stdout)


def test_the_values_are_those_of_the_chart(values: dict[str, Any], runner: dict[str, Any]) -> None:
    assert set() == set(values) - KEYS
    assert {"self-hosted", "gpu", "ephemeral"} <= set(values["scaleSetLabels"])
    mounts = {each["name"]: each["mountPath"] for each in runner["volumeMounts"]}
    hook = next(each["value"] for each in runner["env"] if each["name"] == "ACTIONS_RUNNER_HOOK_JOB_STARTED")
    assert f"{mounts['hooks']}/{HOOK.name}" == hook
    assert set(mounts) == {each["name"] for each in values["template"]["spec"]["volumes"]}


def test_the_hook_knows_every_variable_that_the_values_set(runner: dict[str, Any]) -> None:
    named = {each["name"] for each in runner["env"] if each["name"].startswith("KERNELCI_")}

    assert set() == named - set(re.findall(r"KERNELCI_\w+", HOOK.read_text()))
