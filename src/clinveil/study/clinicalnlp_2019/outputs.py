"""What a finished study leaves: tables, figures, findings, a row a unit, and the page. All of it is secret."""

from __future__ import annotations

import json
from pathlib import Path

from clinveil.core.files import private_folder, private_text
from clinveil.core.finding import document
from clinveil.study.clinicalnlp_2019.figures import figures
from clinveil.study.clinicalnlp_2019.plan import Study
from clinveil.study.clinicalnlp_2019.results import Results
from clinveil.study.clinicalnlp_2019.sample import sample_table
from clinveil.study.clinicalnlp_2019.tables import tables
from clinveil.study.jmir_2020.figures import standalone
from clinveil.study.plain import HIDDEN, Words, markdown, page

TITLE = "Synthetic notes of a language model: privacy and utility"
FILES = {"pairs", "nli", "general"}
LIMITS = (
    "The tiny and small sizes have a fraction of the paper's notes, and smaller models; what is compared is the order "
    "of the rows and what the floors do to the privacy score, not the numbers themselves.",
    "A low audit result means that these attacks failed, not that the notes are safe.",
    "S-PDTP is measured on one training run and its variants; it bounds nothing and is no epsilon.",
    "Sentence pairs, word pairs and casing stand in for MedNLI and MIMIC-III, which need a credential.",
)


def write_outputs(results: Results, study: Study, out: Path) -> None:
    """Write `tables.md`, `figures/*.svg`, `findings.json`, `units-*.csv` and `study.html`, for their owner only."""
    _forget(out)
    made, drawn = tables(results), figures(results)
    with_sample = [*made, sample_table(study)]
    private_text(out / "tables.md", markdown(with_sample))
    folder = private_folder(out / "figures")
    for figure in (figure for below in drawn.values() for figure in below):
        private_text(folder / f"{figure.ident}.svg", standalone(figure))
    for name, table in results.tables.items():
        private_text(out / f"{name}.csv", table)
    found = document("study clinicalnlp-2019", results.findings, seed=results.settings.seed)
    private_text(out / "findings.json", json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    told = results.settings.flat({*HIDDEN, *FILES})
    words = Words(TITLE, "Study of ClinicalNLP 2019 (Melamud and Shivade) on notes of your own", _lead(results), LIMITS)
    private_text(out / "study.html", page(words, with_sample, drawn, told))


def _forget(out: Path) -> None:
    """What the same folder held of a study with other settings must not stand beside this one's."""
    for old in (*out.glob("units-*.csv"), *(out / "figures").glob("fig-*.svg")):
        old.unlink()


def _lead(results: Results) -> str:
    counts = results.counts["notes"]
    return (
        f"{counts['notes_train']:,} training notes of {counts['words_train']:,} words. Every privacy score stands "
        "beside what leaving out somebody else does to it, and what another seed does: the paper has neither."
    )
