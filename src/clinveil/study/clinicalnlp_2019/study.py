"""The study of paper C: its tasks in the order of their dependencies, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from clinveil.attacks.models.leaveout import (
    Compared,
    LeaveOutAudit,
    audit_of,
    compare,
    pdtp,
    train_audits,
)
from clinveil.attacks.models.leaveout.data import (
    AuditData,
    LeaveOutSettings,
    load_data,
    pick_units,
    prepare,
)
from clinveil.core.finding import Finding
from clinveil.core.neural import need_torch
from clinveil.core.types import Doubles, Ints, Say, SmallInts
from clinveil.corpus.medtext import SplitSizes
from clinveil.corpus.medtext.prepare import PARTS
from clinveil.report.numerals import NONE, decimals
from clinveil.scale.tasks import Store, perform, perform_all
from clinveil.stats.intervals import t_interval
from clinveil.study.clinicalnlp_2019.settings import (
    REAL,
    SAME,
    UNIGRAM,
    Mode,
    StudySettings,
    label_of,
)
from clinveil.study.clinicalnlp_2019.tasks import (
    Casing,
    Inference,
    Leaks,
    Parts,
    Predicted,
    Similar,
    UnigramScore,
    Written,
)
from clinveil.study.engine import Bench, Results, Task, findings_of, labelled
from clinveil.study.inputs import File, Source, Train
from clinveil.study.tables import Paper, Row, Spec, Study, Table, run, shown
from clinveil.vectors.settings import VectorSettings

Models = Mapping[tuple[Mode, float], LeaveOutAudit]  # by mode and dropout


def audits_of(store: Store, parts: Parts, own: StudySettings) -> tuple[Models, LeaveOutAudit]:
    """Return the audits of the settings, and that of a unigram of the same patients; write their
    data to the store.
    """
    modes: tuple[Mode, ...] = ("exact", "compat") if own.compat else ("exact",)
    models = {
        (mode, p): _audit(store, parts, own, own.leave_out(p, mode))
        for mode in modes
        for p in own.dropout
    }
    first = own.dropout[0]
    unigram = own.leave_out(first, "exact").but(model="unigram")
    return models, audit_of(models["exact", first].data, unigram, seed=own.seed, name=UNIGRAM)


def _audit(store: Store, parts: Parts, own: StudySettings, how: LeaveOutSettings) -> LeaveOutAudit:
    notes, valid = (parts.load(store, part) for part in ("train", "valid"))
    words = parts.vocabulary(store)  # of all parts, as in paper C
    rng = np.random.default_rng([own.seed, 2])
    units = pick_units(notes, how.units, rng)
    data = prepare(notes, units, how, rng, vocabulary=words, validation=valid)
    exact, main = (how.mode == mode for mode in ("exact", own.main))
    tokens = data.encoded.ids.size
    audit = audit_of(data.save(store.root), how, seed=own.seed, words=tokens * exact, keep=main)
    if exact:
        return audit
    full = replace(audit.full, write=tokens) if main else audit.full
    return replace(audit, full=full, reseeded=(), other_seeds=())


Privacy = tuple[list[Finding], dict[str, str], dict[str, dict[str, Any]]]


def privacy_of(
    store: Store, models: Models, unigram_audit: LeaveOutAudit, own: StudySettings
) -> Privacy:
    """Compare the finished models.

    Returns findings, CSV files with one row per unit by name, and the counts of section 4.4 by
    model.
    """
    findings = list[Finding]()
    files = {}
    rarity = {}
    seed = own.seed
    first = own.dropout[0]
    scores: dict[tuple[Mode, float], Compared] = {}
    for (mode, dropout), audit in models.items():
        label = label_of(dropout)
        name = f"units-{mode}-{dropout:g}"
        score = scores[mode, dropout] = _compared(store, audit, seed)
        findings += [labelled(f, corpus=label) for f in score.findings]
        files[f"{name}.csv"] = score.table
        rarity[f"{label}, {mode}"] = rarities(load_data(audit.data), score.leave_out)
        if mode == "exact":
            text = _compared(store, audit, seed, text=True)
            findings += [labelled(f, corpus=label) for f in text.findings]
            files[f"{name}-text.csv"] = text.table
    for (mode, dropout), score in scores.items():
        if dropout != first:
            detail = {"corpus": label_of(dropout), "mode": mode, "against": label_of(first)}
            findings += _falls(scores[mode, first], score, detail, seed)
    unigram = _compared(store, unigram_audit, seed)
    findings += [labelled(f, corpus=SAME) for f in unigram.findings]
    for (mode, dropout), score in scores.items():
        if mode == "exact":
            detail = {"corpus": SAME, "mode": mode, "against": label_of(dropout)}
            findings += _falls(score, unigram, detail, seed)
    return findings, files, rarity


def _compared(store: Store, audit: LeaveOutAudit, seed: int, *, text: bool = False) -> Compared:
    return compare(store, audit, np.random.default_rng([seed, 3]), text=text)


def _falls(
    before: Compared, after: Compared, detail: Mapping[str, Any], seed: int
) -> Iterator[Finding]:
    """Yield the decrease of the score, and of the effect if both have it, on the same patients."""
    yield fall(before.leave_out.scores - after.leave_out.scores, {**detail, "of": "score"}, seed)
    if before.effects is not None and after.effects is not None:
        yield fall(before.effects.own - after.effects.own, {**detail, "of": "effect"}, seed)


def fall(difference: Doubles, detail: Mapping[str, Any], seed: int) -> Finding:
    """Return `attack.pdtp_fall`: the mean difference over patients."""
    return Finding(
        "attack.pdtp_fall",
        float(difference.mean()),
        difference.size,
        "higher",
        *t_interval(difference),
        chance=0.0,
        source=pdtp.EFFECT_SOURCE,
        detail={**detail, "scale": "nats"},
        unit="audited patients",
        p=pdtp.flipped_p(difference, np.random.default_rng([seed, 4])),
        p_is="signs flipped by patient, one-sided",
        method=f"{pdtp.METHOD}, paired",
        chance_is="no difference",
    )


def rarities(data: AuditData, compared: pdtp.LeaveOut) -> dict[str, Any]:
    """Return counts of rare words among those with the largest differences (section 4.4).

    Returns:
        units, positive differences; `only_here`: the word is in no other unit or note;
        `before_only_here`: the same for the word before it; `pair_only_here`: for both as a pair;
            median occurrences, median position in the note.
    """
    ids = data.encoded.ids
    size = data.vocabulary.size
    counts = np.bincount(ids, minlength=size)
    pairs = _pairs([data.encoded.note(row) for row in range(len(data.encoded))], size)
    rows: list[tuple[bool, bool, bool, int, float]] = []
    for unit, at in enumerate(compared.places):
        notes = data.notes_of(unit)
        own = np.concatenate(notes)
        word = int(own[at])
        before = int(own[at - 1]) if at else 0
        rest = counts - np.bincount(own, minlength=size)
        own_pairs = _pairs(notes, size)
        pair = before * size + word
        alone = int((pairs == pair).sum() - (own_pairs == pair).sum()) == 0
        rows.append((rest[word] == 0, rest[before] == 0, alone, int(counts[word]), at / own.size))
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    names = ("only_here", "before_only_here", "pair_only_here")
    result: dict[str, Any] = {
        name: int(column.sum()) for name, column in zip(names, columns[:3], strict=True)
    }
    result |= {"units": len(rows), "positive": int((compared.signed > 0).sum())}
    return result | {
        "occurrences": float(np.median(columns[3])),
        "place": float(np.median(columns[4])),
    }


def _pairs(notes: Sequence[SmallInts], size: int) -> Ints:
    """Return each word with the word before it in its note, as one number."""
    return np.concatenate([note[:-1].astype(np.int64) * size + note[1:] for note in notes])


# Mode and access of the attacker.
SEEN = (
    ("exact", "the model"),
    ("exact", "released notes"),
    ("compat", "the model"),
)
LINES = 24  # of the sampled note
FALL = ("corpus", "against", "mode", "of")  # details that name a decrease of score or effect


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables in the order of the page; only the last one contains words of a note."""
    spec = paper.tables
    labels = results.facts["labels"]
    counts: list[Row] = []
    for name, of_notes in results.facts["counts"].items():
        sizes = [
            _count(of_notes.get(f"{unit}_{part}")) for unit in ("notes", "words") for part in PARTS
        ]
        counts.append(
            (
                f"here: {name}",
                *sizes,
                _count(of_notes["vocabulary"]),
                f"{100 * of_notes['unknown']:.1f} %",
            )
        )
    counts += [(f"paper: {name}", *cells) for name, cells in spec["table-1"].paper.items()]
    by_name = {
        "table-1": spec["table-1"].table(counts),
        "table-2": _table_2(results, spec["table-2"]),
        "privacy": spec["privacy"].table(_privacy(results, spec["privacy"])),
        "audits": spec["audits"].table(
            (label, *spec["audits"].cells(results, corpus=label)) for label in labels
        ),
        "falls": spec["falls"].table(
            (*(str(f.detail[name]) for name in FALL), shown(f, 2), shown(f, show="p"))
            for f in results.all("attack.pdtp_fall")
        ),
        "analysis": spec["analysis"].table(_rarities(results)),
        "differences": _differences(results.settings, spec["differences"]),
        "figure-1": _sample(results, spec["figure-1"]),
    }
    for name in ("table-2-small", "table-2-large"):
        by_name[name] = spec[name].table(
            (label, *cells) for label, cells in spec[name].paper.items()
        )
    return [by_name[name] for name in spec]


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _table_2(results: Results, spec: Spec) -> Table:
    """Return the paper's columns with the findings; the last row is the chance level."""
    models = spec.columns[:3]
    tasks = spec.columns[3:]
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
    sizes = {
        str(finding.detail["list"]): finding.n for finding in results.all("utility.similarity")
    }
    lists = ", ".join(f"{name} {sizes[name]}" for name in names) or "none"
    heads = [
        "training notes",
        *(column.head for column in models),
        "privacy (placebo, reseed floor)",
        *names,
    ]
    fill = {
        "min_pair_count": results.settings.min_pair_count,
        "pairs": lists,
        "power": _power(results),
    }
    return spec.table(rows, heads=[*heads, *(column.head for column in tasks)], **fill)


