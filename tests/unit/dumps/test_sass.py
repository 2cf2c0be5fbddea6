"""SASS read from text: instructions, source lines, and what stays when names and numbers of registers go."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.dumps import sass

NVDISASM = """\
\t.target\tsm_90a
.text.softmax_tile:
\t//## File "/private/kernelci-kernel-2/softmax/triton.py", line 31
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P1 LDG.E.128 R12, desc[UR6][R18.64+0x800] ;
.L_x_0:
\t//## File "/x/softmax/triton.py", line 36 inlined at "/x/y.py", line 9
        /*0020*/               @P0 BRA `(.L_x_0) ;
        /*0030*/                   NOP;
"""
CUOBJDUMP = """\
\t\tFunction : softmax_tile
        /*0000*/                   LDC R1, c[0x0][0x28] ;                                /* 0x00000a00ff017b82 */
                                                                                         /* 0x000fe20000000800 */
        /*0010*/              @!P1 LDG.E.128 R12, desc[UR6][R18.64+0x800] ;              /* 0x0000060a120c7981 */
"""


def test_instructions_with_their_source_lines() -> None:
    expected = [("LDC", "triton.py", 31), ("LDG.E.128", "triton.py", 31), ("BRA", "triton.py", 36)]
    assert expected == [(each.opcode, each.file, each.line) for each in sass.parse(NVDISASM)]


def test_cuobjdump_prints_the_same_instructions() -> None:
    assert [each.bare() for each in sass.parse(NVDISASM)][:2] == [each.bare() for each in sass.parse(CUOBJDUMP)]


def test_bare_form_has_no_registers_and_labels() -> None:
    expected = ["LDC R, c[0x0][0x28]", "@!P LDG.E.128 R, desc[UR][R.64+0x800]", "@P BRA label"]
    assert expected == [each.bare() for each in sass.parse(NVDISASM)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NVDISASM, ""),
        ("// no disassembly: cuobjdump not found\n", "cuobjdump not found"),
        ("", "the file holds no SASS"),
        ("\x7fELF\x02 binary", "the file holds no SASS"),
    ],
)
def test_why_there_is_none(text: str, why: str) -> None:
    assert why == sass.why_none(text)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(sass.parse(text), tuple)


def test_blank_lines_take_no_longer_than_their_number() -> None:
    began = time.process_time()
    assert () == sass.parse("\n" * 2_000_000)
    assert time.process_time() - began < 10.0
