"""Delays in PTX."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.disturbing.compilers import assembled
from kernelci.disturbing.ptx import delayed
from kernelci.disturbing.shared import BUSY
from kernelci.disturbing.shared import PTX as DIRTY
from kernelci.workbench import toolkit

KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry rows(
    .param .u64 rows_param_0
)
.maxntid 128
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    mov.u32 %r1, %tid.x;
    bar.sync 0;
    setp.lt.u32 %p1, %r1, 64;
    @%p1 bar.sync 1, 64;
    // begin inline asm
    { .reg .pred q; barrier.cta.red.popc.aligned.u32 %r2, 0, %p1; }
    // end inline asm
    barrier.sync.aligned 0;
    bar.warp.sync -1;
    ret;
}
"""
DELAY = re.compile(r"\n\{\n\.reg \.b32 %kci_a.*?\n\}", re.DOTALL)
needs_ptxas = pytest.mark.skipif(toolkit.home("bin/ptxas") is None, reason="no ptxas here")


def test_a_delay_at_the_start_and_after_each_barrier() -> None:
    text, places = delayed(KERNEL)
    assert (4, 4) == (places, text.count("nanosleep"))


def test_all_else_stays() -> None:
    assert KERNEL == DELAY.sub("", delayed(KERNEL)[0])


def test_a_barrier_of_a_warp_or_within_braces_gets_none() -> None:
    text, _ = delayed(KERNEL)
    assert (True, True) == ("bar.warp.sync -1;\n    ret;" in text, "%p1; }\n    // end" in text)


def test_no_kernel_no_delay() -> None:
    assert (".version 8.0\n", 0) == delayed(".version 8.0\n")


@given(st.text(st.sampled_from("bar.sync 0;{}\n@%p1 \t.entry()rows/"), max_size=300))
def test_any_text_keeps_its_own(text: str) -> None:
    changed, places = delayed(text)
    assert (text, places) == (DELAY.sub("", changed), changed.count("nanosleep"))


@needs_ptxas
def test_ptxas_takes_it() -> None:
    assert b"ELF" in assembled(delayed(KERNEL.replace("q; barrier.cta.red.popc.aligned.u32 %r2, 0, %p1;", "q;"))[0])[:8]


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("ptx", [DIRTY, BUSY], ids=["dirty", "busy"])
def test_our_own_kernels_assemble(ptx: str, target: str) -> None:
    assert b"ELF" in assembled(ptx.replace("sm_75", target).replace("version 7.0", "version 8.7"))[:8]


@needs_ptxas
def test_what_ptxas_says_is_told() -> None:
    with pytest.raises(RuntimeError, match="ptxas"):
        assembled(".version 8.0\n.target sm_90a\nnonsense;\n")
