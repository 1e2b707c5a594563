"""Figure 1, word similarity by N, and Figure 2, the change of F1 by N."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.report.draw import Figure
from clinveil.study.chart import Point, lines
from clinveil.study.jamia_2020.results import Results
from clinveil.study.jamia_2020.tables import points

FIRST = ("pedersen", "hliaoutakis34", "mayosrs", "umnsrs_sim")


def figures(results: Results) -> dict[str, list[Figure]]:
    """The figures that have numbers, by the table that they stand below."""
    one = lines(
        "fig-1",
        "Figure 1: word similarity by N (broken lines: out-of-domain vectors on the pairs that both cover)",
        list(_similarity(results)),
        results.settings.n,
        "Pearson correlation",
    )
    two = lines(
        "fig-2",
        "Figure 2: change of macro-F1 against the original, points (neighbours of the first vectors)",
        list(_change(results)),
        results.settings.n,
        "points",
    )
    return {name: [figure] for name, figure in (("table-3", one), ("table-4", two)) if figure}


def _similarity(results: Results) -> Iterator[Point]:
    found = [(k, m) for k, m in results.similarity.items() if k[0] == results.settings.similarity_algorithm[0]]
    own = [item for item in found if item[0][2] != "all pairs"] or found
    names = sorted({k[1] for k, _ in own}, key=lambda n: (not n.startswith(FIRST), n))[:4]
    for (_, name, _, n), mean in own:
        if name in names:
            yield Point(name, n, mean.value, mean.low, mean.high)
    for row in results.references[: len(names)]:
        if row["list"] in names and row["value"] is not None:
            yield from (Point(row["list"], n, row["value"], dashed=True) for n in results.settings.n)


def _change(results: Results) -> Iterator[Point]:
    first = results.settings.algorithm[0]
    for finding in results.classification:
        detail = finding.detail
        if finding.measure != "utility.classification_loss" or detail.get("transfer") or finding.value is None:
            continue
        original, near = detail["treated_kind"] == "original", detail["treated_kind"] == "neighbours"
        if detail.get("vectors") not in ("", first) or not (
            original or (near and detail["treated_algorithm"] == first)
        ):
            continue
        n = str(detail["treated_n"] or "0")
        yield Point(str(detail["model"]), n, -100 * finding.value, points(finding.high), points(finding.low))
