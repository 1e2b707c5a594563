"""Figures of the studies: positions by hand, ticks, description, and a file of its own."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from clinveil.study.chart import Axes, Point, lines, standalone, ticks

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    "low, high, expected",
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0.15, 0.55, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), (3, 3, [3, 4, 5, 6])],
)
def test_ticks_are_round_and_cover_the_values(low, high, expected):
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high
    assert found[: len(expected)] == pytest.approx(expected[: len(found)])


def test_higher_values_are_drawn_higher_and_intervals_span_them():
    points = [Point("s", "0", 0.2, 0.1, 0.3), Point("s", "3", 0.8), Point("s", "3", 0.5, kind="reference")]
    figure = lines("f", "<caption>", points, Axes("N", "score", ("0", "3")))
    root = ElementTree.fromstring(figure.svg)
    places = [m.get("transform") for m in root.iter(f"{SVG}path") if m.get("transform")]
    (x0, y0), (x1, y1) = (tuple(map(float, p.removeprefix("translate(").rstrip(")").split())) for p in places)
    assert x0 < x1 and y1 < y0
    bars = [p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke-width") == "1.5" and "V" in p.get("d")]
    top, bottom = sorted(float(end) for end in bars[0][1:].split(" ")[1].split("V"))
    assert len(bars) == 1 and top < y0 < bottom
    assert root.find(f"{SVG}title").text == "<caption>"
    assert figure.legend == (("point-1", "s"), ("dash", "broken line"))
    assert "s, 3 (broken line): 0.5" in figure.says


def test_a_file_of_its_own_has_its_colours():
    figure = lines("f", "c", [Point("s", 2, 1.0), Point("s", 8, 2.0)], Axes("window", "score", log=True))
    root = ElementTree.fromstring(standalone(figure))
    assert root[0].tag == f"{SVG}style" and "--fig-1" in root[0].text
    assert {"2", "8"} <= {text.text for text in root.iter(f"{SVG}text")}
