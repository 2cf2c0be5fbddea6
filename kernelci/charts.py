"""A roofline chart as SVG: both axes logarithmic, the roof as a line, a point a case; legible on light and dark."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from msgspec import Struct

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 16, 46
LEGEND = 24  # of so many points names stand beside them, where there is room; the others tell theirs on hovering
LABEL_WIDTH, LABEL_HEIGHT = 240, 13
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
    parts = (*_axes(frame), *(_roof(roof, frame) for roof in above), *_points(shown, frame))
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


def _roof(roof: Roof, frame: Frame) -> str:
    """Up along the bandwidth to the ridge, then level."""
    left, ridge, right = 10.0 ** frame.x[0], roof.flops_per_s / roof.bytes_per_s, 10.0 ** frame.x[1]
    start = max(left, 10.0 ** frame.y[0] / roof.bytes_per_s)
    corners = (
        frame.at(start, start * roof.bytes_per_s),
        frame.at(ridge, roof.flops_per_s),
        frame.at(right, roof.flops_per_s),
    )
    path = " ".join(f"{x},{y}" for x, y in corners)
    title = f"<title>{escape(roof.name)}</title>"
    return f'<polyline class="{"sheet" if roof.sheet else "roof"}" points="{path}">{title}</polyline>'


def _points(points: Sequence[Point], frame: Frame) -> Iterator[str]:
    named: list[tuple[float, float]] = []
    for point in points:
        x, y = frame.at(point.intensity, point.flops_per_s)
        title = f"<title>{escape(f'{point.name} {point.detail}'.strip())}</title>"
        yield f'<circle class="{escape(point.bound)}" cx="{x}" cy="{y}" r="4">{title}</circle>'
        free = all(abs(y - other) >= LABEL_HEIGHT or abs(x - beside) >= LABEL_WIDTH for beside, other in named)
        if len(points) <= LEGEND and free:
            named.append((x, y))
            end = x > WIDTH * 0.7
            yield _text(x - 7 if end else x + 7, y + 4, escape(point.name), "end" if end else "start")


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
