"""The tables of paper C's study: its 1 and 2, the privacy score with its floors, audits, 4.2 and 4.4; two figures."""

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

SEEN = (("exact", "the model"), ("exact", "released notes"), ("compat", "the model"))  # mode, and through what
LINES, PATIENTS = 24, 4  # of the sampled note; of the demo corpus that it stands beside


def tables(results: Results, paper: Paper) -> list[Table]:
    """All tables, in the order of the page; none but the last holds a word of a note."""
    spec, labels = paper.tables, results.facts["labels"]
    made = {
        "table-1": _table_1(results, spec["table-1"]),
        "table-2": _table_2(results, spec["table-2"]),
        "claims": claims_table(results, spec["claims"]),
        "privacy": spec["privacy"].table(_privacy(results, spec["privacy"])),
        "audits": spec["audits"].table((label, *spec["audits"].cells(results, corpus=label)) for label in labels),
        "canaries": spec["canaries"].table(_canaries(results, spec["canaries"])),
        "observations": spec["observations"].table(_observations(results, spec["observations"])),
        "analysis": spec["analysis"].table(_rarities(results), planted=_planted(results)),
        "differences": _differences(results.settings, spec["differences"]),
        "figure-1": _sample(results, spec["figure-1"]),
    }
    for name in ("table-2-small", "table-2-large"):
        made[name] = spec[name].table((label, *cells) for label, cells in spec[name].paper.items())
    return [made[name] for name in spec]


def _table_1(results: Results, spec: Spec) -> Table:
    """Notes, words, vocabulary and unknown words, beside the paper's corpora."""
    rows: list[Row] = []
    for name, counts in results.facts["counts"].items():
        cells = [_count(counts.get(f"{what}_{part}")) for what in ("notes", "words") for part in PARTS]
        rows.append((f"here: {name}", *cells, _count(counts["vocabulary"]), f"{100 * counts['unknown']:.1f} %"))
    return spec.table([*rows, *((f"paper: {name}", *cells) for name, cells in spec.paper.items())])


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _table_2(results: Results, spec: Spec) -> Table:
    """The paper's columns, ours; the last row is what guessing scores, as the findings of the real notes have it."""
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
    pairs_told = ", ".join(f"{name} {sizes[name]}" for name in names) or "none given"
    heads = ["training notes", *(column.head for column in models), "privacy (placebo, reseed floor)", *names]
    told = {"min_pair_count": results.settings.min_pair_count, "pairs": pairs_told, "power": _power(results)}
    return spec.table(rows, heads=[*heads, *(column.head for column in tasks)], **told)


def _power(results: Results) -> str:
    """Whether inference can tell corpora apart at all: real notes must beat the most frequent label."""
    real = results.of("utility.nli", corpus=REAL, series="vectors")
    if real is None:
        return ""
    says = f"real notes score {shown(real)}, always the most frequent label {decimals(real.chance)}"
    if without_power(real):
        return f"Inference has no power here: {says}. The column tells nothing of the notes."
    return f"Inference can tell something: {says}."


def _privacy_cell(results: Results, label: str) -> str:
    own = {} if label == UNIGRAM else {"mode": results.settings.main, "from": "the model"}
    found = results.of("attack.pdtp", corpus=label, **own)
    floor = results.of("attack.pdtp_reseed_floor", corpus=label, **own)
    reseeded = "none" if label == UNIGRAM else shown(floor, 2, "value")
    return NONE if found is None else f"{shown(found, 2)} ({shown(found, 2, 'control')}, {reseeded})"


def _privacy(results: Results, spec: Spec) -> Iterator[Row]:
    """Score, floors, effect, gap and sign for each dropout: by the model, by its notes alone, and by paper C's code."""
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
    """Mean exposure by family and repeats, and how many were written out."""
    keys = ("corpus", "family", "repeats")
    for key in dict.fromkeys(tuple(f.detail[k] for k in keys) for f in results.all("attack.canary_exposure")):
        yield (*map(str, key), *spec.cells(results, **dict(zip(keys, key, strict=True))))


def _observations(results: Results, spec: Spec) -> Iterator[Row]:
    """Section 4.2: what the paper's clinician saw, counted."""
    labels = results.facts["labels"]
    yield from ((label, *spec.cells(results, corpus=label)) for label in labels)
    chance = ((column.of(results, corpus=labels[0]), column.digits) for column in spec.columns)
    yield ("by chance", *(shown(finding, digits, "chance") for finding, digits in chance))


def _rarities(results: Results) -> Iterator[Row]:
    """Section 4.4: where the largest differences are."""
    for label, said in results.facts["rarity"].items():
        names = ("positive", "only_here", "before_only_here", "pair_only_here")
        counts = (f"{said[name]} of {said['units']}" for name in names)
        yield (label, *counts, f"{said['occurrences']:.0f}", f"{said['place']:.2f}")


def _planted(results: Results) -> str:
    """What a planted name does."""
    corpus = f"{label_of(results.settings.dropout[0])}, {PLANTED}"
    rise, on_name = (results.of(f"attack.pdtp_{name}", corpus=corpus) for name in ("planted", "on_name"))
    if rise is None:
        return ""
    return (
        f"Planted names: the score of patients with a planted full name is {shown(rise, 2)} nats higher than of those "
        f"without (P {shown(rise, show='p')}, {rise.detail['planted']} of {rise.n}); the largest difference fell on "
        f"the name in {shown(on_name, 2)} of them (chance {shown(on_name, 4, 'chance')})."
    )


def _differences(told: StudySettings, spec: Spec) -> Table:
    """What differs from the paper and its released code, as the study was set; the rest follows the code."""
    compat, exact = (told.leave_out(told.dropout[0], mode).lm.recipe() for mode in ("compat", "exact"))
    by = "by patient: nobody stands on both sides" if told.split == "patient" else "by note"
    here: dict[str, Any] = {"split": by, "exact": exact, "main": told.main, "units": told.units, "scale": told.scale}
    here |= {"compat_run": f"so (passes: {compat.epochs})" if told.compat else "not run", "casing": told.scale.casing}
    here |= {"min_pair_count": told.min_pair_count}
    return spec.table(tuple(cell.format(**here) for cell in row) for row in spec.more["rows"])


def _sample(results: Results, spec: Spec) -> Table:
    """The first lines of a note of usual length by the last dropout's model, beside a note of the demo corpus."""
    label, texts = results.facts["sample"]
    demo = [text for chunk in demo_chunks(PATIENTS, 1, spans=False) for text in chunk.notes.column(TEXT).to_pylist()]
    theirs = medtext(sorted(demo, key=len)[len(demo) // 2])
    both = (text.split("\n")[:LINES] for text in (texts[len(texts) // 2], theirs))
    rows = [(str(n), *pair) for n, pair in enumerate(zip_longest(*both, fillvalue=""), 1)]
    return spec.table(rows, heads=("line", f"synthetic ({label})", "invented, of our demo corpus"))


def figures(results: Results) -> dict[str, list[Figure]]:
    """The privacy score with its floors, and what the notes are good for, by dropout."""
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
