"""How stops are worded for a report."""

from pathlib import Path

import pytest

from kernelci import wording
from kernelci.catalog import Kernel
from kernelci.errors import Stop
from kernelci.reference import Case

KERNEL = Kernel("softmax/fast", Path("/project/kernels/softmax/fast.py"), None, "")
CANDIDATES = "/tmp/own/kernelci-kernel-17/softmax/fast.py"
CASES = (Case("check", (("n", 5),)), Case("bench", (("n", 9),)))


def test_paths_of_a_candidate_become_the_projects() -> None:
    stop = Stop("raised", f"in {CANDIDATES}: no", file=CANDIDATES, line=3, log=f'File "{CANDIDATES}"')
    found = wording.finding(stop, KERNEL, Path("/project"), "kernelci run softmax/fast")
    assert ("kernels/softmax/fast.py", 3) == (found.file, found.line)
    assert ("in /project/kernels/softmax/fast.py: no", 'File "/project/kernels/softmax/fast.py"') == (
        found.message, found.log,
    )  # fmt: skip


def test_a_file_outside_the_project_is_shortened() -> None:
    assert 300 == len(wording.relative("/elsewhere/" + "x" * 400, KERNEL, Path("/project")))


def test_a_candidates_folder_with_a_backslash_is_only_text() -> None:
    kernel = Kernel("odd", Path("/pro\\1ject/kernels/odd.py"), None, "")
    assert "/pro\\1ject/kernels/odd.py" == wording.relative("/a/kernelci-kernel-1/k/odd.py", kernel, Path("/other"))


def test_the_command_names_what_is_known() -> None:
    assert "kernelci run softmax/fast --rungs run --case 5 --draw normal:0 --seed ab" == wording.command(
        "softmax/fast", "run", "5", "--draw normal:0 --seed ab"
    )
    assert "kernelci run softmax/fast" == wording.command("softmax/fast", "", "", "")


@pytest.mark.parametrize(
    ("wanted", "interpreted", "expected"),
    [
        ("seven", True, "no case is called 'seven'; there are 5"),
        ("seven", False, "no case is called 'seven'; there are 5, 9"),
        ("9", True, "9 is a bench case, for a GPU; here run 5"),
    ],
)
def test_why_there_is_no_case(wanted: str, interpreted: bool, expected: str) -> None:
    assert expected == wording.no_case(wanted, CASES, interpreted)


def test_only_bench_cases() -> None:
    assert "there are only bench cases, for a GPU; nothing else is there" == wording.no_case("", CASES[1:], True)
