"""What a finished study leaves: tables, figures, findings and the page. All of it is secret."""

from __future__ import annotations

import json
from pathlib import Path

from clinveil.core.files import private_folder, private_text
from clinveil.core.finding import document
from clinveil.study.jmir_2020.figures import figures, standalone
from clinveil.study.jmir_2020.page import page
from clinveil.study.jmir_2020.results import Results
from clinveil.study.jmir_2020.tables import markdown, tables

TABLES, FINDINGS, PAGE, FIGURES = "tables.md", "findings.json", "study.html", "figures"


def write_outputs(results: Results, out: Path) -> None:
    """Write `tables.md`, `figures/*.svg`, `findings.json` and `study.html`, readable by their owner only."""
    made = tables(results)
    drawn = figures(results, made)
    private_text(out / TABLES, markdown(made))
    folder = private_folder(out / FIGURES)
    for figure in drawn:
        private_text(folder / f"{figure.ident}.svg", standalone(figure))
    found = document("study jmir-2020", results.everything, seed=results.settings.seed)
    private_text(out / FINDINGS, json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    private_text(out / PAGE, page(results, made, drawn))
