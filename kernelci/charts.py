"""A roofline chart as SVG: both axes logarithmic, the roof as a line, a point a case; legible on light and dark."""

import itertools
import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal

from msgspec import Struct

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 28, 16, 46
LEGEND = 24  # of so many points names stand beside them, where there is room; of more each case is named once
LETTER, LABEL_HEIGHT, DOT = 7.0, 13, 4  # pixels: a letter, a line of text, half of a point
BOUNDS = ("memory", "compute", "latency")
STYLE = (
    ".rl text{font:12px system-ui,sans-serif;fill:#333}.rl .grid{stroke:#ddd}.rl .axis{stroke:#777}"
    ".rl .roof{stroke:#b3261e;fill:none;stroke-width:2}.rl .sheet{stroke:#999;fill:none;stroke-dasharray:5 4}"
    ".rl .memory{fill:#1f6feb}.rl .compute{fill:#8250df}.rl .latency{fill:#9a6700}.rl .back{fill:#fff}"
    "@media(prefers-color-scheme:dark){.rl text{fill:#ccc}.rl .grid{stroke:#333}.rl .axis{stroke:#888}"
    ".rl .roof{stroke:#ff7b72}.rl .sheet{stroke:#777}.rl .memory{fill:#58a6ff}.rl .compute{fill:#bc8cff}"
    ".rl .latency{fill:#d29922}.rl .back{fill:#161b22}}"
)


class Point(Struct, frozen=True):
    """A case: FLOP/byte, FLOP/s, what binds it (memory, compute, latency), its name, and what is told on hovering."""

    name: str
    intensity: float
    flops_per_s: float
    bound: str
    detail: str = ""


class Roof(Struct, frozen=True):
    """A ceiling: byte/s and FLOP/s. `sheet`: by the datasheet, not measured."""

    bytes_per_s: float
    flops_per_s: float
    name: str = ""
    sheet: bool = False


class Frame(Struct, frozen=True):
    """The decades of both axes, from and to, as powers of ten."""

    x: tuple[int, int]
    y: tuple[int, int]

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """Pixels of a point, kept within the frame."""
        return (
            _scaled(math.log10(intensity), self.x, LEFT, WIDTH - RIGHT),
            _scaled(math.log10(rate), self.y, HEIGHT - BOTTOM, TOP),
        )


def _scaled(value: float, decades: tuple[int, int], start: float, end: float) -> float:
    share = (value - decades[0]) / (decades[1] - decades[0])
    return round(start + min(max(share, 0.0), 1.0) * (end - start), 1)


def roofline(points: Sequence[Point], roofs: Sequence[Roof]) -> str:
    """The chart; empty where there is nothing to draw. Points without FLOP have no place in it and are left out."""
    shown = [point for point in points if 0 < point.intensity < math.inf and 0 < point.flops_per_s < math.inf]
    above = [roof for roof in roofs if roof.bytes_per_s > 0 and roof.flops_per_s > 0]
    if not shown or not above:
        return ""
    frame = _frame(shown, above)
    labels = Labels()
    for point in shown:
        labels.point(*frame.at(point.intensity, point.flops_per_s))
    for roof in above:
        for start, end in itertools.pairwise(_corners(roof, frame)):
            labels.line(start, end)
    parts = (*_axes(frame), *_key(shown), *_roofs(above, frame, labels), *_points(shown, frame, labels))
    return (
        f'<svg class="rl" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="roofline of {len(shown)} cases"><style>{STYLE}</style>'
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>{"".join(parts)}</svg>'
    )


def _frame(points: Sequence[Point], roofs: Sequence[Roof]) -> Frame:
    intensities = [point.intensity for point in points] + [roof.flops_per_s / roof.bytes_per_s for roof in roofs]
    rates = [point.flops_per_s for point in points] + [roof.flops_per_s for roof in roofs]
    return Frame(_decades(intensities), _decades(rates))


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 0.05)
    return low, max(high, low + 1)


_PREFIXES = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}


def _axes(frame: Frame) -> Iterator[str]:
    for power in range(frame.x[0], frame.x[1] + 1):
        x, _ = frame.at(10.0**power, 10.0 ** frame.y[0])
        yield _line("grid", x, TOP, x, HEIGHT - BOTTOM) + _text(x, HEIGHT - BOTTOM + 18, f"{10.0**power:g}", "middle")
    for power in range(frame.y[0], frame.y[1] + 1):
        _, y = frame.at(10.0 ** frame.x[0], 10.0**power)
        prefix = power // 3 * 3
        label = f"{10 ** (power - prefix)} {_PREFIXES.get(prefix, f'e{prefix}')}FLOP/s"
        yield _line("grid", LEFT, y, WIDTH - RIGHT, y) + _text(LEFT - 4, y + 4, label.replace("FLOP/s", "F/s"), "end")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "intensity, FLOP per byte of the formula", "middle")


Spot = tuple[float, float, Literal["start", "end"]]
"""Where a text may stand: x of its start or end, y of its baseline."""


