"""The tables of the frontier, which settings no other one betters, and the chart of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clinveil.report.draw import Figure
from clinveil.report.numerals import NONE
from clinveil.study.engine import Results
from clinveil.study.frontier.chart import Spot, spots
from clinveil.study.frontier.grid import Cell
from clinveil.study.frontier.measures import KEPT
from clinveil.study.tables import Paper, Row, Table, shown

READING, WITHOUT, WITH = "attack.reading", "without the vectors", "with the channel"
STRATA = ("all", "rare", "names", "canaries")
Place = tuple[float, float]


def best_of(places: Mapping[str, Place]) -> set[str]:
    """The settings that no other one betters: none keeps as much and is read less, or keeps more and is read no more.

    Args:
        places: by name (share of utility that is kept, share that the strongest attacker reads).
    """

    def worse(one: Place, other: Place) -> bool:
        return other != one and other[0] >= one[0] and other[1] <= one[1]

    return {name for name, own in places.items() if not any(worse(own, other) for other in places.values())}


def places(results: Results, model: str = "lr") -> dict[str, Place]:
    """Of every setting what a classifier keeps and what is read of all words, where both were measured."""
    found = {}
    for cell in results.facts["cells"]:
        kept = results.of(KEPT, setting=cell.name, model=model)
        read = results.of("study.strongest", setting=cell.name, stratum="all")
        if kept and read and kept.value is not None and read.value is not None:
            found[cell.name] = kept.value, read.value
    return found


def tables(results: Results, paper: Paper) -> list[Table]:
    """All tables that have numbers."""
    spec, cells = paper.tables, results.facts["cells"]
    found = [
        spec["frontier"].table(_frontier(results, paper)),
        spec["utility"].table(_utility(results, paper)),
        spec["readers"].table(_readers(results, paper)),
        spec["draw"].table((cell.name, *spec["draw"].cells(results, setting=cell.name)) for cell in cells),
        spec["linkage"].table(_linkage(results, paper)),
        spec["pairs"].table(_pairs(results, paper)),
    ]
    return [table for table in found if table.rows]


def _frontier(results: Results, paper: Paper) -> Iterator[Row]:
    best, spec = best_of(places(results)), paper.tables["frontier"]
    for cell in results.facts["cells"]:
        kept = shown(results.of(KEPT, setting=cell.name, model="lr"))
        yield (cell.name, mark(cell, best), cell.vectors, kept, *spec.cells(results, setting=cell.name))


def mark(cell: Cell, best: set[str]) -> str:
    """What is said of a setting beside its name."""
    return "; ".join([*(["Pareto"] if cell.name in best else []), *([cell.paper] if cell.paper else [])]) or NONE


def _utility(results: Results, paper: Paper) -> Iterator[Row]:
    spec = paper.tables["utility"]
    for model in results.settings.models if results.settings.label else ():
        for cell in results.facts["cells"]:
            yield (f"{cell.name}; {model}", *spec.cells(results, setting=cell.name, model=model))


def _readers(results: Results, paper: Paper) -> Iterator[Row]:
    for cell in results.facts["cells"]:
        own = [f for f in results.findings if f.measure.startswith(READING) and f.detail["setting"] == cell.name]
        own = [f for f in own if not f.detail.get("unprotected")]
        for reader in dict.fromkeys(str(f.detail["reader"]) for f in own):
            of = {str(f.detail["stratum"]): f for f in own if f.detail["reader"] == reader}
            yield (f"{cell.name}; {reader}", *(shown(of.get(stratum)) for stratum in STRATA))


def _linkage(results: Results, paper: Paper) -> Iterator[Row]:
    for cell in results.facts["cells"]:
        own = results.all("attack.linkage", setting=cell.name)
        for against in dict.fromkeys((f.detail.get("source_of_knowledge"), f.detail.get("against")) for f in own):
            of = {f.detail["attacker"]: f for f in own if _known(f) == against}
            any_of = next(iter(of.values()))
            known = ", ".join(map(str, against))
            yield (
                f"{cell.name}; {known}",
                *(shown(of.get(who)) for who in (WITHOUT, WITH)),
                shown(any_of, show="chance"),
            )


def _known(finding: Any) -> tuple[Any, Any]:
    return finding.detail.get("source_of_knowledge"), finding.detail.get("against")


def _pairs(results: Results, paper: Paper) -> Iterator[Row]:
    for cell in results.facts["cells"]:
        for one in results.all("utility.similarity", setting=cell.name):
            if not one.detail.get("series"):
                covered = f"{one.detail['covered']} of {one.detail['asked']}"
                yield (f"{cell.name}; {one.detail['list']}", shown(one), covered)


def figures(results: Results) -> dict[str, list[Figure]]:
    """The frontier of the linear classifier and the strongest reader."""
    found = places(results)
    best = best_of(found)
    papers = {cell.name for cell in results.facts["cells"] if cell.paper}
    made = [Spot(name, read, kept, name in best, name in papers) for name, (kept, read) in found.items()]
    figure = spots(made)
    return {"frontier": [figure]} if figure else {}
