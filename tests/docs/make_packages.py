"""Draw `docs/packages.svg` from the code: `python tests/docs/make_packages.py`; a test compares the
file with the code.

Each row is a layer of the import contract. Each box is a package with the first line of its
docstring. An arrow means that a package imports another. Arrows that follow from others, and arrows
to packages that most packages import (core, stats, scale, lexicons), are left out.
"""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path

from clinveil.core import first_paragraph

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "clinveil"
PICTURE = ROOT / "docs" / "packages.svg"
WIDTH = 1080
ROW = 96
BOX = 62
GAP = 24
EVERYWHERE = {"core", "stats", "scale", "lexicons"}


def layers() -> list[list[str]]:
    """Return the packages of each layer, top first, from the import contract."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ][0]
    return [[package.strip() for package in layer.split("|")] for layer in contract["layers"]]


def arrows() -> set[tuple[str, str]]:
    """Return (package, imported package), from the import statements."""
    imports = set()
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clinveil."):
                imports.add((package, str(node.module).split(".")[1]))
    packages = {package for layer in layers() for package in layer}
    direct = {(a, b) for a, b in imports if a != b and {a, b} <= packages - EVERYWHERE}
    return {
        (a, b)
        for a, b in direct
        if not any((a, c) in direct and _path(c, b, direct) for c in packages - {b})
    }


def _path(start: str, end: str, direct: set[tuple[str, str]]) -> bool:
    """Return whether arrows connect one package to another."""
    return (start, end) in direct or any(_path(b, end, direct) for a, b in direct if a == start)


def summary(package: str) -> str:
    """Return the first line of a package's docstring."""
    tree = ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8"))
    return first_paragraph(ast.get_docstring(tree)).rstrip(".")


def positions() -> dict[str, tuple[float, float, float]]:
    """Return package -> left, top, width of its box."""
    boxes = {}
    for number, layer in enumerate(layers()):
        width = (WIDTH - GAP * (len(layer) + 1)) / len(layer)
        for column, package in enumerate(layer):
            boxes[package] = (GAP + column * (width + GAP), GAP + number * ROW, width)
    return boxes


def box(package: str, left: float, top: float, width: float) -> str:
    """Return the SVG of a rectangle with the package's name and summary, cut to two lines."""
    fits = int(width / 6.4)
    lines = [""]
    words = summary(package).split()
    for word in words:
        if len(lines[-1]) + len(word) < fits:
            lines[-1] = f"{lines[-1]} {word}".strip()
        else:
            lines.append(word)
    text = "".join(
        f'<text x="{left + 12:.0f}" y="{top + 38 + 15 * n:.0f}" class="s">{escape(line)}</text>'
        for n, line in enumerate(lines[:2])
    )
    name = f'<text x="{left + 12:.0f}" y="{top + 20:.0f}" class="n">{package}</text>'
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{BOX}"'
        f' rx="6"/>{name}{text}'
    )


def line(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """Return the SVG of an arrow from the bottom of one box to the top of another."""
    x1 = start[0] + start[2] / 2
    y1 = start[1] + BOX
    x2 = end[0] + end[2] / 2
    y2 = end[1]
    bend = (y2 - y1) / 2
    side = 0 if y2 - y1 < ROW else 90 * (1 if x1 <= x2 else -1)
    points = [(x1, y1), (x1 + side, y1 + bend), (x2 + side, y2 - bend), (x2, y2)]
    first, *rest = [f"{x:.0f} {y:.0f}" for x, y in points]
    return f'<path d="M{first}C{" ".join(rest)}"/>'


def picture() -> str:
    """Return the complete SVG."""
    boxes = positions()
    drawn = [line(boxes[a], boxes[b]) for a, b in sorted(arrows())]
    height = GAP + ROW * len(layers())
    style = (
        "rect{fill:#f7f9fb;stroke:#5b7a99}path{fill:none;stroke:#9db2c6;stroke-width:1.2;marker-end:url(#a)}.n{font:600"
        " 15px sans-serif;fill:#1d3348}.s{font:12px sans-serif;fill:#44576a}"
    )
    head = (
        '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto">'
    )
    marker = (
        f'<defs>{head}<path d="M0 0L8 4L0 8z" style="fill:#9db2c6;stroke:none"/></marker></defs>'
    )
    parts = [
        f"<style>{style}</style>",
        marker,
        '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>',
    ]
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    return (
        "\n".join(
            [
                opening,
                *parts,
                *drawn,
                *(box(name, *place) for name, place in boxes.items()),
                "</svg>",
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
