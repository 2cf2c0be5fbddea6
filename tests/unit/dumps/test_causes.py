"""Which difference is named first, and which way it points."""

import pytest

from kernelci.dumps import causes
from kernelci.dumps.anatomy import dissect
from kernelci.dumps.causes import Side, parameters
from kernelci.dumps.sass import Instruction
from kernelci.dumps.specimen import Record


def _side(*opcodes: str, **record: object) -> Side:
    code = [Instruction(text.rpartition("|")[2], text.rpartition("|")[0]) for text in opcodes]
    return Side(Record(**record), dissect(code))  # type: ignore[arg-type]


SPILLED = ("[R1+0x8]|STL", "[R1+0x8]|LDL")
CASES = [
    (("HGMMA.64x128x16.F32.BF16",), ("HMMA.16816.F32.BF16",), "likely slower: HGMMA -> HMMA"),
    (("HMMA.16816.F32.BF16",), ("FFMA",), "likely slower: tensor cores: HMMA -> none"),
    (("FFMA",), ("HMMA.16816.F32.BF16",), "likely faster: tensor cores: none -> HMMA"),
    (("UTCHMMA",), ("HMMA.16816.F32.BF16",), "likely slower: UTCHMMA -> HMMA"),
    (("QGMMA.64x64x32.F32.E4M3.E4M3",), ("HGMMA.64x64x16.F32.BF16",), "changed: QGMMA -> HGMMA"),
    (("HMMA.16816.F32.BF16",), ("HMMA.16816.F32",), "changed: multiplications of bfloat16 -> float16"),
    (
        ("HGMMA.64x256x16.F32.BF16",),
        ("HGMMA.64x64x16.F32.BF16",),
        "likely slower: HGMMA 64x256x16 -> 64x64x16: a smaller tile",
    ),
    (("LDG.E.128",), ("LDG.E",), "likely slower: global loads 128 -> 32 bits wide"),
    (("LDG.E",), ("LDG.E.128",), "likely faster: global loads 32 -> 128 bits wide"),
    (("LDS.128",), ("LDS",), "likely slower: shared loads 128 -> 32 bits wide"),
    (("UTMALDG.2D",), ("LDG.E.128",), "likely slower: bulk copies (TMA): 1 -> none"),
    (("LDGSTS.E.128",), ("FADD",), "likely slower: asynchronous copies (LDGSTS): 1 -> none"),
    (("FADD",), ("DADD",), "likely slower: double precision: 0 -> 1 instructions"),
    (("FADD",), ("FADD", "[R9]|LDL"), "likely slower: an array in local memory: 0 -> 1 accesses"),
    (("MUFU.EX2",) * 8, ("MUFU.EX2",) * 24, "likely slower: special function instructions 8 -> 24"),
]


@pytest.mark.parametrize(("base", "head", "expected"), CASES)
def test_first_cause(base: tuple[str, ...], head: tuple[str, ...], expected: str) -> None:
    assert expected == causes.of(_side(*base), _side(*head))[0].note()


def test_spills_name_the_registers() -> None:
    base = _side("FADD", registers=168)
    head = _side(*SPILLED * 5, "FADD", registers=96, stack_bytes=136)
    assert "spills: 0 -> 136 bytes by 96 registers (base: 168)" == causes.of(base, head)[0].text


RECORDS = [
    ({"config": "BLOCK=128, num_stages=4"}, {"config": "BLOCK=128, num_stages=1"}, "likely slower: stages 4 -> 1"),
    ({"config": "BLOCK=128, num_warps=8"}, {"config": "BLOCK=64, num_warps=8"}, "likely slower: BLOCK 128 -> 64"),
    (
        {"symbol": "_Z1kILi8ELi4EEvPf"},
        {"symbol": "_Z1kILi2ELi16EEvPf"},
        "changed: argument 1 8 -> 2, argument 2 4 -> 16",
    ),
    (
        {"occupancy": 0.5, "limiter": "threads", "registers": 64},
        {"occupancy": 0.25, "limiter": "registers", "registers": 128},
        "likely slower: occupancy 50 % -> 25 %, limited by registers (64 -> 128)",
    ),
    ({"block": (256, 1, 1)}, {"block": (64, 1, 1)}, "changed: threads of a block 256 -> 64"),
]


@pytest.mark.parametrize(("base", "head", "expected"), RECORDS)
def test_first_cause_outside_of_the_code(base: dict[str, object], head: dict[str, object], expected: str) -> None:
    assert [expected] == [cause.note() for cause in causes.of(_side("FADD", **base), _side("FADD", **head))]


def test_less_shared_memory_between_copies() -> None:
    base, head = (_side("UTMALDG.2D", dynamic_shared_bytes=size) for size in (96_000, 32_000))
    expected = "shared memory 96000 -> 32000 bytes: fewer stages or a smaller tile"
    assert [expected] == [cause.text for cause in causes.of(base, head)]


def test_the_same_has_no_cause() -> None:
    side = _side("HMMA.16816.F32", "LDG.E.128", *SPILLED, registers=40, occupancy=0.5, config="A=1")
    assert () == causes.of(side, side)


def test_bulk_copies_stand_in_for_asynchronous_ones() -> None:
    found = causes.of(_side("LDGSTS.E.128"), _side("UTMALDG.2D"))
    assert ["bulk copies (TMA): none -> 1"] == [cause.text for cause in found]


def test_tensor_cores_come_before_all_else() -> None:
    base, head = _side("HGMMA.64x64x16.F32", "LDG.E.128"), _side("HMMA.16816.F32", "LDG.E", *SPILLED * 9, "DADD")
    assert "HGMMA -> HMMA" == causes.of(base, head)[0].text


def test_parameters_of_a_cutedsl_name() -> None:
    record = Record("kernel_cutlass_softmax_tensorptr_8_4_32_False_0", "cutlass_launch_FakeStream_8_4_32_False")
    assert ["8", "4", "32", "False"] == list(parameters(record).values())
