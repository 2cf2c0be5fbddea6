"""What an opcode is: its class, and what its modifiers say."""

import pytest

from kernelci.dumps import opcodes
from kernelci.dumps.anatomy import dissect
from kernelci.dumps.sass import Instruction, parse


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HGMMA", "tensor core"),
        ("UTCQMMA", "tensor core"),
        ("UTMALDG", "bulk copy"),
        ("LDGSTS", "asynchronous copy"),
        ("STL", "local memory"),
        ("LDSM", "shared memory"),
        ("LDG", "global memory"),
        ("MUFU", "special function"),
        ("DFMA", "double"),
        ("HFMA2", "float"),
        ("UIADD3", "integer"),
        ("SYNCS", "barrier"),
        ("BRA", "branch"),
        ("XYZZY", opcodes.OTHER),
    ],
)
def test_classes(name: str, expected: str) -> None:
    assert expected == opcodes.class_of(name)


def test_no_opcode_stands_in_two_classes() -> None:
    named = [name for patterns in opcodes.classes().values() for name in patterns]
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("opcode", "shape", "types", "unit"),
    [
        ("HMMA.16816.F32.BF16", "16x8x16", ("bfloat16",), 1),
        ("HMMA.16816.F32", "16x8x16", ("float16",), 1),
        ("HMMA.1688.F32.TF32", "16x8x8", ("tf32",), 1),
        ("IMMA.16832.S8.S8", "16x8x32", ("int8",), 1),
        ("HGMMA.64x128x16.F32.BF16", "64x128x16", ("bfloat16",), 2),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", "64x64x32", ("float8",), 2),
        ("UTCHMMA", "", ("float16", "bfloat16", "tf32"), 3),
        ("UTCQMMA.2CTA", "", ("float8",), 3),
        ("UTCOMMA", "", ("float4",), 3),
        ("FFMA", "", ("",), 0),
    ],
)
def test_multiplications(opcode: str, shape: str, types: tuple[str, ...], unit: int) -> None:
    found = Instruction(opcode)
    assert (shape, unit) == (opcodes.shape(found), opcodes.unit(found.name))
    assert not unit or types == opcodes.types(found)


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [("LDG.E", 32), ("LDG.E.128.CONSTANT", 128), ("LDG.E.U8", 8), ("LDGSTS.E.BYPASS.LTC128B.128", 128)],
)
def test_widths(opcode: str, bits: int) -> None:
    assert bits == opcodes.bits(Instruction(opcode))


CODE = """\
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R12, desc[UR6][R18.64] ;
        /*0020*/                   LDG.E R3, desc[UR6][R18.64] ;
        /*0030*/                   STL [R1+0x8], R3 ;
        /*0040*/                   LDL.64 R4, [R1] ;
        /*0050*/                   LDL R4, [R9+0x4] ;
        /*0060*/                   HMMA.16816.F32.BF16 R4, R8, R12, R4 ;
        /*0070*/                   HFMA2.MMA R17, -RZ, RZ, 0, 0 ;
        /*0080*/                   XYZZY R4 ;
"""


def test_anatomy() -> None:
    found = dissect(parse(CODE))
    assert (9, 2, 1, 1, "1 HMMA 16x8x16 bfloat16") == (
        found.instructions,
        found.spills,
        found.arrays,
        found.unit,
        found.tensor,
    )
    assert {"move": 2, "global memory": 2, "local memory": 3, "tensor core": 1, opcodes.OTHER: 1} == found.classes
    assert (128, 0) == (found.width("global load"), found.width("shared load"))
    assert 1 / 9 == found.unknown
