"""What a reference requires or forbids, against machine code."""

import pytest

from kernelci import gpus
from kernelci.dumps import requirements
from kernelci.dumps.sass import Instruction

WARP, GROUP = Instruction("HMMA.16816.F32.BF16"), Instruction("HGMMA.64x64x16.F32.BF16")


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("tensor core", True),
        ("tensor core float8", True),
        ("newest tensor core", True),
        ("newest tensor core bfloat16", True),
        ("bulk copy", True),
        ("LDGSTS", True),
        ("HGMMA.64x*", True),
        ("tensor core float7", False),
        ("newest bulk copy", False),
        ("fast", False),
        ("", False),
    ],
)
def test_words(word: str, known: bool) -> None:
    assert known == requirements.is_known(word, gpus.types())


@pytest.mark.parametrize(
    ("word", "target", "code", "has"),
    [
        ("tensor core", "sm_90a", WARP, True),
        ("tensor core bfloat16", "sm_90a", WARP, True),
        ("tensor core float16", "sm_90a", WARP, False),
        ("newest tensor core", "sm_90a", WARP, False),
        ("newest tensor core", "sm_90a", GROUP, True),
        ("newest tensor core", "sm_80", WARP, True),
        ("newest tensor core bfloat16", "sm_100a", Instruction("UTCHMMA"), True),
        ("newest tensor core", "sm_100a", WARP, False),
        ("global memory", "sm_80", Instruction("LDG.E"), True),
        ("LDG", "sm_80", Instruction("LDG.E"), True),
        ("LDG.E", "sm_80", Instruction("LDG.E"), True),
        ("LDG.E.128", "sm_80", Instruction("LDG.E"), False),
    ],
)
def test_machine_code_has_it(word: str, target: str, code: Instruction, has: bool) -> None:
    assert has == requirements.has(word, (code,), target)


def test_what_a_target_lacks_is_not_asked_of_it() -> None:
    words = ("tensor core float8",)
    found = {
        target: requirements.unmet(words, (WARP,), gpus.for_target(target), target) for target in ("sm_80", "sm_90a")
    }
    assert {"sm_80": (), "sm_90a": words} == found


def test_what_is_forbidden_is_named_with_its_first_instruction() -> None:
    first = Instruction("DADD", line=7)
    assert (("double", first),) == requirements.broken(("double", "STL"), (WARP, first, Instruction("DFMA")), "sm_80")
