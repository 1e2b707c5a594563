"""Attribute inference: attributes of patients predicted by a classifier from their released notes.

The attacker has notes of other patients with the attribute: released ones, or plain ones of the
same kind. The reference is an attacker without notes of the patient, who always names the most
common value. Predicting diagnoses is
also a use of a release: the figure shows what any recipient can learn about a patient from a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, source_id
from clinveil.attacks.text.linkage.matchers import counts
from clinveil.core import Doubles, Finding, InputError, Ints, Mask, WordIds, setting, words
from clinveil.corpus import Corpus, KeySample, Note, rows, rows_with
from clinveil.stats import MeasureSpec, bootstrap_weights

TrainingSet = tuple[Sequence[Sequence[str]], Ints]
TrainingSource = Callable[[Mask], TrainingSet]
FOLDS = 3
FEATURES = 20_000
NOTES = 600
CLASSES = 20
MIN_PATIENTS = 10
STRENGTH = 10.0
TOO_FEW = "fewer than two values with ten patients each"
RELEASED = "released notes of other patients"
PLAIN = "plain notes of other patients"
SOURCE = (
    "attribute inference: Yeom et al. 2018, IEEE CSF, advantage over the prior; TF-IDF and logistic"
    " regression"
)
CHANCE_IS = "always naming the same value, without the patient's note"
CONTROL_IS = "the same classifier, trained on labels shuffled among the other patients"


class Inference(Attack):
    """Predict an attribute of patients from their released notes, trained on other patients'
    notes.
    """

    needs = frozenset({"released", "keep"})
    on_release = True
    order = 460
    most: int = setting(NOTES, "Maximum released notes, a random sample.", ge=20)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack per kept column: trained on released notes, and on plain ones (`reference`
        or `original`).
        """
        assert context.released is not None
        found: list[Finding] = []
        for column in context.keep:
            notes = read_labelled(context.released, column, rng, most=self.most)
            if notes.classes < 2:
                spec = MeasureSpec(measure="attack.inference", unit="notes")
                found.append(spec.missing(TOO_FEW, labels=(column,)))
                continue
            released = predict(notes, notes.training_set, rng)
            found.append(released.finding((RELEASED, column), rng))
            if (plain := _plain(notes, context, column, rng, self.most)) is not None:
                found.append(predict(notes, plain, rng).finding((PLAIN, column), rng))
        return found


@dataclass(frozen=True, eq=False)
class AttributeNotes:
    """Notes with an attribute of their patients.

    Attributes:
        ids, texts: of the notes. labels: (n,) numbers of the attribute. people: (n,) numbers of the
            patients.
        names: of the labels. left_out: notes with a label of too few patients.
    """

    ids: Sequence[str] = field(repr=False)
    texts: Sequence[Sequence[str]] = field(repr=False)
    labels: Ints = field(repr=False)
    people: Ints = field(repr=False)
    names: Sequence[str] = field(repr=False)
    left_out: int = 0

    @property
    def classes(self) -> int:
        """Return the number of labels."""
        return len(self.names)

    def training_set(self, rows: Mask) -> TrainingSet:
        """Return words and labels of some of the notes."""
        return [
            text for text, included in zip(self.texts, rows, strict=True) if included
        ], self.labels[rows]


def _labelled_words(note: Note, label: str) -> tuple[str, list[str], str]:
    return note.patient_id, words(note.text), label


def read_labelled(
    corpus: Corpus, column: str, rng: Generator, *, most: int, names: Sequence[str] | None = None
) -> AttributeNotes:
    """Sample notes with a label in `names`, or is one of the most frequent with at least ten
    patients.
    """
    sample: KeySample[tuple[str, list[str], str]] = KeySample(most, rng)
    for note, (value,) in rows_with(corpus, column):
        if isinstance(value, str | int | bool) and note.text:
            sample.offer(note.note_id, partial(_labelled_words, note, str(value)))
    notes = sample.values
    if names is None:
        patients_of = Counter(
            label for _, label in {(patient, label) for patient, _, label in notes.values()}
        )
        names = sorted(label for label, n in patients_of.most_common(CLASSES) if n >= MIN_PATIENTS)
    number_of = {name: number for number, name in enumerate(names)}
    kept = {note: one for note, one in notes.items() if one[2] in number_of}
    people = np.unique(
        np.array([one[0] for one in kept.values()], dtype=object), return_inverse=True
    )[1]
    labels = np.array([number_of[one[2]] for one in kept.values()], dtype=np.int64)
    return AttributeNotes(
        [*kept],
        [one[1] for one in kept.values()],
        labels,
        people.astype(np.int64),
        names,
        len(notes) - len(kept),
    )


