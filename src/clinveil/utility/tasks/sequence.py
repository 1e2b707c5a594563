"""Sequence task: predict whether a content word is negated, which depends on the words around it.

Rules similar to NegEx label the words of the real notes. Where each released word replaces one word
of its source, in order, it gets the label of that word. Otherwise the rules label the released
text; then even random words teach the rules, so only a share with labels of the source shows that
word order is kept. A logistic regression on words and word pairs in a window is trained on released
windows and tested on real windows of other patients. Ceiling: trained on real windows. Floor:
trained on released windows with words and their labels shuffled within the note.

Source of the rules: Chapman, Bridewell, Hanbury, Cooper & Buchanan 2001, J. Biomed. Inform. 34:301.
Scope: five words, within the sentence, up to a conjunction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import Finding, GapScores, InputError, Ints, lookup_form, word_spans, words
from clinveil.stats import MeasureSpec
from clinveil.utility.scores import by_patient, f1_sums, macro_f1, permuted_f1
from clinveil.utility.shares import bootstrap_arms, share_finding
from clinveil.utility.tasks.notes import Sides, Texts, texts_entered

WINDOW = 6
FEATURES = 1 << 18
LEAST = 50
MOST = 40_000
SEQUENCE_FOLDS = 2
METHOD = (
    f"bootstrap over patients of the test notes (without test patients: {SEQUENCE_FOLDS} of 5"
    " folds), 95 %"
)

SEQUENCE = MeasureSpec(
    measure="utility.sequence", unit="words of test notes", better="higher", method=METHOD
)


@dataclass(frozen=True)
class LabelledWords:
    """The words of a note as numbers (1 and up), and the label of each."""

    ids: Ints = field(repr=False)
    labels: NDArray[np.int8] = field(repr=False)

    def shuffled(self, rng: Generator) -> LabelledWords:
        """Return the words in another order, each with its label."""
        order = rng.permutation(len(self.ids))
        return LabelledWords(self.ids[order], self.labels[order])


def sequence(release: Sides, texts: Texts, rng: Generator) -> list[Finding]:
    """Return `utility.sequence` with macro-F1 of negated against affirmed content words.

    Raises InputError for fewer independent notes than folds, or a fold without negated words.
    """
    numbers: dict[str, int] = {}
    real = [
        _numbered(numbers, forms, labels) for forms, _, labels in map(negation_labels, texts.real)
    ]
    released, carried = _released(release, texts, numbers)
    labels = ("negated words", "lr")
    of_source = {"labels_of_source": carried}
    if why := _too_few(real, released, texts):
        missing = replace(SEQUENCE, unit="").missing(why, labels=labels, numbers=of_source)
        return [replace(missing, scores=GapScores("macro-F1"))]
    n_patients = int(texts.patient.max()) + 1
    sums = {arm: np.zeros((n_patients, 6)) for arm in ("released", "floor", "ceiling")}
    for train, test in texts.folds[:SEQUENCE_FOLDS]:
        rows = texts.released_rows(train)
        ours = [real[i] for i in train]
        theirs = [released[i] for i in rows]
        tested = _windows([real[i] for i in test], rng)
        patient = texts.patient[test][tested.note]
        arms = {
            "released": theirs,
            "floor": [note.shuffled(rng) for note in theirs],
            "ceiling": ours,
        }
        for arm, notes in arms.items():
            guess = _fitted(_windows(notes, rng)).predict(tested.features)
            sums[arm] += by_patient(f1_sums(tested.labels, guess, 2), patient, n_patients)
    scored = bootstrap_arms(sums, macro_f1, rng, chance=permuted_f1)
    n = int(sums["ceiling"][:, 2:4].sum())
    tested_rows = texts.tested_rows(SEQUENCE_FOLDS)
    tested_patients = len(np.unique(texts.patient[tested_rows]))
    finding = share_finding(
        SEQUENCE,
        scored,
        n,
        "macro-F1",
        labels=labels,
        numbers=of_source,
        tested_on=release.tested_on(tested_rows.size, tested_patients),
    )
    return [finding]


def _too_few(real: Sequence[LabelledWords], released: Sequence[LabelledWords], texts: Texts) -> str:
    """Return why the task cannot be done if a side has too few negated words, else ""."""
    sides = {"real": real, "released": released}
    if texts.tested is not None:
        sides["test"] = [real[row] for row in np.flatnonzero(texts.tested).tolist()]
    for side, notes in sides.items():
        count = sum(int((note.labels == NEGATED).sum()) for note in notes)
        if count < LEAST:
            return (
                f"The rules detect {count} negated words in the {side} notes; {LEAST} are required."
            )
    return ""


def _numbered(
    numbers: dict[str, int], forms: Sequence[str], labels: NDArray[np.int8]
) -> LabelledWords:
    return LabelledWords(
        np.array([numbers.setdefault(form, len(numbers) + 1) for form in forms], dtype=np.int64),
        labels,
    )


def _released(
    release: Sides, texts: Texts, numbers: dict[str, int]
) -> tuple[list[LabelledWords], bool]:
    """Return the released notes with labels, and whether the labels come from the source words."""
    if not (release.paired and release.channel):
        by_rules = (negation_labels(text) for text in texts.released)
        return [_numbered(numbers, forms, labels) for forms, _, labels in by_rules], False
    labelled = []
    for text, source in zip(texts.released, texts_entered(release, texts), strict=True):
        forms = words(text)
        spans = release.channel.released_spans(source)
        if len(spans) != len(forms):
            labelled.append(_numbered(numbers, [], np.zeros(0, dtype=np.int8)))
            continue
        _, source_spans, labels = negation_labels(source)
        label_at = {
            start: label for (start, _), label in zip(source_spans, labels.tolist(), strict=True)
        }
        carried = [label_at.get(start, NEITHER) for start, _ in spans]
        labelled.append(_numbered(numbers, forms, np.array(carried, dtype=np.int8)))
    return labelled, True


@dataclass(frozen=True)
class _Windows:
    """Features (n, FEATURES) CSR, label and note of each sampled word."""

    features: Any = field(repr=False)
    labels: Ints = field(repr=False)
    note: Ints = field(repr=False)


def _windows(notes: Sequence[LabelledWords], rng: Generator) -> _Windows:
    """Return windows around all negated words and as many affirmed ones of the notes, at most MOST.

    Raises InputError if there are none.
    """
    gap = np.zeros(WINDOW, dtype=np.int64)
    ids = np.concatenate([gap, *(part for note in notes for part in (note.ids, gap))])
    blank = np.full(WINDOW, NEITHER, dtype=np.int8)
    labels = np.concatenate([blank, *(part for note in notes for part in (note.labels, blank))])
    owner = np.repeat(np.arange(len(notes)), [len(note.ids) + WINDOW for note in notes])
    owner = np.concatenate([np.zeros(WINDOW, dtype=np.int64), owner])
    places = [np.flatnonzero(labels == label) for label in (AFFIRMED, NEGATED)]
    size = min(*(place.size for place in places), MOST // 2)
    if not size:
        raise InputError("the notes of one fold have no negated or no affirmed words")
    chosen = np.sort(np.concatenate([rng.choice(place, size, replace=False) for place in places]))
    return _Windows(_features(ids, chosen), labels[chosen].astype(np.int64), owner[chosen])


def _features(ids: Ints, places: Ints) -> Any:
    """Return hashed features: the word, words and word pairs before and after it, and its two
    neighbours.
    """
    from scipy.sparse import csr_matrix

    around = ids[places[:, None] + np.arange(-WINDOW, WINDOW + 1)]
    before = around[:, :WINDOW]
    after = around[:, WINDOW + 1 :]
    centre = around[:, WINDOW : WINDOW + 1]
    kinds = [centre, before, after, before[:, -1:], after[:, :1]]
    singles = [_hashed(kind, 0, words_) for kind, words_ in enumerate(kinds)]
    pairs = [
        _hashed(8 + side, part[:, :-1], part[:, 1:]) for side, part in enumerate((before, after))
    ]
    columns = np.concatenate([*singles, *pairs], axis=1)
    ends = np.arange(len(places) + 1) * columns.shape[1]
    data = np.ones(columns.size, dtype=np.float32)
    made = csr_matrix((data, columns.ravel(), ends), shape=(len(places), FEATURES))
    made.sum_duplicates()
    made.data[:] = 1.0
    return made


def _hashed(kind: int, one: Ints | int, other: Ints) -> Ints:
    """Return the columns of features; padding has one column per kind."""
    mixed = (np.asarray(one, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(
        kind * 0x51_7C_C1_B7
    )
    mixed = (mixed + other.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed ^ (mixed >> np.uint64(29))) % np.uint64(FEATURES)).astype(np.int64)


def _fitted(windows: _Windows) -> Any:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        estimator = LogisticRegression(C=0.3, solver="liblinear", tol=1e-2, random_state=0)
        return estimator.fit(windows.features, windows.labels)


SCOPE = 5
AFFIRMED = 0
NEGATED = 1
NEITHER = -1

_BEFORE = (
    "no; not; without; never; cannot; denies; denied; deny; denying; negative for; no evidence"
    " of; no sign of; no signs of; free of; absence of; lack of; lacks; rule out; rules out; ruled"
    " out for; unremarkable for; nor; neither"
)
_AFTER = (
    "absent; was ruled out; were ruled out; is ruled out; are ruled out; not seen; not appreciated;"
    " not present"
)
_PSEUDO = (
    "no increase; no change; no interval change; no significant change; not only; not"
    " necessarily; not certain; not cause; not extend; not drain; without difficulty; without"
    " further; no further; gram negative"
)
_CONJUNCTIONS = (
    "but however except although though yet still which because secondary aside apart nevertheless"
)
_FUNCTION = (
    "a about above after all also an and any are as at be been before being both by can could did"
    " do does done due during each for from had has have having he her him his how if in into is"
    " it its may more most of off on one or other our out over own per she should since so some"
    " such than that the their them then there these they this those through to two under until up"
    " upon was we were what when where while who will with would year old patient noted there"
    " significant evidence sign signs history known"
)
_BREAK = re.compile(r"[.;:?!\n]")


def _phrases(listed: str) -> dict[str, list[tuple[str, ...]]]:
    """Return phrases by first word, longest first."""
    made: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(listed.split(";"), key=len, reverse=True):
        forms = tuple(phrase.split())
        made.setdefault(forms[0], []).append(forms)
    return made


_TRIGGERS = {"pseudo": _phrases(_PSEUDO), "after": _phrases(_AFTER), "before": _phrases(_BEFORE)}
_FIRST = frozenset(first for listed in _TRIGGERS.values() for first in listed)
_STOP = frozenset(_CONJUNCTIONS.split())
_WITHIN = frozenset(
    word for listed in _TRIGGERS.values() for some in listed.values() for p in some for word in p
)
_NO_CONTENT = frozenset(_FUNCTION.split()) | _STOP | _WITHIN


def negation_labels(text: str) -> tuple[list[str], list[tuple[int, int]], NDArray[np.int8]]:
    """Return the words of a text (lookup forms), their spans, and a label each: NEGATED, AFFIRMED,
    or NEITHER.

    NEITHER is for function words, triggers and words of fewer than three letters.
    """
    spans = list(word_spans(text))
    forms = [lookup_form(text[start:end]) for start, end in spans]
    breaks = [bool(_BREAK.search(text, one[1], other[0])) for one, other in pairwise(spans)]
    labels = np.array(
        [NEITHER if len(form) < 3 or form in _NO_CONTENT else AFFIRMED for form in forms],
        dtype=np.int8,
    )
    at = 0
    while at < len(forms):
        kind = ""
        length = 1
        if forms[at] in _FIRST:
            phrases = (
                (name, p) for name, listed in _TRIGGERS.items() for p in listed.get(forms[at], ())
            )
            fits = ((name, len(p)) for name, p in phrases if tuple(forms[at : at + len(p)]) == p)
            kind, length = next(fits, (kind, length))
        if kind == "before":
            _negate(labels, forms, breaks, at + length, 1)
        elif kind == "after":
            _negate(labels, forms, breaks, at - 1, -1)
        at += length
    return forms, spans, labels


def _negate(
    labels: NDArray[np.int8], forms: Sequence[str], breaks: Sequence[bool], start: int, step: int
) -> None:
    """Negate content words from `start` on, in the direction of `step`, to the end of the scope."""
    for at in range(start, start + step * SCOPE, step):
        inside = 0 <= at < len(forms)
        border = min(at, at - step)  # the gap between this word and the one nearer to the trigger
        if not inside or (0 <= border < len(breaks) and breaks[border]) or forms[at] in _STOP:
            return
        if labels[at] == AFFIRMED:
            labels[at] = NEGATED
