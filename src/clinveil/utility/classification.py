"""Document classification, original against released: TF-IDF and logistic regression on the same split.

Trained and tested on the original notes, then trained and tested on the released ones. Chance is the majority class;
the control trains on shuffled labels. Intervals come from drawing test patients anew, with the difference paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT
from clinveil.corpus.sample import KeySample
from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.stats import bootstrap_weights, clopper_pearson
from clinveil.tokens import words
from clinveil.utility.split import Split, split

NOTES = 20_000
MIN_CLASS = 50
FEATURES = 50_000
SOURCE = "paper A, classification of obfuscated notes; here TF-IDF and logistic regression, balanced classes"
Classes = NDArray[np.int64]


@dataclass
class _Note:
    patient: str
    label: str
    original: str
    released: str | None = None


@dataclass(frozen=True)
class _Task:
    """Notes with both texts, their classes and the split."""

    notes: list[_Note]
    classes: Classes
    split: Split
    detail: dict[str, Any]


def classification(
    original: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    label: str,
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    min_class: int = MIN_CLASS,
    notes: int = NOTES,
) -> list[Finding]:
    """Macro-F1 and accuracy on the original, on the released, and what was lost, with patient-bootstrap intervals.

    Streams both once; at most `notes` labelled notes are sampled (said in the detail). Notes without a label and
    classes of fewer than `min_class` notes are left out and counted.

    Args:
        label: the column, in the original batches.
        crosswalk: source note id of each released one; None where they are equal.
    Raises:
        InputError: no such column, or a released note that the crosswalk does not know.
    """
    task = _task(original, released, label, rng, crosswalk, min_class, notes)
    if isinstance(task, Finding):
        return [task]
    truth = task.classes[task.split.test]
    try:
        original_guess, original_control = _guesses([n.original for n in task.notes], task, rng)
        released_guess, released_control = _guesses([n.released or "" for n in task.notes], task, rng)
    except InputError as error:
        return [_nothing(task.detail, error.what)]
    majority = np.full(truth.size, np.bincount(task.classes[task.split.train]).argmax())
    scores = _Scores(truth, [task.notes[i].patient for i in task.split.test], majority, task.detail)
    findings = []
    for metric in ("macro_f1", "accuracy"):
        findings += [
            scores.side(metric, "original", original_guess, original_control, rng),
            scores.side(metric, "released", released_guess, released_control, rng),
            scores.loss(metric, original_guess, released_guess, rng),
        ]
    return findings


def _task(
    original: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    label: str,
    rng: Generator,
    crosswalk: Mapping[str, str] | None,
    min_class: int,
    limit: int,
) -> _Task | Finding:
    held, detail = _read(original, label, limit, rng)
    _pair(held, released, crosswalk)
    paired = [note for note in held.values() if note.released is not None]
    sizes = Counter(note.label for note in paired)
    kept = sorted(name for name, size in sizes.items() if size >= min_class)
    chosen = [note for note in paired if note.label in kept]
    detail |= {
        "not_released": len(held) - len(paired),
        "classes": len(kept),
        "classes_too_small": len(sizes) - len(kept),
    }
    detail |= {"notes": len(chosen), "notes_of_small_classes": len(paired) - len(chosen), "min_class": min_class}
    if len(kept) < 2:
        return _nothing(detail, f"{len(kept)} classes of {min_class} notes or more; two are needed")
    try:
        parts = split([n.patient for n in chosen], [n.original for n in chosen], [n.label for n in chosen], rng)
    except InputError as error:
        return _nothing(detail, error.what)
    classes = np.array([kept.index(n.label) for n in chosen], dtype=np.int64)
    detail |= {"train": len(parts.train), "test": len(parts.test), "near_duplicates": parts.duplicates}
    if len(np.unique(classes[parts.train])) < 2:
        return _nothing(detail, "all notes to train on are of one class")
    return _Task(chosen, classes, parts, detail)


def _nothing(detail: dict[str, Any], why: str) -> Finding:
    return Finding("utility.classification", None, 0, "higher", source=SOURCE, detail={**detail, "why": why})


def _read(
    original: Iterable[pa.RecordBatch], label: str, limit: int, rng: Generator
) -> tuple[dict[str, _Note], dict[str, Any]]:
    sample: KeySample[_Note] = KeySample(limit, rng)
    unlabelled = 0
    for batch in original:
        if label not in batch.schema.names:
            raise InputError(f"there is no column {label!r} in the notes", remedy="keep it with --label")
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT, label))
        for note, patient, text, value in zip(*columns, strict=True):
            if text is None or value is None or value != value or not str(value).strip():
                unlabelled += text is not None
                continue
            row = _Note(patient if patient is not None else note, str(value), text)
            sample.offer(note, lambda row=row: row)  # type: ignore[misc]
    return sample.values, {"label": label, "sampled": sample.left_out, "without_label": unlabelled}


def _pair(held: dict[str, _Note], released: Iterable[pa.RecordBatch], crosswalk: Mapping[str, str] | None) -> None:
    for batch in released:
        for note, text in zip(batch[NOTE_ID].to_pylist(), batch[TEXT].to_pylist(), strict=True):
            if crosswalk is not None and note not in crosswalk:
                raise InputError("a released id is not in the crosswalk", remedy="name the vault of this release")
            source = crosswalk[note] if crosswalk is not None else note
            if source in held:
                held[source].released = text


def _guesses(texts: list[str], task: _Task, rng: Generator) -> tuple[Classes, Classes]:
    """The class of each test note by a model of the training notes, and by one whose labels were shuffled."""
    train, test = _features(texts, task.split)
    classes = task.classes[task.split.train]
    return _predict(train, classes, test, rng), _predict(train, rng.permutation(classes), test, rng)


def _features(texts: list[str], parts: Split) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, min_df=2, max_features=FEATURES, dtype=np.float32)
    try:
        train = vectorizer.fit_transform([texts[i] for i in parts.train])
    except ValueError:  # no word in two notes: sklearn's own message would say so less plainly
        raise InputError("no word stands in two notes: there is nothing to learn from") from None
    return train, vectorizer.transform([texts[i] for i in parts.test])


def _predict(train: Any, classes: Classes, test: Any, rng: Generator) -> Classes:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    model = LogisticRegression(
        C=10.0,
        class_weight="balanced",
        solver="newton-cg",
        max_iter=100,
        tol=1e-3,
        random_state=int(rng.integers(2**31)),
    )
    # One thread: the same sums on any machine, and ten times faster where others want the cores too.
    with threadpool_limits(1):
        return np.asarray(model.fit(train, classes).predict(test))


def macro_f1(truth: Classes, guess: Classes, weights: NDArray[Any] | None = None) -> float:
    """The mean over classes of F1; classes that are neither true nor guessed are left out, NaN where none is left."""
    n = int(max(truth.max(initial=0), guess.max(initial=0))) + 1
    right = np.bincount(truth, weights=_weighted(truth == guess, weights), minlength=n)
    both = np.bincount(truth, weights=weights, minlength=n) + np.bincount(guess, weights=weights, minlength=n)
    live = both > 0
    return float((2 * right[live] / both[live]).mean()) if live.any() else float("nan")


def accuracy(truth: Classes, guess: Classes, weights: NDArray[Any] | None = None) -> float:
    """The share of right guesses (micro-F1, where each note has one class)."""
    total = truth.size if weights is None else weights.sum()
    return float(_weighted(truth == guess, weights).sum() / total)


def _weighted(right: NDArray[np.bool_], weights: NDArray[Any] | None) -> NDArray[Any]:
    return right.astype(np.float64) if weights is None else right * weights


_METRICS = {"macro_f1": macro_f1, "accuracy": accuracy}


class _Scores:
    """Turns guesses on the test notes into findings, with intervals over test patients."""

    def __init__(self, truth: Classes, patients: list[str], majority: Classes, detail: dict[str, Any]) -> None:
        self._truth, self._majority = truth, majority
        self._patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
        self._detail = {**detail, "unit": "test notes", "interval": "bootstrap over patients, 95 %"}
        self._patients = int(self._patient.max()) + 1

    def side(self, metric: str, side: str, guess: Classes, shuffled: Classes, rng: Generator) -> Finding:
        """The score of one side, beside the majority class and shuffled labels."""
        score, truth = _METRICS[metric], self._truth
        low, high = bootstrap_weights(self._patients, lambda w: score(truth, guess, w[self._patient]), rng)
        if low == 1.0:  # all right: the bootstrap shrinks to a point, the exact interval of the patients does not
            low = clopper_pearson(self._patients, self._patients).low
        return Finding(
            "utility.classification" + ("" if metric == "macro_f1" else "_accuracy"),
            score(truth, guess),
            truth.size,
            "higher",
            low,
            high,
            chance=score(truth, self._majority),
            control=score(truth, shuffled),
            source=SOURCE,
            detail={**self._detail, "metric": metric, "side": side, "control": "training labels shuffled"},
        )

    def loss(self, metric: str, original: Classes, released: Classes, rng: Generator) -> Finding:
        """What the released side lost, paired on the same test notes."""
        score, truth = _METRICS[metric], self._truth

        def lost(weights: NDArray[np.int64]) -> float:
            by_note = weights[self._patient]
            return score(truth, original, by_note) - score(truth, released, by_note)

        low, high = bootstrap_weights(self._patients, lost, rng)
        value = score(truth, original) - score(truth, released)
        detail = {**self._detail, "metric": metric, "why": "a difference has no chance of its own"}
        return Finding(
            "utility.classification" + ("" if metric == "macro_f1" else "_accuracy") + "_loss",
            value,
            truth.size,
            "lower",
            low,
            high,
            source=SOURCE,
            detail=detail,
        )
