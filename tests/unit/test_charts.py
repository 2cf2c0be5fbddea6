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


def _circles(found: ET.Element) -> list[ET.Element]:
    """The points; those of the key to the colours have no title."""
    return [each for each in found.iter(f"{SVG}circle") if each.find(f"{SVG}title") is not None]


def test_points_and_roofs() -> None:
    found = _drawn(POINTS, ROOF, Roof(4.8e12, 990e12, "sheet", sheet=True))
    assert ["roof", "sheet"] == [each.get("class") for each in found.iter(f"{SVG}polyline")]
    assert ["memory", "compute"] == [each.get("class") for each in _circles(found)]
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


def _texts(found: ET.Element) -> list[str]:
    return [each.text or "" for each in found.iter(f"{SVG}text")]


def test_colours_and_roofs_are_named() -> None:
    texts = _texts(_drawn(POINTS, ROOF, Roof(4.8e12, 990e12, "datasheet", sheet=True)))
    assert {"bound by memory", "bound by compute", "bfloat16, measured", "datasheet"} <= set(texts)
    assert "bound by latency" not in texts


def test_of_many_points_each_case_is_named_once_where_it_is_highest() -> None:
    points = [
        Point(f"matmul/k{kernel} case-{case}", 10.0**case, 1e12 * (1 + kernel), "memory")
        for case in range(3)
        for kernel in range(20)
    ]
    found = _drawn(points, ROOF)
    assert ["case-0", "case-1", "case-2"] == [text for text in _texts(found) if text.startswith("case")]
    highest = min(float(each.get("cy", "")) for each in _circles(found))
    labels = [float(each.get("y", "")) for each in found.iter(f"{SVG}text") if (each.text or "").startswith("case")]
    assert [highest + 4] * 3 == labels


def test_names_keep_apart() -> None:
    points = [Point(f"a name of some length {number}", 1.0, 1e12, "memory") for number in range(5)]
    assert 1 == sum(text.startswith("a name") for text in _texts(_drawn(points, ROOF)))


def test_many_points_are_named_on_hovering_only() -> None:
    found = _drawn([Point(f"case {number}", 1.0 + number, 1e12, "memory") for number in range(200)], ROOF)
    assert not [each for each in found.iter(f"{SVG}text") if (each.text or "").startswith("case")]