def _plain(
    notes: AttributeNotes, context: Context, column: str, rng: Generator, most: int
) -> TrainingSource | None:
    """Return the plain training notes: external ones with the attribute, or the source notes of the
    training fold.
    """
    if context.reference is not None:
        others = read_labelled(context.reference, column, rng, most=most, names=notes.names)
        if len(np.unique(others.labels)) < notes.classes:
            raise InputError(
                "the known notes lack a label of the released notes",
                hint="provide more known notes",
            )
        return lambda fold: others.training_set(np.ones(len(others.labels), dtype=np.bool_))
    if context.original is None:
        return None
    wanted = {source_id(note, context.notes): i for i, note in enumerate(notes.ids)}
    texts = {
        wanted[note.note_id]: words(note.text)
        for note in rows(context.original)
        if note.note_id in wanted
    }
    if len(texts) < len(notes.ids):
        raise InputError(
            "a released note has no source note", hint="pass the source notes of this release"
        )
    plain = replace(notes, texts=[texts[i] for i in range(len(notes.ids))])
    return plain.training_set


def predict(
    notes: AttributeNotes, training_of: TrainingSource, rng: Generator
) -> AttributePredictions:
    """Predict each note's label from other patients, in three folds, and once more with shuffled
    training labels.

    Args:
        training_of: returns training words and labels for a mask of rows.
    """
    folds = rng.permutation(np.arange(int(notes.people.max()) + 1) % FOLDS)[notes.people]
    chances = np.zeros((len(notes.labels), notes.classes))
    shuffled = np.zeros((len(notes.labels), notes.classes))
    for fold in range(FOLDS):
        test = folds == fold
        texts, labels = training_of(~test)
        if test.any() and len(np.unique(labels)) > 1:
            new = [text for text, included in zip(notes.texts, test, strict=True) if included]
            chances[test], shuffled[test] = _predicted(
                texts, (labels, rng.permutation(labels)), new, notes.classes
            )
    return AttributePredictions(notes, chances, shuffled)


def _predicted(
    texts: Sequence[Sequence[str]],
    labellings: Sequence[Ints],
    new: Sequence[Sequence[str]],
    classes: int,
) -> list[Doubles]:
    """Return probabilities, (n_new, classes), for each labelling of the texts."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    seen = Counter(word for text in texts for word in set(text))
    ids = WordIds.of((word for word, n in seen.most_common(FEATURES) if n > 1), first=0)
    weighed = TfidfTransformer(sublinear_tf=True)
    probabilities = []
    training = weighed.fit_transform(counts(texts, ids))
    test = weighed.transform(counts(new, ids))
    for labels in labellings:
        with threadpool_limits(1):
            fitted = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=200).fit(
                training, labels
            )
        chances = np.zeros((len(new), classes))
        chances[:, fitted.classes_] = fitted.predict_proba(test)
        probabilities.append(chances)
    return probabilities


@dataclass(frozen=True, eq=False)
class AttributePredictions:
    """Label probabilities of each note, (n, classes), and the same with shuffled training
    labels.
    """

    notes: AttributeNotes
    chances: Doubles
    shuffled: Doubles

    def finding(self, labels: tuple[str, ...], rng: Generator) -> Finding:
        """Return the balanced accuracy, with an interval by patient.

        Of two values, an attacker whose classifier is mostly wrong names the other one: if the
        whole interval is below chance, the figure is that of this attacker (`turned`).
        """
        truth = self.notes.labels
        people = self.notes.people
        even = np.ones(len(truth))
        value = _balanced(truth, self.chances, even)
        control = _balanced(truth, self.shuffled, even)

        def of_drawn(weights: Ints) -> float:
            return _balanced(truth, self.chances, weights[people].astype(np.float64))

        low, high = bootstrap_weights(int(people.max()) + 1, of_drawn, rng, draws=1000)
        classes = self.notes.classes
        is_reversed = classes == 2 and high < 0.5
        numbers: dict[str, float] = {
            "classes": classes,
            "left_out": self.notes.left_out,
            "accuracy": float((self.chances.argmax(axis=1) == truth).mean()),
            "majority": float(np.bincount(truth).max() / len(truth)),
        }
        if is_reversed:
            numbers["turned"] = True
            value = 1 - value
            control = 1 - control
            reversed_low = 1 - high
            high = 1 - low
            low = reversed_low
        return Finding(
            "attack.inference",
            value,
            len(truth),
            "lower",
            low,
            high,
            chance=1 / classes,
            chance_is=CHANCE_IS,
            control=control,
            control_is=CONTROL_IS,
            control_kind="negative",
            source=SOURCE,
            labels=labels,
            numbers=numbers,
            unit="notes",
            method="bootstrap over patients, 95 %",
        )


def _balanced(labels: Ints, chances: Doubles, weights: Doubles) -> float:
    """Return the mean over labels of the share of right predictions; labels not in the resample are
    left out.
    """
    n = chances.shape[1]
    right = np.bincount(labels, weights * (chances.argmax(axis=1) == labels), n)
    drawn = np.bincount(labels, weights, n)
    return float((right[drawn > 0] / drawn[drawn > 0]).mean())
