import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import units
from kernelci.model import Metric, Unit


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [
        (0.0, Unit.NONE, "0"),
        (8.8333e-10, Unit.NONE, "8.83e-10"),
        (0.00097656, Unit.NONE, "9.77e-4"),
        (123456.0, Unit.NONE, "123000"),
        (0.9999999999999971, Unit.NONE, "1 - 2.9e-15"),
        (1.0, Unit.NONE, "1"),
        (0.9, Unit.NONE, "0.9"),
        (850.0, Unit.NANOSECONDS, "850 ns"),
        (999.96, Unit.NANOSECONDS, "1 µs"),
        (12345.0, Unit.NANOSECONDS, "12.3 µs"),
        (7.8, Unit.SECONDS, "7.8 s"),
        (135.2, Unit.SECONDS, "2 min 15 s"),
        (0.0, Unit.SECONDS, "0 s"),
        (0, Unit.BYTES, "0 B"),
        (5632, Unit.BYTES, "5.5 KiB"),
        (1023.9, Unit.BYTES, "1 KiB"),
        (3 * 2**30, Unit.BYTES, "3 GiB"),
        (4.3e12, Unit.BYTES_PER_SECOND, "4.3 TB/s"),
        (871e9, Unit.BYTES_PER_SECOND, "871 GB/s"),
        (750e12, Unit.FLOP_PER_SECOND, "750 TFLOP/s"),
        (1.31e6, Unit.FLOP, "1.31 MFLOP"),
        (0.7543, Unit.FRACTION, "75.4 %"),
        (161.756, Unit.DECIBEL, "161.8 dB"),
        ("inf", Unit.DECIBEL, "inf dB"),
        ("nan", Unit.NONE, "NaN"),
        ("-inf", Unit.BYTES, "-inf"),
        (131072, Unit.COUNT, "131,072"),
        (0.443, Unit.RATIO, "0.443×"),
    ],
)
def test_numbers_read_well(number: float | str, unit: Unit, expected: str) -> None:
    assert expected == units.value(number, unit)


def test_an_interval_follows_the_value() -> None:
    found = Metric("time", 12345.0, Unit.NANOSECONDS, "time", low=12100.0, high=12600.0)

    assert "12.3 µs [12.1 µs, 12.6 µs]" == units.metric(found)


def test_half_an_interval_is_none() -> None:
    assert "5 ns" == units.metric(Metric("time", 5.0, Unit.NANOSECONDS, "time", low=4.0))


@pytest.mark.parametrize(("seconds", "expected"), [(0.0004, "0.0 s"), (7.81, "7.8 s"), (3725.0, "62 min 5 s")])
def test_elapsed_times_have_one_decimal(seconds: float, expected: str) -> None:
    assert expected == units.elapsed(seconds)


@given(st.floats(-1.7e308, 1.7e308), st.sampled_from(Unit))
def test_every_number_has_a_short_form_in_every_unit(number: float, unit: Unit) -> None:
    text = units.value(number, unit)

    assert "\n" not in text
    assert len(text) < 30 or unit in (Unit.COUNT, Unit.DECIBEL, Unit.SECONDS, Unit.NANOSECONDS)


@given(st.floats(1e-300, 1e300), st.integers(2, 6))
def test_significant_digits_keep_the_value(number: float, digits: int) -> None:
    assert math.isclose(number, float(units.significant(number, digits)), rel_tol=10.0 ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.0275, 0.021, 0.034, "+2.75 % [+2.10, +3.40]"),
        (-0.08, -0.09, 0.0, "-8.00 % [-9.00, 0.00]"),
        (0.5, 0.44, 0.561, "+50.0 % [+44.0, +56.1]"),
        (0.01, None, None, "+1.00 %"),
        (-1e-9, -1e-9, "inf", "0.00 % [0.00, inf]"),
        ("nan", None, None, "NaN %"),
    ],
)
def test_change(value: float | str, low: float | None, high: float | str | None, expected: str) -> None:
    assert expected == units.change(Metric("delta", value, Unit.FRACTION, "change", "", low, high))


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(4590.0, 4610.0, "4.6 µs ± 0.22 %"), (None, None, "4.6 µs"), (1.0, "inf", "4.6 µs")]
)
def test_plus_minus(low: float | None, high: float | str | None, expected: str) -> None:
    assert expected == units.plus_minus(Metric("time", 4600.0, Unit.NANOSECONDS, "time", "", low, high))


@pytest.mark.parametrize(("p", "expected"), [(0.4123, "0.41"), (3e-5, "3e-5"), (1e-12, "< 1e-6"), (0.0, "< 1e-6")])
def test_chance(p: float, expected: str) -> None:
    assert expected == units.chance(Metric("q", p, Unit.FRACTION, "q"))


@pytest.mark.parametrize(
    ("names", "expected"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_a_list_says_how_many_it_leaves_out(names: list[str], expected: str) -> None:
    assert expected == units.listed(names, 2)
