"""Tables 1 to 4 in the paper's layout: its own numbers, and ours with interval, chance and control beside each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE
from clinveil.study.jmir_2020 import paper
from clinveil.study.jmir_2020.best import best_names, best_of, best_patients, draws_floor, wilcoxon_says
from clinveil.study.jmir_2020.cells import Cell, Kind, cell
from clinveil.study.jmir_2020.grid import NAMES, Model, main_models
from clinveil.study.jmir_2020.results import Results

FARTHEST = "farthest (the paper's)"
PAPERS, MATCHED, OTHER_NAMES = (
    "random diagnoses, the paper's 1,000 draws and count/n",
    "diagnoses as prevalent and described in as many words",
    "other patients' names",
)


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        title: its number and what it counts. asks: the question that its numbers answer.
        columns: headings. cells: by window and heading. remarks: sentences below it.
    """

    ident: str
    title: str
    asks: str
    columns: tuple[str, ...]
    windows: tuple[int, ...]
    cells: Mapping[tuple[int, str], Cell] = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def has_paper(self) -> bool:
        """Whether the paper printed such a table."""
        return any(cell.paper != NONE for cell in self.cells.values())


def tables(results: Results) -> tuple[Table, ...]:
    """All tables; a number that could not be had is a dash, and why stands below."""
    return (_names(results), _difference(results), *_patients(results), _draws(results))


def metric_of(results: Results, wanted: str) -> str:
    """The metric of a table: the paper's, or the first that was asked for."""
    return wanted if wanted in results.settings.metric else results.settings.metric[0]


def _names(results: Results) -> Table:
    metric = metric_of(results, "cosine")
    found = results.by_key
    made = _Maker(results, "count")
    made.add("", lambda model: found.get(("attack.names", model.label, metric, "", "")), paper.TABLE_1)
    asks = f"Of the {results.k} nearest pairs of name tokens ({metric}), how many belong to one full name? n (%)"
    asks += ". Chance: as many random pairs. Control: names re-paired within position."
    return made.table("table-1", "Table 1: name pairs", asks, best_names(results))


def _difference(results: Results) -> Table:
    metric, measure = metric_of(results, "cityblock"), "attack.association_difference"
    found = results.by_key
    made = _Maker(results, "difference")
    made.add("", lambda model: found.get((measure, model.label, metric, "", "")), paper.TABLE_2)
    asks = f"How much farther ({metric}) do names lie from their bearers' diagnoses than from others? "
    asks += "Chance: the mean over names permuted over patients alike in name frequency and number of diagnoses; "
    asks += "P is against it. Control: names permuted over patients with as many notes."
    remarks = (*wilcoxon_says(results, metric), *best_of(results, measure, "difference"))
    return made.table("table-2", "Table 2: in-group minus out-group", asks, remarks)


def _patients(results: Results) -> Iterable[Table]:
    metric, measure = metric_of(results, "cityblock"), "attack.association_patients"
    found = results.by_key
    for letter, series, said in (
        ("", PAPERS, "as many random diagnoses; P = count/1,000 as in the paper, Holm over patients"),
        ("b", MATCHED, "diagnoses as prevalent and described in as many words, Holm over patients"),
        ("c", OTHER_NAMES, "other patients' names in place of his own, Benjamini-Hochberg over patients"),
    ):
        made = _Maker(results, "count")
        column = {} if letter else paper.TABLE_3
        made.add("", lambda model, series=series: found.get((measure, model.label, metric, series, "")), column)  # type: ignore[misc]
        asks = f"For how many patients ({metric}) is the distance significant against {said}? n (%)"
        title = f"Table 3{letter}: patients with a significant difference" + (", prevalence kept" if letter else "")
        yield made.table(f"table-3{letter}", title, asks, best_patients(results, series))


def _draws(results: Results) -> Table:
    metric, measure = metric_of(results, "cityblock"), "attack.scenario_draws"
    found = results.by_key
    made = _Maker(results, "share")
    for top in ("A@1", "A@5"):
        made.add(
            f", {top}",
            lambda model, top=top: found.get((measure, model.label, metric, FARTHEST, top)),  # type: ignore[misc]
            paper.TABLE_4[top],
        )
    draws = results.settings.scenario_draws
    asks = f"In what share (%) of {draws:,} random sets of 30 diagnoses does guessing the farthest ({metric}) "
    asks += "beat always guessing the most frequent? Chance and control: the same under other patients' names."
    remarks = (*best_of(results, measure, "share"), *draws_floor(results, measure))
    return made.table("table-4", "Table 4: beating the majority", asks, remarks)


Getter = Callable[[Model], Finding | None]


class _Maker:
    """Fills a table column by column."""

    def __init__(self, results: Results, kind: Kind) -> None:
        self.results, self.kind = results, kind
        self.columns: list[str] = []
        self.cells: dict[tuple[int, str], Cell] = {}

    def add(self, suffix: str, get: Getter, printed: Mapping[str, paper.Column]) -> None:
        """One column for each algorithm."""
        for model in main_models(self.results.settings):
            heading = NAMES[model.algorithm] + suffix
            if heading not in self.columns:
                self.columns.append(heading)
            said = printed.get(model.algorithm, {}).get(model.window, NONE)
            self.cells[model.window, heading] = cell(get(model), said, self.kind)

    def table(self, ident: str, title: str, asks: str, remarks: Iterable[str]) -> Table:
        """The table."""
        why = {cell.why: None for cell in self.cells.values() if cell.why}
        missing = [f"{label}: {reason}" for label, reason in self.results.missing.items()]
        windows = self.results.settings.window
        return Table(ident, title, asks, tuple(self.columns), windows, self.cells, (*remarks, *why, *missing))


def markdown(made: Iterable[Table]) -> str:
    """The tables as Markdown: for each algorithm the paper's number and ours."""
    return "\n".join(line for table in made for line in _markdown(table))


def _markdown(table: Table) -> Iterable[str]:
    heads = [
        head for column in table.columns for head in ((f"{column}, paper", column) if table.has_paper else (column,))
    ]
    yield f"### {table.title}\n\n{table.asks}\n"
    yield "| window | " + " | ".join(heads) + " |"
    yield "| ---: " * (len(heads) + 1) + "|"
    for window in table.windows:
        cells = [table.cells[window, column] for column in table.columns]
        parts = [part for c in cells for part in ((c.paper, c.line) if table.has_paper else (c.line,))]
        yield f"| {window} | " + " | ".join(parts) + " |"
    yield ""
    yield from (f"- {remark}" for remark in table.remarks)
    yield ""
