"""Tables of the study of paper C: Tables 1 and 2, the privacy score, audits and section 4.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clinveil.corpus.medtext.prepare import PARTS
from clinveil.report.numerals import NONE, decimals
from clinveil.study.clinicalnlp_2019.settings import REAL, SAME, UNIGRAM, StudySettings, label_of
from clinveil.study.engine import Results
from clinveil.study.tables import Paper, Row, Spec, Table, shown

SEEN = (("exact", "the model"), ("exact", "released notes"), ("compat", "the model"))  # mode and access of the attacker
LINES = 24  # of the sampled note
FALL = ("corpus", "against", "mode", "of")  # details that name a decrease of score or effect


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables in the order of the page; only the last one contains words of a note."""
    spec, labels = paper.tables, results.facts["labels"]
    counts: list[Row] = []
    for name, of_notes in results.facts["counts"].items():
        sizes = [_count(of_notes.get(f"{unit}_{part}")) for unit in ("notes", "words") for part in PARTS]
        counts.append((f"here: {name}", *sizes, _count(of_notes["vocabulary"]), f"{100 * of_notes['unknown']:.1f} %"))
    counts += [(f"paper: {name}", *cells) for name, cells in spec["table-1"].paper.items()]
    by_name = {
        "table-1": spec["table-1"].table(counts),
        "table-2": _table_2(results, spec["table-2"]),
        "privacy": spec["privacy"].table(_privacy(results, spec["privacy"])),
        "audits": spec["audits"].table((label, *spec["audits"].cells(results, corpus=label)) for label in labels),
        "falls": spec["falls"].table(
            (*(str(f.detail[name]) for name in FALL), shown(f, 2), shown(f, show="p"))
            for f in results.all("attack.pdtp_fall")
        ),
        "analysis": spec["analysis"].table(_rarities(results)),
        "differences": _differences(results.settings, spec["differences"]),
        "figure-1": _sample(results, spec["figure-1"]),
    }
    for name in ("table-2-small", "table-2-large"):
        by_name[name] = spec[name].table((label, *cells) for label, cells in spec[name].paper.items())
    return [by_name[name] for name in spec]


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _table_2(results: Results, spec: Spec) -> Table:
    """Return the paper's columns with the findings; the last row is the chance level."""
    models, tasks = spec.columns[:3], spec.columns[3:]
    names = sorted({str(finding.detail["list"]) for finding in results.all("utility.similarity")})
    rows: list[Row] = []
    for label in results.facts["labels"]:
        own = [column.cell(results, corpus=label) for column in models]
        pairs = [shown(results.of("utility.similarity", corpus=label, list=name)) for name in names]
        last = [column.cell(results, corpus=label) for column in tasks]
        rows.append((label, *own, _privacy_cell(results, label), *pairs, *last))
    real = [results.of("utility.similarity", corpus=REAL, list=name) for name in names]
    real += [column.of(results, corpus=REAL) for column in tasks]
    rows.append(("by chance", *(NONE,) * 4, *(shown(finding, show="chance") for finding in real)))
    sizes = {str(finding.detail["list"]): finding.n for finding in results.all("utility.similarity")}
    lists = ", ".join(f"{name} {sizes[name]}" for name in names) or "none"
    heads = ["training notes", *(column.head for column in models), "privacy (placebo, reseed floor)", *names]
    fill = {"min_pair_count": results.settings.min_pair_count, "pairs": lists, "power": _power(results)}
    return spec.table(rows, heads=[*heads, *(column.head for column in tasks)], **fill)


def _power(results: Results) -> str:
    """Return a remark on whether inference has power: real notes must exceed the most frequent label."""
    real = results.of("utility.nli", corpus=REAL, series="vectors")
    if real is None:
        return ""
    scores = f"real notes score {shown(real)}, the most frequent label scores {decimals(real.chance)}"
    if real.low is None or (real.chance is not None and real.low <= real.chance):
        return f"Inference has no power here: {scores}. The column is not informative."
    return f"Inference has power here: {scores}."


def _privacy_cell(results: Results, label: str) -> str:
    own = {} if label == UNIGRAM else {"mode": results.settings.main, "from": "the model"}
    found = results.of("attack.pdtp", corpus=label, **own)
    floor = results.of("attack.pdtp_reseed_floor", corpus=label, **own)
    reseeded = "none" if label == UNIGRAM else shown(floor, 2, "value")
    return NONE if found is None else f"{shown(found, 2)} ({shown(found, 2, 'control')}, {reseeded})"


def _privacy(results: Results, spec: Spec) -> Iterator[Row]:
    """Yield score, floors, effect, gap and sign for each dropout: by model, notes and mode compat."""
    for label in map(label_of, results.settings.dropout):
        for mode, by in SEEN:
            own = {"corpus": label, "mode": mode, "from": by}
            if results.of("attack.pdtp", **own) is not None:
                yield (label, by if mode == "exact" else f"{by}, compat", *spec.cells(results, **own))
    for label, by in ((UNIGRAM, "the model, all patients"), (SAME, "the model")):
        if results.of("attack.pdtp", corpus=label) is not None:
            score, placebo, _, *rest = spec.cells(results, corpus=label)
            yield ("unigram", by, score, placebo, "none", *rest[:-1], NONE)


def _rarities(results: Results) -> Iterator[Row]:
    """Yield the counts of section 4.4: the words with the largest differences."""
    for label, rarity in results.facts["rarity"].items():
        names = ("positive", "only_here", "before_only_here", "pair_only_here")
        counts = (f"{rarity[name]} of {rarity['units']}" for name in names)
        yield (label, *counts, f"{rarity['occurrences']:.0f}", f"{rarity['place']:.2f}")


def _differences(own: StudySettings, spec: Spec) -> Table:
    """Return the differences of this run from the paper and its released code."""
    compat, exact = (own.leave_out(own.dropout[0], mode).lm.recipe() for mode in ("compat", "exact"))
    by = "by patient: no patient is on both sides" if own.split == "patient" else "by note"
    here: dict[str, Any] = {"split": by, "exact": exact, "main": own.main, "units": own.units, "scale": own.scale}
    here |= {"compat_run": f"the same (epochs: {compat.epochs})" if own.compat else "not run"}
    here |= {"casing": own.scale.casing, "min_pair_count": own.min_pair_count}
    return spec.table(tuple(cell.format(**here) for cell in row) for row in spec.more["rows"])


def _sample(results: Results, spec: Spec) -> Table:
    """Return the first lines of a synthetic note of median length."""
    label, text = results.facts["sample"]
    rows = [(str(n), line) for n, line in enumerate(text.split("\n")[:LINES], 1)]
    return spec.table(rows, heads=("line", f"synthetic ({label})"))
