"""The privacy score S-PDTP of paper C with its floors, and the analysis of section 4.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clinveil import Finding
from clinveil.attacks import (
    EFFECT_SOURCE,
    METHOD,
    AuditData,
    Compared,
    LeaveOut,
    LeaveOutAudit,
    LeaveOutSettings,
    audit_of,
    compare,
    flipped_p,
    load_data,
    pick_units,
    prepare,
    train_audits,
)
from clinveil.core import Doubles, Ints, SmallInts
from clinveil.scale import Store, perform_all, processes
from clinveil.stats import t_interval
from papers.clinicalnlp_2019.settings import (
    UNIGRAM,
    UNIGRAM_OF_AUDITED,
    AuditMode,
    SyntheticSettings,
    corpus_label,
    label_of,
)
from papers.clinicalnlp_2019.steps import NoteParts
from papers.running import say
from papers.tables import labelled

AHEAD = 1_000  # trainings that wait for a worker
UNITS_SEED = 2  # of the draw of audited patients


@dataclass(frozen=True)
class Audits:
    """The audits of the LSTMs, by recipe and dropout, and of a unigram of the same patients."""

    lstms: Mapping[tuple[AuditMode, float], LeaveOutAudit]
    unigram: LeaveOutAudit


def plan_audits(store: Store, parts: NoteParts, settings: SyntheticSettings) -> Audits:
    """Write the data of the audits to the store, and return the audits; nothing is trained."""
    lstms = {
        (mode, dropout): _plan(store, parts, settings, settings.leave_out(dropout, mode))
        for mode in settings.modes
        for dropout in settings.dropout
    }
    first = settings.dropout[0]
    of_counts = settings.leave_out(first, "exact", UNIGRAM)
    data = lstms["exact", first].data
    return Audits(lstms, audit_of(data, of_counts, seed=settings.seed, name=UNIGRAM))


def _plan(
    store: Store, parts: NoteParts, settings: SyntheticSettings, audit_settings: LeaveOutSettings
) -> LeaveOutAudit:
    rng = np.random.default_rng([settings.seed, UNITS_SEED])
    units = pick_units(parts.train, audit_settings.units, rng)
    data = prepare(
        parts.train,
        units,
        audit_settings,
        rng,
        vocabulary=parts.vocabulary,
        validation=parts.valid,
    )
    exact = audit_settings.mode == "exact"
    main = audit_settings.mode == settings.main
    tokens = data.encoded.ids.size
    audit = audit_of(
        data.save(store.root),
        audit_settings,
        seed=settings.seed,
        words=tokens if exact else 0,
        keep=main,
    )
    if exact:
        return audit
    full = replace(audit.full, write=tokens) if main else audit.full
    return replace(audit, full=full, reseeded=(), other_seeds=())


def train_all(store: Store, audits: Audits, settings: SyntheticSettings) -> None:
    """Train all models that are not in the store. Raises UsageError if this takes too long."""
    over = processes(settings.workers, ahead=AHEAD)
    train_audits(
        store,
        list(audits.lstms.values()),
        over,
        say,
        workers=settings.workers,
        most_hours=settings.max_hours,
    )
    perform_all(store, audits.unigram.models, over, lambda line: None)


@dataclass(frozen=True)
class RareWords:
    """Of the words with the largest difference, one per audited unit: how rare they are (section
    4.4).

    Attributes:
        units: number of units. positive: with the higher probability in the model of all notes.
        only_here: the word is in no other unit or note; before_only_here: the same for the word
            before it; pair_only_here: for both as a pair.
        occurrences: median of the word in all notes. position: median in the note, from 0 to 1.
    """

    units: int
    positive: int
    only_here: int
    before_only_here: int
    pair_only_here: int
    occurrences: float
    position: float


@dataclass(frozen=True)
class Privacy:
    """Findings, CSV files with one row per unit by name, and rare words by model."""

    findings: list[Finding] = field(repr=False)
    files: dict[str, str] = field(repr=False)
    rare_words: dict[str, RareWords]


def compare_audits(store: Store, audits: Audits, settings: SyntheticSettings) -> Privacy:
    """Compare the finished models."""
    seed = settings.seed
    findings: list[Finding] = []
    files: dict[str, str] = {}
    rare: dict[str, RareWords] = {}
    scores: dict[tuple[AuditMode, float], Compared] = {}
    for (mode, dropout), audit in audits.lstms.items():
        label = label_of(dropout)
        name = f"units-{mode}-{dropout:g}"
        score = _compared(store, audit, seed)
        scores[mode, dropout] = score
        findings += [labelled(finding, corpus_label(label)) for finding in score.findings]
        files[f"{name}.csv"] = score.table
        rare[f"{label}, {mode}"] = rare_words(load_data(audit.data), score.leave_out)
        if mode == "exact":
            of_text = _compared(store, audit, seed, text=True)
            findings += [labelled(finding, corpus_label(label)) for finding in of_text.findings]
            files[f"{name}-text.csv"] = of_text.table
    first = settings.dropout[0]
    for (mode, dropout), score in scores.items():
        if dropout != first:
            labels = (label_of(dropout), label_of(first), mode)
            findings += _falls(scores[mode, first], score, labels, seed)
    unigram = _compared(store, audits.unigram, seed)
    audited = corpus_label(UNIGRAM_OF_AUDITED)
    findings += [labelled(finding, audited) for finding in unigram.findings]
    for (mode, dropout), score in scores.items():
        if mode == "exact":
            labels = (UNIGRAM_OF_AUDITED, label_of(dropout), mode)
            findings += _falls(score, unigram, labels, seed)
    return Privacy(findings, files, rare)


def _compared(store: Store, audit: LeaveOutAudit, seed: int, *, text: bool = False) -> Compared:
    return compare(store, audit, np.random.default_rng([seed, 3]), text=text)


def _falls(
    before: Compared, after: Compared, labels: tuple[str, ...], seed: int
) -> Iterator[Finding]:
    """Yield the decrease of the score, and of the effect if both have it, on the same patients."""
    yield fall(before.leave_out.scores - after.leave_out.scores, (*labels, "score"), seed)
    if before.effects is not None and after.effects is not None:
        yield fall(before.effects.own - after.effects.own, (*labels, "effect"), seed)


def fall(difference: Doubles, labels: tuple[str, ...], seed: int) -> Finding:
    """Return `attack.pdtp_fall`: the mean difference over patients, in nats."""
    interval = t_interval(difference)
    return Finding(
        "attack.pdtp_fall",
        float(difference.mean()),
        difference.size,
        "higher",
        interval.low,
        interval.high,
        chance=0.0,
        source=EFFECT_SOURCE,
        labels=labels,
        unit="audited patients",
        p=flipped_p(difference, np.random.default_rng([seed, 4])),
        p_is="signs flipped by patient, one-sided",
        method=f"{METHOD}, paired",
        chance_is="no difference",
    )


def rare_words(data: AuditData, compared: LeaveOut) -> RareWords:
    """Return how rare the words with the largest differences are."""
    ids = data.encoded.ids
    size = data.vocabulary.size
    counts = np.bincount(ids, minlength=size)
    pairs = _pairs([data.encoded.note(row) for row in range(len(data.encoded))], size)
    only_here = 0
    before_only_here = 0
    pair_only_here = 0
    occurrences: list[int] = []
    positions: list[float] = []
    for unit, offset in enumerate(compared.places):
        notes = data.notes_of(unit)
        unit_ids = np.concatenate(notes)
        word = int(unit_ids[offset])
        before = int(unit_ids[offset - 1]) if offset else 0
        elsewhere = counts - np.bincount(unit_ids, minlength=size)
        pair = before * size + word
        pairs_elsewhere = (pairs == pair).sum() - (_pairs(notes, size) == pair).sum()
        only_here += int(elsewhere[word] == 0)
        before_only_here += int(elsewhere[before] == 0)
        pair_only_here += int(pairs_elsewhere == 0)
        occurrences.append(int(counts[word]))
        positions.append(offset / unit_ids.size)
    return RareWords(
        units=len(occurrences),
        positive=int((compared.signed > 0).sum()),
        only_here=only_here,
        before_only_here=before_only_here,
        pair_only_here=pair_only_here,
        occurrences=float(np.median(occurrences)),
        position=float(np.median(positions)),
    )


def _pairs(notes: Sequence[SmallInts], size: int) -> Ints:
    """Return each word with the word before it in its note, as one number."""
    return np.concatenate([note[:-1].astype(np.int64) * size + note[1:] for note in notes])