def _power(results: Results) -> str:
    """Return a remark on whether inference has power: real notes must exceed the most frequent
    label.
    """
    real = results.of("utility.nli", corpus=REAL, series="vectors")
    if real is None:
        return ""
    scores = (
        f"real notes score {shown(real)}, the most frequent label scores {decimals(real.chance)}"
    )
    if real.low is None or (real.chance is not None and real.low <= real.chance):
        return f"Inference has no power here: {scores}. The column is not informative."
    return f"Inference has power here: {scores}."


def _privacy_cell(results: Results, label: str) -> str:
    own = {} if label == UNIGRAM else {"mode": results.settings.main, "from": "the model"}
    found = results.of("attack.pdtp", corpus=label, **own)
    floor = results.of("attack.pdtp_reseed_floor", corpus=label, **own)
    reseeded = "none" if label == UNIGRAM else shown(floor, 2, "value")
    return (
        NONE if found is None else f"{shown(found, 2)} ({shown(found, 2, 'control')}, {reseeded})"
    )


def _privacy(results: Results, spec: Spec) -> Iterator[Row]:
    """Yield score, floors, effect, gap and sign for each dropout: by model, notes and mode
    compat.
    """
    for label in map(label_of, results.settings.dropout):
        for mode, by in SEEN:
            own = {"corpus": label, "mode": mode, "from": by}
            if results.of("attack.pdtp", **own) is not None:
                yield (
                    label,
                    by if mode == "exact" else f"{by}, compat",
                    *spec.cells(results, **own),
                )
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
    compat, exact = (
        own.leave_out(own.dropout[0], mode).lm.recipe() for mode in ("compat", "exact")
    )
    by = "by patient: no patient is on both sides" if own.split == "patient" else "by note"
    here: dict[str, Any] = {
        "split": by,
        "exact": exact,
        "main": own.main,
        "units": own.units,
        "scale": own.scale,
    }
    here |= {"compat_run": f"the same (epochs: {compat.epochs})" if own.compat else "not run"}
    here |= {"casing": own.scale.casing, "min_pair_count": own.min_pair_count}
    return spec.table(tuple(cell.format(**here) for cell in row) for row in spec.more["rows"])


