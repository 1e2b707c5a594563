"""The tables of paper C in the order of the page; only the last one contains words of a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clinveil.report import NONE, decimals
from papers.clinicalnlp_2019.privacy import RareWords
from papers.clinicalnlp_2019.settings import (
    REAL,
    UNIGRAM,
    UNIGRAM_OF_AUDITED,
    SyntheticSettings,
    corpus_label,
    label_of,
)
from papers.clinicalnlp_2019.split import PARTS
from papers.clinicalnlp_2019.steps import NoteParts
from papers.tables import CellRow, Paper, Results, Table, TableSpec, shown

# Recipe and access of the attacker.
ACCESSES = (
    ("exact", "the model"),
    ("exact", "released notes"),
    ("compat", "the model"),
)
SAMPLE_LINES = 24  # of the sampled note
MODEL_COLUMNS = 3  # of table 2, before privacy and tasks


@dataclass(frozen=True)
class StudyResults:
    """Findings, and what else the tables show.

    Attributes:
        labels: of the compared corpora. rare_words: by model. sample: label and text of a note.
    """

    findings: Results
    settings: SyntheticSettings
    parts: NoteParts = field(repr=False)
    labels: tuple[str, ...]
    rare_words: Mapping[str, RareWords]
    sample: tuple[str, str] = field(repr=False)


def tables(results: StudyResults, paper: Paper) -> list[Table]:
    """Return all tables."""
    specs = paper.tables
    findings = results.findings
    audits = specs["audits"]
    falls = [
        (
            *finding.labels,
            shown(finding, 2),
            shown(finding, show="p"),
        )
        for finding in findings.all("attack.pdtp_fall")
    ]
    by_name = {
        "table-1": specs["table-1"].table(_counts(results.parts, specs["table-1"])),
        "table-2": _table_2(results, specs["table-2"]),
        "privacy": specs["privacy"].table(_privacy(results, specs["privacy"])),
        "audits": audits.table(
            (label, *audits.cells(findings, corpus_label(label))) for label in results.labels
        ),
        "falls": specs["falls"].table(falls),
        "analysis": specs["analysis"].table(_rare_words(results.rare_words)),
        "differences": _differences(results.settings, specs["differences"]),
        "figure-1": _sample(results.sample, specs["figure-1"]),
    }
    for name in ("table-2-small", "table-2-large"):
        printed = specs[name].paper.items()
        by_name[name] = specs[name].table((label, *cells) for label, cells in printed)
    return [by_name[name] for name in specs]


def _counts(parts: NoteParts, spec: TableSpec) -> Iterator[CellRow]:
    yield (
        "here: notes",
        *(f"{len(parts.part(name)):,}" for name in PARTS),
        *(f"{parts.part(name).words:,}" for name in PARTS),
        f"{len(parts.words):,}",
        f"{100 * parts.unknown_share:.1f} %",
    )
    for name, cells in spec.paper.items():
        yield (f"paper: {name}", *cells)


def _table_2(results: StudyResults, spec: TableSpec) -> Table:
    """Return the paper's columns with the findings; the last row is the chance level."""
    findings = results.findings
    models = spec.columns[:MODEL_COLUMNS]
    tasks = spec.columns[MODEL_COLUMNS:]
    scored = findings.all("utility.similarity")
    sizes = {finding.labels[1]: finding.n for finding in scored}
    names = sorted(sizes)
    rows: list[CellRow] = []
    for label in results.labels:
        corpus = corpus_label(label)
        rows.append(
            (
                label,
                *(column.cell(findings, corpus) for column in models),
                _privacy_cell(results, label),
                *(shown(findings.first("utility.similarity", corpus, name)) for name in names),
                *(column.cell(findings, corpus) for column in tasks),
            )
        )
    real_notes = corpus_label(REAL)
    real = [findings.first("utility.similarity", real_notes, name) for name in names]
    real += [column.finding(findings, real_notes) for column in tasks]
    dashes = (NONE,) * (len(models) + 1)
    rows.append(("by chance", *dashes, *(shown(finding, show="chance") for finding in real)))
    heads = [
        "training notes",
        *(column.head for column in models),
        "privacy (placebo, reseed floor)",
        *names,
        *(column.head for column in tasks),
    ]
    values = {
        "min_pair_count": results.settings.min_pair_count,
        "pairs": ", ".join(f"{name} {sizes[name]}" for name in names) or "none",
        "power": _power(findings),
    }
    return spec.table(rows, heads=heads, values=values)


