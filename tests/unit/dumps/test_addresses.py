"""Offsets that wrap in 32 bits, found in PTX; and what is right, or harmless, passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.dumps.addresses import Product, products

HEAD = """
.visible .entry k(.param .u64 x, .param .u32 cols) {
  .file 1 "/home/a/kernel.py"
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [cols];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  .loc 1 28 5
"""
TAIL = "\n  add.s64 %rd3, %rd1, %rd2;\n  ld.global.f32 %f1, [%rd3];\n  ret;\n}\n"
GUILTY = [
    "mul.lo.s32 %r4, %r2, %r1;\n mul.wide.s32 %rd2, %r4, 4;",
    "mul.lo.s32 %r4, %r1, %r2;\n add.s32 %r5, %r4, %r3;\n mul.wide.s32 %rd2, %r5, 4;",
    "mad.lo.s32 %r4, %r2, %r1, %r3;\n cvt.s64.s32 %rd2, %r4;",
    "shl.b32 %r6, %r2, 3;\n add.s32 %r7, %r6, %r3;\n mul.lo.u32 %r4, %r7, %r1;\n cvt.u64.u32 %rd2, %r4;",
]
INNOCENT = [
    "cvt.s64.s32 %rd4, %r2;\n cvt.s64.s32 %rd5, %r1;\n mul.lo.s64 %rd2, %rd4, %rd5;",  # widened first
    "mul.wide.s32 %rd2, %r2, %r1;",  # the product itself has 64 bits
    "mul.lo.s32 %r4, %r2, 128;\n mul.wide.s32 %rd2, %r4, 4;",  # a block's index times a tile: as large as the grid is
    "mul.lo.s32 %r4, %r3, %r1;\n mul.wide.s32 %rd2, %r4, 4;",  # a thread's index
    "mul.lo.s32 %r4, %r2, %r1;\n setp.lt.s32 %p1, %r4, 9;\n mul.wide.s32 %rd2, %r3, 4;",  # no address
]


@pytest.mark.parametrize("code", GUILTY)
def test_a_product_that_wraps_is_found_with_its_line(code: str) -> None:
    assert (Product("kernel.py", 28),) == products(HEAD + code + TAIL)


@pytest.mark.parametrize("code", INNOCENT)
def test_what_does_not_wrap_is_passed_over(code: str) -> None:
    assert () == products(HEAD + code + TAIL)


def test_each_kernel_stands_for_itself() -> None:
    twice = HEAD + GUILTY[0] + TAIL + HEAD.replace(" k(", " l(").replace("28 5", "40 5") + GUILTY[0] + TAIL
    assert (Product("kernel.py", 28), Product("kernel.py", 40)) == products(twice)


def test_registers_that_come_from_themselves_end() -> None:
    assert () == products(HEAD + "add.s32 %r4, %r4, 1;\n mul.wide.s32 %rd2, %r4, 4;" + TAIL)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(products(f".entry {text}"), tuple)