def _sample(results: Results, spec: Spec) -> Table:
    """Return the first lines of a synthetic note of median length."""
    label, text = results.facts["sample"]
    rows = [(str(n), line) for n, line in enumerate(text.split("\n")[:LINES], 1)]
    return spec.table(rows, heads=("line", f"synthetic ({label})"))


def run_study(
    notes: Path, out: Path, settings: StudySettings, say: Say = lambda line: None
) -> Results:
    """Run the study of paper C on the user's notes; the same call again resumes it.

    `notes`: a file or folder. Raises as `tables.run` does, and UsageError if the study takes too
    long.
    """
    need_torch()
    return run(ClinicalNlp2019(settings, Source.of(notes, settings.notes)), out, say)


@dataclass(frozen=True)
class ClinicalNlp2019(Study):
    """Paper C on some notes."""

    settings: StudySettings
    source: Source
    command: ClassVar[str] = "study clinicalnlp-2019"

    @cached_property
    def parts(self) -> Parts:
        """The split of the notes."""
        own = self.settings
        sizes = SplitSizes(valid=own.valid, test=own.test, words=own.words)
        return Parts(self.source, sizes, own.split == "note", own.min_count, own.seed)

    def perform(self, bench: Bench) -> Results:
        """Run unfinished tasks and collect the results."""
        own = self.settings
        store = bench.store
        perform(store, self.parts)
        models, unigram = audits_of(store, self.parts, own)
        train_audits(
            store,
            list(models.values()),
            bench.over,
            bench.say,
            workers=own.workers,
            most_hours=own.max_hours,
        )
        perform_all(store, unigram.models, bench.over, lambda line: None)
        corpora = self.corpora(models)
        wanted = self.measures(corpora)
        bench.do(wanted)
        leaks, files, rarity = privacy_of(store, models, unigram, own)
        others = (finding for task in wanted for finding in findings_of(store.result(task)))
        counts = store.result(self.parts)["counts"]
        by_model = next(corpus for corpus in reversed(corpora) if corpus.model is not None)
        facts = {"lead": counts["notes"], "counts": counts, "rarity": rarity}
        facts |= {"labels": tuple(corpus.label for corpus in corpora)}
        texts = sorted(by_model.load(store).texts, key=len)
        facts |= {"sample": (by_model.label, texts[len(texts) // 2])}
        return Results(own, (*leaks, *others), facts, files)

    def corpora(self, models: Models) -> list[Written]:
        """Return the compared corpora: the real notes, and the notes of each model."""
        own = [
            Written(label_of(dropout), self.parts, audit.full)
            for (mode, dropout), audit in models.items()
            if mode == self.settings.main
        ]
        return [Written(REAL, self.parts), *own, Written(UNIGRAM, self.parts)]

    def measures(self, corpora: Sequence[Written]) -> list[Task]:
        """Return the tasks that measure utility and leaks of each corpus."""
        settings = self.settings
        scale = self.settings.scale
        tasks: list[Task] = [Casing(corpus, scale.casing, settings.seed) for corpus in corpora]
        tasks += [Leaks(corpus, settings.seed) for corpus in corpora]
        tasks += [Predicted(corpus) for corpus in corpora]
        tasks.append(UnigramScore(self.parts))
        how_trained = VectorSettings(
            algorithm="skipgram", dim=scale.dim, window=5, negative=10, min_count=5, epochs=10
        )
        trains = [Train(corpus, how_trained, settings.seed, sentences=True) for corpus in corpora]
        with_vectors = list(zip(corpora, trains, strict=True))
        if settings.pairs:
            lists = tuple(map(File.of, settings.pairs))
            tasks += [
                Similar(corpus, train, lists, settings.min_pair_count)
                for corpus, train in with_vectors
            ]
        if settings.nli:
            pairs = File.of(settings.nli)
            tasks += [Inference(corpus, train, pairs, scale.nli) for corpus, train in with_vectors]
        return tasks

    def tables(self, results: Results) -> Sequence[Table]:
        """Return all tables."""
        return tables(results, self.paper)
