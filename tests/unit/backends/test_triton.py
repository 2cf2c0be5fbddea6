"""Triton without a GPU."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import example

FILE, _ = example("triton_scale.py")
X = {"shape": [64, 64], "dtype": "bfloat16"}


def job(entry: str, target: str = "sm_90a", offset: int = 0, **more: Any) -> dict[str, Any]:
    tensor = {**X, "offset": offset}
    return {"file": FILE, "entry": entry, "arguments": {"x": tensor, "y": tensor}, "target": target, **more}


JOBS = {
    "tma": job("scale"),
    "all configs": job("scale", all_configs=True),
    "unaligned": job("scale", offset=1),
    "sm_80": job("scale_with_device_descriptors", "sm_80"),
    "sm_100a": job("scale", "sm_100a"),
    "device descriptors": job("scale_with_device_descriptors"),
    "does not compile": job("does_not_compile"),
    "too large": job("too_large"),
    "needs data": job("needs_data"),
    "raises": job("raises"),
}


@pytest.fixture(scope="module")
def answers(build_all: Any) -> dict[str, dict[str, Any]]:
    return dict(zip(JOBS, build_all("triton", list(JOBS.values())), strict=True))


def test_leaves_every_level_of_the_compilation(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(build["files"])


def test_a_host_descriptor_becomes_tma(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert "UTMALDG" in build["files"]["sass"]


def test_knows_grid_and_block(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert ([4, 1, 1], [128, 1, 1]) == (build["grid"], build["block"])


def test_the_first_configuration_that_fits_is_built(answers: Any) -> None:
    (build,) = answers["tma"]["builds"]
    assert build["config"].startswith("ROWS=16, WHOLE=True")


def test_all_configurations_are_built_on_request(answers: Any) -> None:
    assert 2 == len(answers["all configs"]["builds"])


def test_a_configuration_that_does_not_fit_is_a_note(answers: Any) -> None:
    (note,) = answers["all configs"]["notes"]
    assert "ROWS: 2048" in note


def test_alignment_specialises_as_in_the_real_call(answers: Any) -> None:
    (build,) = answers["unaligned"]["builds"]
    assert "x: *bf16, y: *bf16, n: i32:16" in build["config"]


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_compiles_for_other_targets_in_the_same_process(answers: Any, target: str) -> None:
    (build,) = answers[target]["builds"]
    assert f".target {target}" in build["files"]["ptx"]


def test_device_descriptors_need_no_scratch_memory(answers: Any) -> None:
    (build,) = answers["device descriptors"]["builds"]
    assert "scale_on_device" == build["symbol"]


def test_a_compile_error_names_the_line(answers: Any) -> None:
    found = answers["does not compile"]
    assert ("CompileFailed", example("triton_scale.py", "- the error")) == (
        found["error"],
        (found["file"], found["line"]),
    )


def test_a_compile_error_has_tritons_message(answers: Any) -> None:
    assert "undefined is not defined" in answers["does not compile"]["message"]


def test_too_much_shared_memory_is_told_apart(answers: Any) -> None:
    assert "TooMuchShared" == answers["too large"]["error"]


def test_host_code_that_needs_data_is_named_with_its_line(answers: Any) -> None:
    found = answers["needs data"]
    assert ("NeedsData", example("triton_scale.py", "# the question")) == (
        found["error"],
        (found["file"], found["line"]),
    )


def test_an_exception_of_host_code_is_named_with_its_line(answers: Any) -> None:
    found = answers["raises"]
    assert ("ValueError: no such luck", example("triton_scale.py", "# the exception")[1]) == (
        found["message"],
        found["line"],
    )


def test_the_cache_gets_what_the_c_compiler_builds_where_a_kernel_first_runs(tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"  # enough for the linker; there is no driver to load it with
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(library)], check=True)
    environment = os.environ | {"TRITON_LIBCUDA_PATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    code = "from kernelci.backends import triton; triton.fill_cache()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert ["cuda_utils"] == [path.name.partition(".")[0] for path in (tmp_path / "cache").rglob("*.so")]


def test_without_the_drivers_library_the_cache_gets_nothing_more(tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_LIBCUDA_PATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    code = "from kernelci.backends import triton; triton.fill_cache()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert (0, []) == (done.returncode, [*(tmp_path / "cache").rglob("*.so")])