class Labels:
    """What texts must keep away from: points, roofs, the frame's sides, and the texts that are drawn so far."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float, float, float]] = []  # from x to x, and baselines around y, so far

    def point(self, x: float, y: float) -> None:
        """A dot is there."""
        self._taken.append((x - DOT, x + DOT, y + 3, DOT + 6))

    def line(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A line is there."""
        steps = max(1, int((end[0] - start[0]) / DOT))
        for step in range(steps + 1):
            x, y = (one + (other - one) * step / steps for one, other in zip(start, end, strict=True))
            self._taken.append((x - DOT, x + DOT, y + 3, 6))

    def drawn(self, text: str, *spots: Spot) -> str:
        """The text as SVG at the first spot that is free; nothing where none is."""
        width = LETTER * len(text)
        for x, y, anchor in spots:
            left = x if anchor == "start" else x - width
            if self._is_free(left, left + width, y):
                self._taken.append((left, left + width, y, LABEL_HEIGHT))
                return _text(x, y, escape(text), anchor)
        return ""

    def _is_free(self, left: float, right: float, y: float) -> bool:
        if left < LEFT or right > WIDTH - RIGHT:
            return False
        return all(abs(y - at) >= room or left >= end or start >= right for start, end, at, room in self._taken)


def _key(points: Sequence[Point]) -> Iterator[str]:
    """What the colours mean."""
    x = float(LEFT + 12)
    for bound in [each for each in BOUNDS if any(point.bound == each for point in points)]:
        yield f'<circle class="{bound}" cx="{x}" cy="{TOP + 12}" r="4"/>'
        yield _text(x + 8, TOP + 16, f"bound by {bound}", "start")
        x += 24 + LETTER * len(f"bound by {bound}")


def _roofs(roofs: Sequence[Roof], frame: Frame, labels: Labels) -> Iterator[str]:
    """The lines, and beside each ridge the name: of what was measured below it, of a datasheet's above."""
    for roof in sorted(roofs, key=lambda each: each.sheet):
        yield _roof(roof, frame)
        x, y = frame.at(roof.flops_per_s / roof.bytes_per_s, roof.flops_per_s)
        above, below, right = y - 5, y + 14, WIDTH - RIGHT - 4
        first, then = (above, below) if roof.sheet else (below, above)
        spots: list[Spot] = [(x + 6, first, "start"), (right, first, "end"), (right, then, "end")]
        yield labels.drawn(roof.name, *spots, *((x + 6, below + step * LABEL_HEIGHT, "start") for step in (1, 2)))


def _roof(roof: Roof, frame: Frame) -> str:
    path = " ".join(f"{x},{y}" for x, y in _corners(roof, frame))
    title = f"<title>{escape(roof.name)}</title>"
    return f'<polyline class="{"sheet" if roof.sheet else "roof"}" points="{path}">{title}</polyline>'


def _corners(roof: Roof, frame: Frame) -> tuple[tuple[float, float], ...]:
    """Up along the bandwidth to the ridge, then level."""
    left, ridge, right = 10.0 ** frame.x[0], roof.flops_per_s / roof.bytes_per_s, 10.0 ** frame.x[1]
    start = max(left, 10.0 ** frame.y[0] / roof.bytes_per_s)
    return (
        frame.at(start, start * roof.bytes_per_s),
        frame.at(ridge, roof.flops_per_s),
        frame.at(right, roof.flops_per_s),
    )


def _points(points: Sequence[Point], frame: Frame, labels: Labels) -> Iterator[str]:
    names = _names(points)
    for point in points:
        x, y = frame.at(point.intensity, point.flops_per_s)
        title = f"<title>{escape(f'{point.name} {point.detail}'.strip())}</title>"
        yield f'<circle class="{escape(point.bound)}" cx="{x}" cy="{y}" r="4">{title}</circle>'
        if point in names:
            spots: list[Spot] = [(x + 7, y + 4, "start"), (x - 7, y + 4, "end")]
            yield labels.drawn(names[point], *(spots[::-1] if x > WIDTH * 0.7 else spots))


def _names(points: Sequence[Point]) -> dict[Point, str]:
    """What stands beside points: their names, or where there are many, at the highest point of each case the case."""
    if len(points) <= LEGEND:
        return {point: point.name for point in points}
    best: dict[str, Point] = {}
    for point in points:
        case = point.name.rpartition(" ")[2]
        if case not in best or point.flops_per_s > best[case].flops_per_s:
            best[case] = point
    return {point: case for case, point in best.items()} if len(best) <= LEGEND else {}


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


SPAN, BAR_WIDTH, BAR_HEIGHT = 0.1, 160, 16  # a bar shows changes of up to so much
BAR_STYLE = (
    ".iv .zero{stroke:#777}.iv .floor{fill:#8883}.iv .SLOWER{stroke:#b3261e;fill:#b3261e}"
    ".iv .FASTER{stroke:#1a7f37;fill:#1a7f37}.iv .SAME,.iv .UNKNOWN{stroke:#777;fill:#777}"
)


def interval(low: float, middle: float, high: float, floor: float, verdict: str) -> str:
    """A change's interval around its value as a small SVG, zero in the middle, with what does not matter shaded."""
    x = [_scaled(value, (-1, 1), 0, BAR_WIDTH) for value in (low / SPAN, middle / SPAN, high / SPAN)]
    left, right = (_scaled(sign * floor / SPAN, (-1, 1), 0, BAR_WIDTH) for sign in (-1, 1))
    half = BAR_HEIGHT / 2
    return (
        f'<svg class="iv" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" width="{BAR_WIDTH}" height="{BAR_HEIGHT}" role="img" '
        f'aria-label="interval"><rect class="floor" x="{left}" y="0" width="{right - left:.1f}" height="{BAR_HEIGHT}"/>'
        f'{_line("zero", BAR_WIDTH / 2, 0, BAR_WIDTH / 2, BAR_HEIGHT)}<g class="{escape(verdict)}">'
        f'<line x1="{x[0]}" y1="{half}" x2="{x[2]}" y2="{half}"/><circle cx="{x[1]}" cy="{half}" r="3"/></g></svg>'
    )
