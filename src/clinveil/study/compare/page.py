"""Write what a comparison found: table, figure, findings and one page, for the owner only."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version

from markupsafe import Markup

from clinveil.core.files import private_text
from clinveil.core.finding import Finding, write_findings
from clinveil.study.chart import text
from clinveil.study.compare.run import Comparison, Measured
from clinveil.study.compare.table import CHOOSE, TEN_WORDS, Table, risk_of, table_of, utility_of
from clinveil.study.outputs import templates

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 56, 48, 16, 24
LABEL, CHARACTER = 15, 7  # height of a label, and width of a character, in pixels
CAPTION = "Utility and risk of each release: up and to the left is better"


@dataclass(frozen=True)
class Point:
    """A release in the figure: risk and utility as shares."""

    name: str
    risk: float
    utility: float


def write_outputs(comparison: Comparison) -> Table:
    """Write `table.md`, `figure.svg`, `findings.json` and `compare.html`; return the table."""
    out, table = comparison.folder, table_of(comparison)
    points = list(points_of(comparison))
    private_text(out / "table.md", table.markdown())
    private_text(out / "figure.svg", figure(points))
    write_findings(out / "findings.json", "compare", _findings(comparison), seed=comparison.settings.seed)
    private_text(out / "compare.html", _page(comparison, table, points))
    return table


def _findings(comparison: Comparison) -> Iterator[Finding]:
    """Every finding, with the name and the kind of its release, and what else the table has."""
    for measured in comparison.releases:
        detail = {"release": measured.name, "kind": measured.kind}
        for finding in (*measured.findings, *_more(measured)):
            yield replace(finding, detail={**finding.detail, **detail})


def _more(measured: Measured) -> Iterator[Finding]:
    if measured.why:
        yield Finding("compare.release", None, 0, None, detail={"why": measured.why})
        return
    n = sum(measured.gates.values())
    yield Finding("compare.distinct_words", measured.distinct, measured.distinct, None, unit="words")
    yield Finding("compare.seconds", measured.seconds, 1, "lower", unit="seconds")
    for outcome, count in measured.gates.items():
        yield Finding("compare.gates", count, n, None, unit="gates", count=count, detail={"outcome": outcome})


def points_of(comparison: Comparison) -> Iterator[Point]:
    """Yield the releases that have both a risk (notes found from ten words) and a utility (first classifier)."""
    model = comparison.settings.model[0]
    for measured in comparison.releases:
        utility = utility_of(measured, "utility.transfer", model)
        risk = risk_of(measured, "shadow", TEN_WORDS) or risk_of(measured, "recipient", TEN_WORDS)
        if utility is not None and utility.value is not None and risk is not None and risk.value is not None:
            yield Point(measured.name, risk.value, float(str(utility.detail["of_ceiling"])))


def figure(points: list[Point]) -> str:
    """Return the scatter plot of some releases as SVG, readable on its own and inside a page."""
    top = max([1.0, *(point.utility for point in points)])
    summary = "; ".join(f"{p.name}: {p.risk:.1%} of notes found, {p.utility:.0%} of real" for p in points)
    parts = [*_axes(top), *_marks(points, top)]
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" role="img" font-family="sans-serif" '
            'font-size="13" fill="currentColor"><title>{caption}</title><desc>{summary}</desc>{parts}</svg>\n'
        ).format(
            w=WIDTH, h=HEIGHT, caption=CAPTION, summary=summary or "no release has both", parts=Markup("").join(parts)
        )
    )


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float, top: float) -> float:
    return TOP + (1 - share / top) * (HEIGHT - TOP - BOTTOM)


def _axes(top: float) -> Iterator[Markup]:
    line = Markup('<path d="{d}" stroke="currentColor" stroke-opacity="{o}" fill="none"/>')
    for step in range(5):
        share = step / 4
        x, y = _x(share), _y(share, top)
        yield line.format(d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}", o=0.6 if step == 0 else 0.15)
        yield line.format(d=f"M{x:.1f} {TOP}V{HEIGHT - BOTTOM}", o=0.6 if step == 0 else 0.15)
        yield text(f"{share:.0%}", LEFT - 8, y + 4, "end")
        yield text(f"{share:.0%}", x, HEIGHT - BOTTOM + 18, "middle")
    yield text("notes found from ten words in a row", _x(0.5), HEIGHT - 8, "middle")
    turned = Markup('<g transform="translate(14 {y:.0f}) rotate(-90)">{words}</g>')
    yield turned.format(y=_y(top / 2, top), words=text("classifier on real notes, % of real", 0, 0, "middle"))


def _marks(points: list[Point], top: float) -> Iterator[Markup]:
    """Yield a dot and a label for each point; a label that would cover another one moves down."""
    placed: list[tuple[float, float, int]] = []
    for point in sorted(points, key=lambda point: (-point.utility, point.risk)):
        x, y = _x(point.risk), _y(point.utility, top)
        width = CHARACTER * len(point.name)
        left, end = (x + 9, "start") if x + 9 + width < WIDTH else (x - 9 - width, "end")
        low = y + 4
        while any(abs(low - other) < LABEL and left < at + w and at < left + width for at, other, w in placed):
            low += 1
        placed.append((left, low, width))
        yield Markup('<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>').format(x=x, y=y)
        yield text(point.name, left if end == "start" else x - 9, low, end)


def _page(comparison: Comparison, table: Table, points: list[Point]) -> str:
    pages, shown = templates(), {point.name for point in points}
    style = "".join(pages.get_template(name).render() for name in ("style.css", "compare.css"))
    return pages.get_template("compare.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        table=table,
        choose=CHOOSE,
        figure=Markup(figure(points)) if points else None,
        caption=CAPTION,
        missing=[measured.name for measured in comparison.releases if measured.name not in shown],
        failed=[(measured.name, ", ".join(measured.failed)) for measured in comparison.releases if measured.failed],
        version=version("clinveil"),
    )
