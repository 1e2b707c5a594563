"""The privacy score of paper C: audits, paired differences of scores, and the analysis of section 4.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout import Audit, Compared, audit_of, compare, pdtp
from clinveil.attacks.models.leaveout.data import AuditData, LeaveOutSettings, load_data, pick_units, prepare
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints, SmallInts
from clinveil.scale.tasks import Store
from clinveil.stats import t_interval
from clinveil.study.clinicalnlp_2019.settings import SAME, UNIGRAM, Mode, StudySettings, label_of
from clinveil.study.clinicalnlp_2019.tasks import Parts
from clinveil.study.engine import labelled


@dataclass(frozen=True)
class Audits:
    """The audits of a study.

    Attributes:
        models: by mode and dropout. unigram: of the same patients.
    """

    models: Mapping[tuple[Mode, float], Audit]
    unigram: Audit


def audits_of(store: Store, parts: Parts, own: StudySettings) -> Audits:
    """Return the audits of the settings, and write their data to the store."""
    modes: tuple[Mode, ...] = ("exact", "compat") if own.compat else ("exact",)
    models = {(mode, p): _audit(store, parts, own, own.leave_out(p, mode)) for mode in modes for p in own.dropout}
    first = own.dropout[0]
    unigram = own.leave_out(first, "exact").but(model="unigram")
    return Audits(models, audit_of(models["exact", first].data, unigram, seed=own.seed, name=UNIGRAM))


def _audit(store: Store, parts: Parts, own: StudySettings, how: LeaveOutSettings) -> Audit:
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


@dataclass
class Privacy:
    """Results of the audits: findings, CSV files with one row per unit, and the counts of section 4.4 by model."""

    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    rarity: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def privacy_of(store: Store, audits: Audits, own: StudySettings) -> Privacy:
    """Compare the finished models."""
    privacy, seed, first = Privacy(), own.seed, own.dropout[0]
    scores: dict[tuple[Mode, float], Compared] = {}
    for (mode, dropout), audit in audits.models.items():
        label, name = label_of(dropout), f"units-{mode}-{dropout:g}"
        score = scores[mode, dropout] = _compared(store, audit, seed)
        privacy.findings += [labelled(f, corpus=label) for f in score.findings]
        privacy.files[f"{name}.csv"] = score.table
        privacy.rarity[f"{label}, {mode}"] = rarities(load_data(audit.data), score.leave_out)
        if mode == "exact":
            text = _compared(store, audit, seed, text=True)
            privacy.findings += [labelled(f, corpus=label) for f in text.findings]
            privacy.files[f"{name}-text.csv"] = text.table
    for (mode, dropout), score in scores.items():
        if dropout != first:
            detail = {"corpus": label_of(dropout), "mode": mode, "against": label_of(first)}
            privacy.findings += _falls(scores[mode, first], score, detail, seed)
    unigram = _compared(store, audits.unigram, seed)
    privacy.findings += [labelled(f, corpus=SAME) for f in unigram.findings]
    for (mode, dropout), score in scores.items():
        if mode == "exact":
            detail = {"corpus": SAME, "mode": mode, "against": label_of(dropout)}
            privacy.findings += _falls(score, unigram, detail, seed)
    return privacy


def _compared(store: Store, audit: Audit, seed: int, *, text: bool = False) -> Compared:
    return compare(store, audit, np.random.default_rng([seed, 3]), text=text)


def _falls(before: Compared, after: Compared, detail: Mapping[str, Any], seed: int) -> Iterator[Finding]:
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
        units, positive differences; `only_here`: the word is in no other unit or note; `before_only_here`: the same for
        the word before it; `pair_only_here`: for both as a pair; median occurrences, median position in the note.
    """
    ids, size = data.encoded.ids, data.vocabulary.size
    counts = np.bincount(ids, minlength=size)
    pairs = _pairs([data.encoded.note(row) for row in range(len(data.encoded))], size)
    rows: list[tuple[bool, bool, bool, int, float]] = []
    for unit, at in enumerate(compared.places):
        notes = data.notes_of(unit)
        own = np.concatenate(notes)
        word, before = int(own[at]), int(own[at - 1]) if at else 0
        rest = counts - np.bincount(own, minlength=size)
        own_pairs = _pairs(notes, size)
        pair = before * size + word
        alone = int((pairs == pair).sum() - (own_pairs == pair).sum()) == 0
        rows.append((rest[word] == 0, rest[before] == 0, alone, int(counts[word]), at / own.size))
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    names = ("only_here", "before_only_here", "pair_only_here")
    result: dict[str, Any] = {name: int(column.sum()) for name, column in zip(names, columns[:3], strict=True)}
    result |= {"units": len(rows), "positive": int((compared.signed > 0).sum())}
    return result | {"occurrences": float(np.median(columns[3])), "place": float(np.median(columns[4]))}


def _pairs(notes: Sequence[SmallInts], size: int) -> Ints:
    """Return each word with the word before it in its note, as one number."""
    return np.concatenate([note[:-1].astype(np.int64) * size + note[1:] for note in notes])
