"""Tables of the study of paper C: Tables 1 and 2, the privacy score, audits and section 4.4; and two figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from clinveil.core.finding import Finding
from clinveil.corpus.corpus import TEXT
from clinveil.corpus.demo.stream import demo_chunks
from clinveil.corpus.medtext import medtext
from clinveil.corpus.medtext.parts import PARTS
from clinveil.report.numerals import NONE, decimals
from clinveil.study.chart import Axes, Figure, Point, lines
from clinveil.study.clinicalnlp_2019.claims import claims_table, lists_of, without_power
from clinveil.study.clinicalnlp_2019.settings import PLANTED, REAL, SAME, UNIGRAM, StudySettings, label_of
from clinveil.study.engine import Results
from clinveil.study.tables import Paper, Row, Spec, Table, shown

SEEN = (("exact", "the model"), ("exact", "released notes"), ("compat", "the model"))  # mode and access of the attacker
LINES, PATIENTS = 24, 4  # lines of the sampled note; patients of the demo corpus for comparison


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables in the order of the page; only the last one contains words of a note."""
    spec, labels = paper.tables, results.facts["labels"]
    by_name = {
        "table-1": _table_1(results, spec["table-1"]),
        "table-2": _table_2(results, spec["table-2"]),
        "claims": claims_table(results, spec["claims"]),
        "privacy": spec["privacy"].table(_privacy(results, spec["privacy"])),
        "audits": spec["audits"].table((label, *spec["audits"].cells(results, corpus=label)) for label in labels),
        "canaries": spec["canaries"].table(_canaries(results, spec["canaries"])),
        "analysis": spec["analysis"].table(_rarities(results), planted=_planted(results)),
        "differences": _differences(results.settings, spec["differences"]),
        "figure-1": _sample(results, spec["figure-1"]),
    }
    for name in ("table-2-small", "table-2-large"):
        by_name[name] = spec[name].table((label, *cells) for label, cells in spec[name].paper.items())
    return [by_name[name] for name in spec]


def _table_1(results: Results, spec: Spec) -> Table:
    """Return notes, words, vocabulary and unknown words, here and in the paper."""
    rows: list[Row] = []
    for name, counts in results.facts["counts"].items():
        cells = [_count(counts.get(f"{unit}_{part}")) for unit in ("notes", "words") for part in PARTS]
        rows.append((f"here: {name}", *cells, _count(counts["vocabulary"]), f"{100 * counts['unknown']:.1f} %"))
    return spec.table([*rows, *((f"paper: {name}", *cells) for name, cells in spec.paper.items())])


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _table_2(results: Results, spec: Spec) -> Table:
    """Return the paper's columns with the findings; the last row is the chance level."""
    models, tasks, names = spec.columns[:3], spec.columns[3:], lists_of(results)
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
    if without_power(real):
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


def _canaries(results: Results, spec: Spec) -> Iterator[Row]:
    """Yield the mean exposure and the extracted canaries by family and repeats."""
    keys = ("corpus", "family", "repeats")
    for key in dict.fromkeys(tuple(f.detail[k] for k in keys) for f in results.all("attack.canary_exposure")):
        yield (*map(str, key), *spec.cells(results, **dict(zip(keys, key, strict=True))))


def _rarities(results: Results) -> Iterator[Row]:
    """Yield the counts of section 4.4: the words with the largest differences."""
    for label, rarity in results.facts["rarity"].items():
        names = ("positive", "only_here", "before_only_here", "pair_only_here")
        counts = (f"{rarity[name]} of {rarity['units']}" for name in names)
        yield (label, *counts, f"{rarity['occurrences']:.0f}", f"{rarity['place']:.2f}")


