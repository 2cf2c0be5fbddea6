"""Where a case stands under the roof, and whether to go on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import roofline
from kernelci.roofline import Advice, Bound, Ceilings, Work

# 4 TB/s and 800 TFLOP/s measured, 4.8 and 990 by the datasheet; an empty call takes 1.5 µs.
CEILINGS = Ceilings(4e12, 800e12, 4.8e12, 990e12, 1500.0)
COPY = 4e9  # bytes that take 1 ms
MATMUL = 800e9  # FLOP that take 1 ms


@pytest.mark.parametrize(
    ("work", "bound", "advice", "text"),
    [
        (
            Work(1e6, COPY, 1.05e6),
            Bound.MEMORY,
            Advice.STOP,
            "stop: 95.2 % of a copy's bandwidth, bound by memory",
        ),
        (
            Work(1e6, COPY, 2e6),
            Bound.MEMORY,
            Advice.GO_ON,
            "go on: 50 % of a copy's bandwidth, bound by memory; up to 1.8 times faster before the limit",
        ),
        (
            Work(MATMUL, 1e6, 1.25e6),
            Bound.COMPUTE,
            Advice.GO_ON,
            "go on: 80 % of the matmul peak, bound by compute; up to 1.1 times faster before the limit",
        ),
        (
            Work(1e6, COPY, 1.15e6),
            Bound.MEMORY,
            Advice.GO_ON,
            "go on: 87 % of a copy's bandwidth, bound by memory; up to 3.5 % faster before the limit",
        ),
        (Work(MATMUL, 1e6, 1e6), Bound.COMPUTE, Advice.STOP, "stop: 100 % of the matmul peak, bound by compute"),
        (
            Work(0.0, 4e6, 2500.0),
            Bound.LATENCY,
            Advice.STOP,
            "stop: bound by latency: 2.5 µs, an empty call takes 1.5 µs, the work alone 1 µs",
        ),
        (
            Work(0.0, 4e6, 9000.0),
            Bound.LATENCY,
            Advice.GO_ON,
            "go on: bound by latency: 9 µs, an empty call takes 1.5 µs, the work alone 1 µs; "
            "fewer launches, or more work in one; up to 8.1 times faster before the limit",
        ),
        (
            Work(1e6, COPY, 0.8e6),
            Bound.MEMORY,
            Advice.WRONG,
            "formula wrong: faster than the datasheet allows (104 %): the cost says more work than is done",
        ),
        (
            Work(1e6, COPY, 1.2e6, dram_bytes=COPY / 2),
            Bound.MEMORY,
            Advice.WRONG,
            "formula wrong: DRAM moved 50 % of the formula's bytes: work is left out, or the cost is too high",
        ),
        (
            Work(1e6, COPY, 2e6, dram_bytes=1.6 * COPY),
            Bound.MEMORY,
            Advice.GO_ON,
            "go on: 50 % of a copy's bandwidth, bound by memory; DRAM moved 1.6 times the formula's bytes: something "
            "is read or written more than once; up to 1.8 times faster before the limit",
        ),
    ],
)
def test_place(work: Work, bound: Bound, advice: Advice, text: str) -> None:
    found = roofline.place(work, CEILINGS)
    assert (bound, advice, text) == (found.bound, found.advice, found.text)


def test_hints_come_before_how_much_is_left() -> None:
    found = roofline.place(Work(0.0, COPY, 2e6), CEILINGS, ("loads are 32 bits wide", "spills", "third"))
    assert found.text.endswith("memory; loads are 32 bits wide; spills; up to 1.8 times faster before the limit")


def test_what_was_written_may_be_in_the_l2_still() -> None:
    ceilings = Ceilings(4e12, 800e12, l2_bytes=int(COPY / 2))
    assert Advice.STOP is roofline.place(Work(0.0, COPY, 1e6, dram_bytes=0.6 * COPY), ceilings).advice


def test_another_share_to_stop_at() -> None:
    work = Work(0.0, COPY, 1.05e6)
    assert [Advice.STOP, Advice.GO_ON] == [roofline.place(work, CEILINGS, stop=stop).advice for stop in (0.95, 0.96)]


def test_a_peak_that_was_not_measured_is_the_datasheets() -> None:
    found = roofline.place(Work(MATMUL, 1e6, 2e6), Ceilings(4e12, 800e12, peak_measured=False))
    assert "50 % of the matmul peak by the datasheet" in found.text


@given(
    st.just(0.0) | st.floats(1, 1e15),
    st.just(0.0) | st.floats(1, 1e12),
    st.floats(1, 1e9),
    st.floats(1e9, 1e13),
    st.floats(1e9, 1e16),
    st.floats(0, 1e5),
)
def test_the_limit_is_never_above_the_ceilings(
    flops: float, moved: float, time: float, bandwidth: float, peak: float, empty: float
) -> None:
    found = roofline.place(Work(flops, moved, time), Ceilings(bandwidth, peak, empty_ns=empty))
    assert math.isclose(found.limit_ns, 1e9 * max(moved / bandwidth, flops / peak), rel_tol=1e-9)
    assert found.text.startswith(f"{found.advice}: ")


def test_ridge() -> None:
    assert 200.0 == CEILINGS.ridge