def _power(findings: Results) -> str:
    """Return a remark on whether inference has power: real notes must exceed the most frequent
    label.
    """
    real = findings.first("utility.nli", corpus_label(REAL), "vectors")
    if real is None:
        return ""
    scores = (
        f"real notes score {shown(real)}, the most frequent label scores {decimals(real.chance)}"
    )
    if real.low is None or (real.chance is not None and real.low <= real.chance):
        return f"Inference has no power here: {scores}. The column is not informative."
    return f"Inference has power here: {scores}."


def _privacy_cell(results: StudyResults, label: str) -> str:
    words = [corpus_label(label)]
    if label != UNIGRAM:
        words += [results.settings.main, "the model"]
    score = results.findings.first("attack.pdtp", *words)
    if score is None:
        return NONE
    floor = results.findings.first("attack.pdtp_reseed_floor", *words)
    reseeded = "none" if label == UNIGRAM else shown(floor, 2, "value")
    return f"{shown(score, 2)} ({shown(score, 2, 'control')}, {reseeded})"


def _privacy(results: StudyResults, spec: TableSpec) -> Iterator[CellRow]:
    """Yield score, floors, effect, gap and sign for each dropout: by model, notes and recipe
    compat.
    """
    findings = results.findings
    for label in map(label_of, results.settings.dropout):
        for mode, access in ACCESSES:
            words = (corpus_label(label), mode, access)
            if findings.first("attack.pdtp", *words) is not None:
                heading = access if mode == "exact" else f"{access}, compat"
                yield (label, heading, *spec.cells(findings, *words))
    for label, access in (
        (UNIGRAM, "the model, all patients"),
        (UNIGRAM_OF_AUDITED, "the model"),
    ):
        if findings.first("attack.pdtp", corpus_label(label)) is not None:
            score, placebo, _, *others = spec.cells(findings, corpus_label(label))
            yield ("unigram", access, score, placebo, "none", *others[:-1], NONE)


def _rare_words(by_model: Mapping[str, RareWords]) -> Iterator[CellRow]:
    """Yield the counts of section 4.4: the words with the largest differences."""
    for label, rare in by_model.items():
        counts = (rare.positive, rare.only_here, rare.before_only_here, rare.pair_only_here)
        yield (
            label,
            *(f"{count} of {rare.units}" for count in counts),
            f"{rare.occurrences:.0f}",
            f"{rare.position:.2f}",
        )


def _differences(settings: SyntheticSettings, spec: TableSpec) -> Table:
    """Return the differences of this run from the paper and its released code."""
    first = settings.dropout[0]
    compat = settings.leave_out(first, "compat").lm.recipe()
    by_patient = "by patient: no patient is on both sides"
    values = {
        "split": "by note" if settings.by_note else by_patient,
        "exact": settings.leave_out(first, "exact").lm.recipe(),
        "main": settings.main,
        "units": settings.units,
        "dim": settings.dim,
        "inference": settings.inference,
        "casing": settings.casing,
        "min_pair_count": settings.min_pair_count,
        "compat_run": f"the same (epochs: {compat.epochs})" if settings.compat else "not run",
    }
    return spec.table(tuple(cell.format_map(values) for cell in row) for row in spec.fixed_rows)


def _sample(sample: tuple[str, str], spec: TableSpec) -> Table:
    """Return the first lines of a synthetic note of median length."""
    label, text = sample
    lines = text.split("\n")[:SAMPLE_LINES]
    rows = [(str(number), line) for number, line in enumerate(lines, 1)]
    return spec.table(rows, heads=("line", f"synthetic ({label})"))
