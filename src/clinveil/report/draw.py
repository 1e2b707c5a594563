"""Convert Altair charts of the studies to inline SVG that takes colours and fonts from the page's CSS.

The release report draws its own bars (`bars.py`) and does not use this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree

Glyph = Literal[
    "dot", "line", "tick", "ring", "diamond", "dash",
    "square-1", "square-2", "square-3", "square-4", "point-1", "point-2", "point-3", "point-4",
]  # fmt: skip
Legend = tuple[tuple[Glyph, str], ...]
POINTS: tuple[Glyph, ...] = ("point-1", "point-2", "point-3", "point-4")
SHAPES = ("circle", "diamond", "square", "triangle-up")
INK, MUTE, GRID = "var(--fig-ink)", "var(--fig-mute)", "var(--fig-grid)"
SERIES = ("var(--fig-1)", "var(--fig-2)", "var(--fig-3)", "var(--fig-4)")
_DROP = ("font-family", "class", "role", "aria-roledescription", "aria-hidden", "pointer-events", "aria-label")


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG, its caption, its legend (glyph and label) and a description for screen readers."""

    ident: str
    caption: str
    says: str
    legend: Legend
    svg: str


def page_svg(spec: dict[str, Any], ident: str, title: str, says: str) -> str:
    """Return the chart as `<svg>` with a title and a description.

    Ids are prefixed with the figure's name because several charts share a page.
    """
    import vl_convert

    source = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    root = ElementTree.fromstring(source)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        _clean(element, ident)
    _prune(root)
    root.attrib |= {"role": "img", "aria-labelledby": f"{ident}-title {ident}-says"}
    for position, (tag, words) in enumerate((("title", title), ("desc", says))):
        label = ElementTree.Element(tag, id=f"{ident}-{'says' if tag == 'desc' else 'title'}")
        label.text = words
        root.insert(position, label)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, ident: str) -> None:
    for name in list(element.attrib):
        if name in _DROP or "}" in name:
            del element.attrib[name]
        elif name == "id":
            element.set("id", f"{ident}-{element.attrib[name]}")
        elif "url(#" in element.attrib[name]:
            element.set(name, element.attrib[name].replace("url(#", f"url(#{ident}-"))


def _prune(parent: ElementTree.Element) -> None:
    """Remove the empty and invisible shapes that Vega adds."""
    for child in list(parent):
        _prune(child)
        hidden = child.get("display") == "none" or child.get("d") == "M0,0h0v0h0Z"
        if hidden or (child.tag == "g" and len(child) == 0):
            parent.remove(child)
