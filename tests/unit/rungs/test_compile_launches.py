"""What compiling shows of a launch: grids that no GPU takes, offsets that wrap, streams that are not the caller's."""

import shutil
from pathlib import Path

import pytest

from kernelci import climbing
from kernelci.model import RungResult
from kernelci.reasons import Outcome

BAD = Path(__file__).parents[2] / "bad_kernels"
MEMBERS = {
    "m01_offset_in_32_bits": "far_copy", "m01_clean": "far_copy", "m03_rows_on_the_second_axis": "softmax",
    "m03_clean": "softmax", "m30_legacy_stream": "softmax_timed", "sys_exit": "softmax",
}  # fmt: skip


@pytest.fixture(scope="module")
def rungs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, RungResult]]:
    """Members of the corpus compiled for one target, rung by rung."""
    root = tmp_path_factory.mktemp("launches")
    (root / "kernelci.toml").write_text(f'cache = "{root / "cache"}"\n')
    for stem, reference in MEMBERS.items():
        for folder in ("references", f"kernels/{reference}"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(BAD / "references" / f"{reference}.py", root / "references")
        shutil.copy(BAD / f"{stem}.py", root / "kernels" / reference)
    report, _ = climbing.climb(root, ("compile",), targets=("sm_80",), out=root / "out")
    return {kernel.name.partition("/")[2]: {one.rung: one for one in kernel.rungs} for kernel in report.kernels}


def test_a_grid_that_is_too_long_for_one_case_fails_with_that_case(rungs: dict[str, dict[str, RungResult]]) -> None:
    found = rungs["m03_rows_on_the_second_axis"]["compile"]
    assert found.finding is not None
    assert (Outcome.FAILED, "launch-limit") == (found.outcome, found.finding.reason)
    assert "softmax_tile on 70001x4-fp32: the grid has 70,001 along y, and 65,535 are the most" == found.finding.message


def test_an_offset_in_32_bits_is_said_with_its_line(rungs: dict[str, dict[str, RungResult]]) -> None:
    found = rungs["m01_offset_in_32_bits"]["compile"]
    said = [note for row in found.rows for note in row.notes if "32 bits" in note]
    assert (Outcome.PASSED, True) == (found.outcome, said[0].startswith("line 28 of m01_offset_in_32_bits.py: "))


@pytest.mark.parametrize("stem", ["m01_clean", "m03_clean"])
def test_clean_twins_have_nothing_to_say(rungs: dict[str, dict[str, RungResult]], stem: str) -> None:
    found = rungs[stem]["compile"]
    assert (Outcome.PASSED, []) == (found.outcome, [note for row in found.rows for note in row.notes[1:]])


def test_another_stream_than_the_callers_is_said(rungs: dict[str, dict[str, RungResult]]) -> None:
    notes = {stem: [note for note in found["precheck"].notes if "stream" in note] for stem, found in rungs.items()}
    (said,) = notes.pop("m30_legacy_stream")
    assert said.endswith("default_stream is not the caller's stream: torch.cuda.current_stream() is")
    assert {()} == set(map(tuple, notes.values()))


def test_host_code_that_ends_its_process_for_some_case_compiles(rungs: dict[str, dict[str, RungResult]]) -> None:
    assert Outcome.PASSED == rungs["sys_exit"]["compile"].outcome
