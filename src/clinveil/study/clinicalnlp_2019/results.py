"""What a finished study found, ready for tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout import crossfit
from clinveil.attacks.models.leaveout.compare import Compared, compare
from clinveil.attacks.models.leaveout.data import AuditData, load_data
from clinveil.attacks.models.leaveout.pdtp import LeaveOut
from clinveil.attacks.models.leaveout.plan import Audit
from clinveil.core.finding import Finding
from clinveil.scale.tasks import Store
from clinveil.stats import t_interval
from clinveil.study.clinicalnlp_2019.corpora import UNIGRAM
from clinveil.study.clinicalnlp_2019.plan import PLANTED, Study, label_of

SAME = f"{UNIGRAM}, of the same patients"
FALL_IS = "no difference"


@dataclass(frozen=True)
class Results:
    """All numbers.

    Attributes:
        counts: of Table 1, by corpus. findings: everything, each with `corpus` (and for privacy `from`, `mode`).
        labels: the corpora, in order. rarity: section 4.4's counts, by corpus. tables: a row a unit, as CSV, by name.
    """

    settings: Any
    counts: Mapping[str, Mapping[str, Any]]
    findings: tuple[Finding, ...]
    labels: tuple[str, ...]
    rarity: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, str] = field(repr=False)

    def of(self, measure: str, corpus: str, **detail: Any) -> Finding | None:
        """The first finding of a measure and corpus with these details."""
        for found in self.findings:
            wanted = {"corpus": corpus, **detail}
            if found.measure == measure and all(found.detail.get(k) == v for k, v in wanted.items()):
                return found
        return None


def collect(study: Study) -> Results:
    """Compare the models, and gather what the other tasks found."""
    store, found = study.store, list[Finding]()
    rarity: dict[str, dict[str, Any]] = {}
    tables: dict[str, str] = {}
    scores: dict[tuple[str, float], Compared] = {}
    for mode, audits in (("exact", study.audits), ("compat", study.compat)):
        for dropout, audit in audits.items():
            for text in (False, True) if mode == "exact" else (False,):
                measured = _measured(store, audit, study.settings.seed, text)
                found += [_labelled(f, label_of(dropout)) for f in measured.findings]
                tables[f"units-{mode}-{dropout:g}{'-text' if text else ''}"] = measured.table
                if not text:
                    scores[mode, dropout] = measured
                    data = load_data(audit.data)
                    rarity[f"{label_of(dropout)}, {mode}"] = rarities(data, measured.leave_out)
    found += _falls(study, scores)
    if study.unigram is not None:
        measured = _measured(store, study.unigram, study.settings.seed, text=False)
        found += [_labelled(f, SAME) for f in measured.findings]
        found += _to_unigram(study, scores, measured)
    if study.planted is not None:
        measured = _measured(store, study.planted, study.settings.seed, text=False)
        first = label_of(study.settings.dropout[0])
        found += [_labelled(f, f"{first}, {PLANTED}") for f in measured.findings]
        tables["units-planted"] = measured.table
    for work in study.works:
        found += [Finding.from_dict(row) for row in store.result(work)["findings"]]
    labels = tuple(corpus.label for corpus in study.corpora)
    counts = store.result(study.parts)["counts"]
    return Results(study.settings, counts, tuple(found), labels, rarity, tables)


def _measured(store: Store, audit: Audit, seed: int, text: bool) -> Compared:
    n = len(audit.left_out)
    return compare(store, audit, np.random.default_rng([seed, 3]), [f"unit {i}" for i in range(n)], text=text)


def _labelled(finding: Finding, label: str) -> Finding:
    return replace(finding, detail={**finding.detail, "corpus": label})


def _falls(study: Study, scores: Mapping[tuple[str, float], Compared]) -> list[Finding]:
    """What each larger dropout takes from the score and from the effect, on the same patients."""
    found = []
    first = study.settings.dropout[0]
    for (mode, dropout), one in scores.items():
        if dropout != first:
            detail = {"corpus": label_of(dropout), "mode": mode, "against": label_of(first)}
            found += _differences(scores[mode, first], one, detail, study.settings.seed)
    return found


def _to_unigram(study: Study, scores: Mapping[tuple[str, float], Compared], unigram: Compared) -> list[Finding]:
    """By how much the unigram is below each LSTM, on the same patients."""
    found = []
    for (mode, dropout), one in scores.items():
        if mode == "exact":
            detail = {"corpus": SAME, "mode": mode, "against": label_of(dropout)}
            found += _differences(one, unigram, detail, study.settings.seed)
    return found


def _differences(before: Compared, after: Compared, detail: dict[str, Any], seed: int) -> list[Finding]:
    """`attack.pdtp_fall` of the score, and of the effect where both have it."""
    found = [_fall(before.leave_out.scores - after.leave_out.scores, {**detail, "of": "score"}, seed)]
    if before.effects is not None and after.effects is not None:
        found.append(_fall(before.effects.own - after.effects.own, {**detail, "of": "effect"}, seed))
    return found


def _fall(difference: np.ndarray[Any, Any], detail: dict[str, Any], seed: int) -> Finding:
    low, high = t_interval(difference)
    return Finding(
        "attack.pdtp_fall",
        float(difference.mean()),
        difference.size,
        "higher",
        low,
        high,
        chance=0.0,
        source=crossfit.SOURCE,
        detail={**detail, "scale": "nats"},
        unit="audited patients",
        p=crossfit.flipped_p(difference, np.arange(difference.size), np.random.default_rng([seed, 4])),
        p_is="signs flipped by patient, one-sided",
        method=f"{crossfit.METHOD}, paired",
        chance_is=FALL_IS,
    )


def rarities(data: AuditData, compared: LeaveOut) -> dict[str, Any]:
    """Section 4.4: of the words where the differences are largest, how many are rare, and how.

    Returns:
        units, positive; `only_here`: the word stands in no other unit's or note's text; `before_only_here`: the word
        before it does not; `pair_only_here`: the two together do not; median occurrences, median place in the note.
    """
    ids, size = data.encoded.ids, data.vocabulary.size
    counts = np.bincount(ids, minlength=size)
    pairs = _pairs([data.encoded.note(row) for row in range(len(data.encoded))], size)
    rows: list[tuple[bool, bool, bool, int, float]] = []
    for unit, place in enumerate(compared.places):
        notes = data.notes_of(unit)
        own = np.concatenate(notes)
        word, before = int(own[place]), int(own[place - 1]) if place else 0
        rest = counts - np.bincount(own, minlength=size)
        own_pairs = _pairs(notes, size)
        pair = before * size + word
        alone = int((pairs == pair).sum() - (own_pairs == pair).sum()) == 0
        rows.append((rest[word] == 0, rest[before] == 0, alone, int(counts[word]), place / own.size))
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    names = ("only_here", "before_only_here", "pair_only_here")
    said: dict[str, Any] = {name: int(column.sum()) for name, column in zip(names, columns[:3], strict=True)}
    said |= {"units": len(rows), "positive": int((compared.signed > 0).sum())}
    return said | {"occurrences": float(np.median(columns[3])), "place": float(np.median(columns[4]))}


def _pairs(notes: list[np.ndarray[Any, Any]], size: int) -> np.ndarray[Any, Any]:
    """Each word with the one before it in its note, as one number."""
    return np.concatenate([note[:-1].astype(np.int64) * size + note[1:] for note in notes])
