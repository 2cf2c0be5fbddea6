"""The roofline chart: a small SVG that stands by itself."""

import math
import xml.etree.ElementTree as ET

import pytest

from kernelci import charts
from kernelci.charts import Point, Roof

SVG = "{http://www.w3.org/2000/svg}"
ROOF = Roof(4e12, 800e12, "bfloat16, measured")
POINTS = [Point("a<b>", 0.5, 1e12, "memory"), Point("big", 900.0, 600e12, "compute")]


def _drawn(points: list[Point], *roofs: Roof) -> ET.Element:
    return ET.fromstring(charts.roofline(points, roofs))


def test_points_and_roofs() -> None:
    found = _drawn(POINTS, ROOF, Roof(4.8e12, 990e12, "sheet", sheet=True))
    assert ["roof", "sheet"] == [each.get("class") for each in found.iter(f"{SVG}polyline")]
    assert ["memory", "compute"] == [each.get("class") for each in found.iter(f"{SVG}circle")]
    assert "a<b>" in [each.text for each in found.iter(f"{SVG}title")]


def test_all_lies_within_the_frame() -> None:
    for each in _drawn([Point("far", 1e9, 1e-3, "memory"), *POINTS], ROOF).iter(f"{SVG}circle"):
        assert charts.LEFT <= float(each.get("cx", "")) <= charts.WIDTH - charts.RIGHT
        assert charts.TOP <= float(each.get("cy", "")) <= charts.HEIGHT - charts.BOTTOM


@pytest.mark.parametrize(
    ("points", "roofs"),
    [
        ([], [ROOF]),
        (POINTS, []),
        ([Point("no FLOP", 0.0, 0.0, "memory")], [ROOF]),
        ([Point("", math.inf, 1.0, "")], [ROOF]),
    ],
)
def test_nothing_to_draw(points: list[Point], roofs: list[Roof]) -> None:
    assert "" == charts.roofline(points, roofs)


def test_many_points_are_named_on_hovering_only() -> None:
    found = _drawn([Point(f"case {number}", 1.0 + number, 1e12, "memory") for number in range(200)], ROOF)
    assert not [each for each in found.iter(f"{SVG}text") if (each.text or "").startswith("case")]
