"""CuTe DSL without a GPU."""

from typing import Any

import pytest

from .conftest import example

FILE, _ = example("cutedsl_scale.py")


def job(entry: str, target: str = "sm_90a") -> dict[str, Any]:
    tensor = {"shape": [64, 64], "dtype": "bfloat16"}
    return {"file": FILE, "entry": entry, "arguments": {"x": tensor, "y": tensor}, "target": target}


JOBS = {
    "compiled": job("through_compile"),
    "direct": job("called_directly"),
    "sm_80": job("called_directly", "sm_80"),
    "tma": job("through_tma"),
    "does not compile": job("does_not_compile"),
}


@pytest.fixture(scope="module")
def answers(build_all: Any) -> dict[str, dict[str, Any]]:
    return dict(zip(JOBS, build_all("cutedsl", list(JOBS.values())), strict=True))


@pytest.mark.parametrize("way", ["compiled", "direct"])
def test_leaves_ptx_and_cubin(answers: Any, way: str) -> None:
    (build,) = answers[way]["builds"]
    assert {"mlir", "ptx", "cubin"} <= set(build["files"])


def test_knows_the_block(answers: Any) -> None:
    (build,) = answers["compiled"]["builds"]
    assert [128, 1, 1] == build["block"]


def test_a_host_descriptor_becomes_tma(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert "UTMASTG" in build["files"]["sass"]


def test_knows_the_dynamic_shared_memory(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert 64 * 64 * 2 == build["shared"]


def test_compiles_for_another_target_in_the_same_process(answers: Any) -> None:
    (build,) = answers["sm_80"]["builds"]
    assert ".target sm_80" in build["files"]["ptx"]


def test_a_compile_error_names_the_line(answers: Any) -> None:
    found = answers["does not compile"]
    assert ("CompileFailed", example("cutedsl_scale.py", "- the error")) == (
        found["error"],
        (found["file"], found["line"]),
    )
