"""TileLang without a GPU."""

import tempfile
from typing import Any

import pytest

from .conftest import example

FILE, _ = example("tilelang_scale.py")


def job(entry: str, target: str = "sm_90a") -> dict[str, Any]:
    arguments = {"x": {"shape": [256, 1024], "dtype": "bfloat16"}, "y": {"shape": [256, 256], "dtype": "bfloat16"}}
    return {"file": FILE, "entry": entry, "arguments": arguments, "target": target}


JOBS = {
    "sm_90a": job("multiply"),
    "sm_80": job("multiply", "sm_80"),
    "too large": job("too_large"),
    "does not compile": job("does_not_compile"),
}


@pytest.fixture(scope="module")
def answers(build_all: Any) -> dict[str, dict[str, Any]]:
    return dict(zip(JOBS, build_all("tilelang", list(JOBS.values())), strict=True))


def test_leaves_source_ptx_and_cubin(answers: Any) -> None:
    (build,) = answers["sm_90a"]["builds"]
    assert {"tir", "cu", "ptx", "cubin"} <= set(build["files"])


def test_uses_the_targets_own_instructions(answers: Any) -> None:
    (build,) = answers["sm_90a"]["builds"]
    assert "HGMMA" in build["files"]["sass"]


def test_the_host_code_describes_tensors_to_tma(answers: Any) -> None:
    (build,) = answers["sm_90a"]["builds"]
    assert "UTMALDG" in build["files"]["sass"]


def test_knows_the_dynamic_shared_memory(answers: Any) -> None:
    (build,) = answers["sm_80"]["builds"]
    assert 2 * 2 * 64 * 64 * 2 == build["shared"]


def test_compiles_for_another_target_in_the_same_process(answers: Any) -> None:
    (build,) = answers["sm_80"]["builds"]
    assert ".target sm_80" in build["files"]["ptx"]


def test_no_temporary_name_gets_into_the_code(answers: Any) -> None:
    (build,) = answers["sm_90a"]["builds"]
    assert f"{tempfile.gettempdir()}/tmp" not in build["files"]["ptx"]


def test_too_much_shared_memory_is_told_apart(answers: Any) -> None:
    assert "TooMuchShared" == answers["too large"]["error"]


def test_a_compile_error_names_the_line(answers: Any) -> None:
    found = answers["does not compile"]
    assert ("CompileFailed", example("tilelang_scale.py", "# the error")[1]) == (found["error"], found["line"])
