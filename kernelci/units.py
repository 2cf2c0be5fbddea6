"""How numbers are read: prefixes, three or four significant digits, percentages, words for what is not finite.

The only place that formats; everything else stores SI units (`kernelci.model.Unit`).
"""

import math
from collections.abc import Sequence

from kernelci.model import Metric, Number, Unit

_DECIMAL = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
_BINARY = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
_TIME = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_WORDS = {"nan": "NaN", "inf": "inf", "-inf": "-inf"}
MINUTES_FROM_S = 120.0


def metric(found: Metric) -> str:
    """A metric's value with its unit, and its interval where it has one: `12.3 µs [12.1 µs, 12.6 µs]`."""
    text = value(found.value, found.unit)
    if found.low is None or found.high is None:
        return text
    return f"{text} [{value(found.low, found.unit)}, {value(found.high, found.unit)}]"


def plus_minus(found: Metric) -> str:
    """A metric's value with half its interval, as a share of the value: `12.3 µs ± 0.4 %`."""
    text = value(found.value, found.unit)
    ends = (found.value, found.low, found.high)
    if found.value == 0 or not all(isinstance(end, float | int) for end in ends):
        return text
    middle, low, high = (float(end) for end in ends if end is not None)
    return f"{text} ± {significant(100 * (high - low) / 2 / abs(middle), 2)} %"


def change(found: Metric) -> str:
    """A relative change with its sign and interval: `+2.75 % [+2.10, +3.40]`."""
    ends = [end for end in (found.low, found.high) if end is not None]
    decimals = 2 if all(isinstance(end, str) or abs(end) < 0.1 for end in (found.value, *ends)) else 1
    text = f"{_signed(found.value, decimals)} %"
    return text if len(ends) < 2 else f"{text} [{', '.join(_signed(end, decimals) for end in ends)}]"


def _signed(share: Number, decimals: int) -> str:
    if isinstance(share, str):
        return _WORDS[share]
    text = f"{100 * share:+.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


LEAST_CHANCE = 1e-6


def chance(found: Metric) -> str:
    """A p- or q-value: `0.012`; nobody reads more than that it is tiny."""
    if isinstance(found.value, str):
        return _WORDS[found.value]
    return f"< {significant(LEAST_CHANCE, 1)}" if found.value < LEAST_CHANCE else significant(found.value, 2)


def value(number: Number, unit: Unit = Unit.NONE) -> str:
    """A number with its unit as people read it."""
    if isinstance(number, str):
        return f"{_WORDS[number]} dB" if unit is Unit.DECIBEL else _WORDS[number]
    match unit:
        case Unit.SECONDS:
            return duration(number)
        case Unit.NANOSECONDS:
            return duration_ns(number)
        case Unit.BYTES:
            return _scaled(number, _BINARY)
        case Unit.BYTES_PER_SECOND:
            return _scaled(number, tuple((f"{prefix}B/s", scale) for prefix, scale in _DECIMAL))
        case Unit.FLOP | Unit.FLOP_PER_SECOND:
            return _scaled(number, tuple((prefix + unit.value, scale) for prefix, scale in _DECIMAL))
        case Unit.FRACTION:
            return f"{significant(100 * number, 3)} %"
        case Unit.DECIBEL:
            return f"{number:.1f} dB"
        case Unit.COUNT:
            return f"{int(number):,}" if float(number).is_integer() else significant(number, 4)
        case Unit.RATIO:
            return f"{significant(number, 3)}×"
        case _:
            return _near_one(number) or significant(number, 3)


def duration(seconds: float) -> str:
    """A time: `850 ns`, `12.3 µs`, `7.8 s`, `2 min 15 s`."""
    if abs(seconds) >= MINUTES_FROM_S and math.isfinite(seconds):
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes:,} min {rest} s"
    if seconds == 0:
        return "0 s"
    return _scaled(seconds, _TIME)


def duration_ns(nanoseconds: float) -> str:
    """The same of nanoseconds."""
    return duration(nanoseconds * 1e-9)


def listed(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def elapsed(seconds: float) -> str:
    """How long a step took: seconds with one decimal, since nobody reads more; `2 min 15 s` above two minutes."""
    return duration(seconds) if abs(seconds) >= MINUTES_FROM_S else f"{seconds:.1f} s"


def significant(number: float, digits: int) -> str:
    """The number with so many significant digits, trailing zeros dropped, in powers of ten where it is tiny or huge."""
    if number == 0:
        return "0"
    if not math.isfinite(number):
        return f"{number}"
    rounded = float(f"{number:.{digits - 1}e}")
    if not 1e-3 <= abs(rounded) < 1e6:
        mantissa, _, exponent = f"{rounded:.{digits - 1}e}".partition("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return _trimmed(f"{rounded:.{decimals}f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(number: float, scales: tuple[tuple[str, float], ...]) -> str:
    """In the largest unit that leaves at least 1 after rounding; the smallest unit below that."""
    for suffix, scale in reversed(scales):
        if abs(float(f"{number / scale:.2e}")) >= 1:
            return f"{significant(number / scale, 3)} {suffix}"
    return f"{significant(number / scales[0][1], 3)} {scales[0][0]}"


def _near_one(number: float) -> str:
    """A cosine says nothing as `1`: what is just below one is shown by its distance."""
    distance = 1 - number
    return f"1 - {significant(distance, 2)}" if 0 < distance < 5e-4 else ""