def _planted(results: Results) -> str:
    """Return a remark on planted names."""
    corpus = f"{label_of(results.settings.dropout[0])}, {PLANTED}"
    rise, on_name = (results.of(f"attack.pdtp_{name}", corpus=corpus) for name in ("planted", "on_name"))
    if rise is None:
        return ""
    return (
        f"Planted names: the score of patients with a planted full name is {shown(rise, 2)} nats higher than of others "
        f"(P {shown(rise, show='p')}, {rise.detail['planted']} of {rise.n}); the largest difference is at the name in "
        f"{shown(on_name, 2)} of them (chance {shown(on_name, 4, 'chance')})."
    )


def _differences(own: StudySettings, spec: Spec) -> Table:
    """Return the differences of this run from the paper and its released code."""
    compat, exact = (own.leave_out(own.dropout[0], mode).lm.recipe() for mode in ("compat", "exact"))
    by = "by patient: no patient is on both sides" if own.split == "patient" else "by note"
    here: dict[str, Any] = {"split": by, "exact": exact, "main": own.main, "units": own.units, "scale": own.scale}
    here |= {"compat_run": f"the same (epochs: {compat.epochs})" if own.compat else "not run"}
    here |= {"casing": own.scale.casing, "min_pair_count": own.min_pair_count}
    return spec.table(tuple(cell.format(**here) for cell in row) for row in spec.more["rows"])


def _sample(results: Results, spec: Spec) -> Table:
    """Return the first lines of a synthetic note of median length, next to a note of the demo corpus."""
    label, texts = results.facts["sample"]
    demo = [text for chunk in demo_chunks(PATIENTS, 1, spans=False) for text in chunk.notes.column(TEXT).to_pylist()]
    theirs = medtext(sorted(demo, key=len)[len(demo) // 2])
    both = (text.split("\n")[:LINES] for text in (texts[len(texts) // 2], theirs))
    rows = [(str(n), *pair) for n, pair in enumerate(zip_longest(*both, fillvalue=""), 1)]
    return spec.table(rows, heads=("line", f"synthetic ({label})", "invented (demo corpus)"))


def figures(results: Results) -> dict[str, list[Figure]]:
    """Return the figures of the privacy score with its floors and of utility, by dropout."""
    order = tuple(f"{dropout:g}" for dropout in results.settings.dropout)
    privacy = lines(
        "fig-privacy", "The privacy score by dropout", list(_scores(results)), Axes("dropout", "nats", order)
    )
    utility = lines("fig-utility", "Utility by dropout", list(_utility(results)), Axes("dropout", "score", order))
    return {ident: [drawn] for ident, drawn in (("privacy", privacy), ("table-2", utility)) if drawn}


def _scores(results: Results) -> Iterator[Point]:
    for dropout in results.settings.dropout:
        at, own = f"{dropout:g}", {"corpus": label_of(dropout), "mode": "exact", "from": "the model"}
        score = results.of("attack.pdtp", **own)
        yield from _point("score", at, score)
        if score is not None:
            yield Point("placebo", at, score.control)
        yield from _point("reseed floor", at, results.of("attack.pdtp_reseed_floor", **own))
        yield from _point("effect at a word", at, results.of("attack.pdtp_effect", **own))
        compat = results.of("attack.pdtp", corpus=label_of(dropout), mode="compat")
        yield from _point("score of paper C's code", at, compat)


def _utility(results: Results) -> Iterator[Point]:
    dropouts = results.settings.dropout
    for measure, name, series in (("utility.casing", "letter case", "model"), ("utility.nli", "inference", "vectors")):
        for dropout in dropouts:
            found = results.of(measure, corpus=label_of(dropout), series=series)
            yield from _point(name, f"{dropout:g}", found)
        real = results.of(measure, corpus=REAL, series=series)
        if real is not None:
            yield from (Point(f"{name}, real notes", f"{d:g}", real.value, kind="reference") for d in dropouts)


def _point(series: str, at: str, finding: Finding | None) -> Iterator[Point]:
    if finding is not None:
        yield Point(series, at, finding.value, finding.low, finding.high)
