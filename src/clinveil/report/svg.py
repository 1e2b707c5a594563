"""A Vega-Lite specification to an SVG that can stand in a page: no names of its own, no fonts, no network."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

_DROP = ("font-family", "class", "role", "aria-roledescription", "aria-hidden", "pointer-events", "aria-label")


def page_svg(spec: dict[str, Any], ident: str, title: str, says: str) -> str:
    """The chart as `<svg>` with a title and a description for those who do not see it.

    Ids get the figure's name in front (several charts share a page); fonts come from the page's CSS.
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
    """Take out the empty and invisible shapes that Vega leaves behind."""
    for child in list(parent):
        _prune(child)
        hidden = child.get("display") == "none" or child.get("d") == "M0,0h0v0h0Z"
        if hidden or (child.tag == "g" and len(child) == 0):
            parent.remove(child)
