"""CUDA C++ through cuda-core without a GPU."""

from typing import Any

import pytest

from .conftest import example

FILE, _ = example("cuda_scale.py")


def job(entry: str, target: str = "sm_90a") -> dict[str, Any]:
    tensor = {"shape": [64, 64], "dtype": "float32"}
    return {"file": FILE, "entry": entry, "arguments": {"x": tensor, "y": tensor}, "target": target}


JOBS = {
    "launch": job("by_launch"),
    "template": job("by_template"),
    "sm_80": job("by_launch", "sm_80"),
    "driver": job("by_driver"),
    "does not compile": job("does_not_compile"),
}


@pytest.fixture(scope="module")
def answers(build_all: Any) -> dict[str, dict[str, Any]]:
    return dict(zip(JOBS, build_all("cuda", list(JOBS.values())), strict=True))


def test_leaves_source_ptx_and_cubin(answers: Any) -> None:
    (build,) = answers["launch"]["builds"]
    assert {"cu", "ptx", "cubin"} <= set(build["files"])


def test_knows_the_launch(answers: Any) -> None:
    (build,) = answers["launch"]["builds"]
    assert ("scale", [16, 1, 1], [256, 1, 1]) == (build["symbol"], build["grid"], build["block"])


def test_a_template_is_found_under_its_name(answers: Any) -> None:
    (build,) = answers["template"]["builds"]
    assert ("twice<64>", [2, 3, 1], 512) == (build["config"], build["grid"], build["shared"])


def test_without_an_architecture_it_compiles_for_the_target(answers: Any) -> None:
    (build,) = answers["template"]["builds"]
    assert ".target sm_90a" in build["files"]["ptx"]


def test_a_launch_through_the_driver_is_seen(answers: Any) -> None:
    (build,) = answers["driver"]["builds"]
    assert ("described", [64, 1, 1]) == (build["symbol"], build["block"])


def test_compiles_for_another_target_in_the_same_process(answers: Any) -> None:
    (build,) = answers["sm_80"]["builds"]
    assert ".target sm_80" in build["files"]["ptx"]


def test_a_compile_error_names_the_line(answers: Any) -> None:
    found = answers["does not compile"]
    assert ("CompileFailed", 2, True) == (found["error"], found["line"], "nonsense" in found["message"])
