"""Attribute inference: what a classifier reads off released notes about their patients.

The attacker holds notes of other patients with the attribute: released ones, or plain ones of the same kind. He is
compared with one who has no notes of the patient, and says what is usual. That a classifier reads diagnoses is the use
of a release as well: the figure says what any recipient may learn of a patient of whom they know the note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import diags

from clinveil.attacks.attack import Attack, Context, attacks, source_id
from clinveil.attacks.text.linkage.matchers import counts, logged, rarity, unit
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.tokens import WordIds, words
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows, rows_with
from clinveil.corpus.sample import KeySample
from clinveil.stats import bootstrap_weights
from clinveil.stats.findings import unmeasured

Lesson = tuple[Sequence[Sequence[str]], Ints]
Teach = Callable[[Mask], Lesson]
Score = Callable[[Ints, Doubles, Doubles], float]
FOLDS, FEATURES, NOTES, CLASSES, EACH, STRENGTH = 3, 20_000, 600, 20, 10, 10.0
TOO_FEW = "fewer than two values that ten patients have"
RELEASED, PLAIN = "released notes of other patients", "plain notes of other patients"
SOURCE = "attribute inference: Yeom et al. 2018, IEEE CSF, advantage over the prior; TF-IDF and logistic regression"
CHANCE_IS = "always saying the same, without the patient's note"
CONTROL_IS = "the same classifier, learnt with the labels shuffled among the other patients"


@attacks.register("inference")
class Inference(Attack):
    """Read an attribute of patients off their released notes, learnt from other patients' notes."""

    needs = frozenset({"released", "keep"})
    words = words_beside(__file__)
    on_release = True
    order = 460
    most: int = flag(NOTES, "Released notes at most, those of a random sample.", ge=20)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """For each kept column: learnt from released notes, and from plain ones, `reference` or `original`."""
        assert context.released is not None
        found: list[Finding] = []
        for column in context.keep:
            held, told = read(context.released, column, rng, most=self.most), {"label": column}
            if held.classes < 2:
                found.append(unmeasured("attack.inference", TOO_FEW, detail=told, unit="notes"))
                continue
            found += guesses(held, held.learn, rng).findings({**told, "against": RELEASED}, rng)
            if (plain := _plain(held, context, column, rng, self.most)) is not None:
                found += guesses(held, plain, rng).findings({**told, "against": PLAIN}, rng)
        return found


@dataclass(frozen=True, eq=False)
class Notes:
    """Notes with an attribute of their patients.

    Attributes:
        ids, texts: of the notes. labels: (n,) the attribute, numbered. people: (n,) numbers of the patients.
        names: of the labels. left_out: notes of labels that too few patients have.
    """

    ids: Sequence[str] = field(repr=False)
    texts: Sequence[Sequence[str]] = field(repr=False)
    labels: Ints = field(repr=False)
    people: Ints = field(repr=False)
    names: Sequence[str] = field(repr=False)
    left_out: int = 0

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return len(self.names)

    def learn(self, rows: Mask) -> Lesson:
        """Words and labels of some of the notes."""
        return [text for text, takes in zip(self.texts, rows, strict=True) if takes], self.labels[rows]


def read(corpus: Corpus, column: str, rng: Generator, *, most: int, names: Sequence[str] | None = None) -> Notes:
    """The notes of a sample whose label is among `names`, or among the most frequent that ten patients or more have."""
    sample: KeySample[tuple[str, list[str], str]] = KeySample(most, rng)
    for note, (value,) in rows_with(corpus, column):
        if isinstance(value, str | int | bool) and note.text:
            sample.offer(note.note_id, lambda n=note, v=value: (n.patient_id, words(n.text), str(v)))  # type: ignore[misc]
    held = sample.values
    if names is None:
        having = Counter(label for _, label in {(patient, label) for patient, _, label in held.values()})
        names = sorted(label for label, n in having.most_common(CLASSES) if n >= EACH)
    place = {name: number for number, name in enumerate(names)}
    kept = {note: one for note, one in held.items() if one[2] in place}
    people = np.unique(np.array([one[0] for one in kept.values()], dtype=object), return_inverse=True)[1]
    labels = np.array([place[one[2]] for one in kept.values()], dtype=np.int64)
    return Notes(
        [*kept], [one[1] for one in kept.values()], labels, people.astype(np.int64), names, len(held) - len(kept)
    )


def _plain(held: Notes, context: Context, column: str, rng: Generator, most: int) -> Teach | None:
    """Plain notes to learn from: others' with the attribute, or the source notes of those in the fold."""
    if context.reference is not None:
        others = read(context.reference, column, rng, most=most, names=held.names)
        if len(np.unique(others.labels)) < held.classes:
            raise InputError("the known notes lack a label that released notes have", hint="give more of them")
        return lambda fold: others.learn(np.ones(len(others.labels), dtype=np.bool_))
    if context.original is None:
        return None
    wanted = {source_id(note, context.notes): i for i, note in enumerate(held.ids)}
    texts = {wanted[note.note_id]: words(note.text) for note in rows(context.original) if note.note_id in wanted}
    if len(texts) < len(held.ids):
        raise InputError("a released note has no source here", hint="name the notes it was made from")
    plain = replace(held, texts=[texts[i] for i in range(len(held.ids))])
    return plain.learn


def guesses(held: Notes, teach: Teach, rng: Generator) -> Guesses:
    """What is guessed of each note by who learnt from other patients, in three folds; and with labels shuffled.

    Args:
        teach: from the rows of the other patients to words and labels to learn from.
    """
    folds = rng.permutation(np.arange(int(held.people.max()) + 1) % FOLDS)[held.people]
    chances, shuffled = (np.zeros((len(held.labels), held.classes)) for _ in range(2))
    for fold in range(FOLDS):
        asked = folds == fold
        texts, labels = teach(~asked)
        if asked.any() and len(np.unique(labels)) > 1:
            new = [text for text, takes in zip(held.texts, asked, strict=True) if takes]
            chances[asked], shuffled[asked] = _learnt(texts, (labels, rng.permutation(labels)), new, held.classes)
    return Guesses(held, chances, shuffled)


def _learnt(
    texts: Sequence[Sequence[str]], lessons: Sequence[Ints], new: Sequence[Sequence[str]], classes: int
) -> list[Doubles]:
    """(n_new, classes) probabilities for each way to label the texts."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    seen = Counter(word for text in texts for word in set(text))
    ids = WordIds.of((word for word, n in seen.most_common(FEATURES) if n > 1), first=0)
    known, asked = counts(texts, ids), counts(new, ids)
    rare, made = diags(rarity(known)), []
    known, asked = (unit(logged(side) @ rare) for side in (known, asked))
    for labels in lessons:
        with threadpool_limits(1):
            fitted = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=200).fit(known, labels)
        chances = np.zeros((len(new), classes))
        chances[:, fitted.classes_] = fitted.predict_proba(asked)
        made.append(chances)
    return made


@dataclass(frozen=True, eq=False)
class Guesses:
    """Probabilities of each note's labels, (n, classes), and the same of one who learnt from shuffled labels."""

    notes: Notes
    chances: Doubles
    shuffled: Doubles

    def findings(self, told: Mapping[str, Any], rng: Generator) -> list[Finding]:
        """Balanced accuracy and the area under the curve, with intervals by patient."""
        usual = float(np.bincount(self.notes.labels).max() / len(self.notes.labels))
        right = float((self.chances.argmax(axis=1) == self.notes.labels).mean())
        detail = {**told, "classes": self.notes.classes, "left_out": self.notes.left_out}
        plain = {**detail, "accuracy": right, "majority": usual}
        return [
            self._finding("attack.inference", _balanced, 1 / self.notes.classes, plain, rng, 1000),
            self._finding("attack.inference_auc", _area, 0.5, detail, rng, 200),
        ]

    def _finding(
        self, measure: str, score: Score, chance: float, detail: Mapping[str, Any], rng: Generator, draws: int
    ) -> Finding:
        labels, people = self.notes.labels, self.notes.people
        n_people, even = int(people.max()) + 1, np.ones(len(labels))
        value, control = (score(labels, chances, even) for chances in (self.chances, self.shuffled))

        def of_drawn(weights: Ints) -> float:
            return score(labels, self.chances, weights[people].astype(np.float64))

        low, high = bootstrap_weights(n_people, of_drawn, rng, draws=draws)
        about: dict[str, Any] = {"control": control, "control_is": CONTROL_IS, "control_kind": "negative"}
        about |= {"chance": chance, "chance_is": CHANCE_IS, "method": "bootstrap over patients, 95 %", "unit": "notes"}
        return Finding(measure, value, len(labels), "lower", low, high, source=SOURCE, detail=detail, **about)


def _balanced(labels: Ints, chances: Doubles, weights: Doubles) -> float:
    """The mean over labels of the share of their notes that are guessed; labels that were not drawn are left out."""
    n = chances.shape[1]
    right = np.bincount(labels, weights * (chances.argmax(axis=1) == labels), n)
    drawn = np.bincount(labels, weights, n)
    return float((right[drawn > 0] / drawn[drawn > 0]).mean())


def _area(labels: Ints, chances: Doubles, weights: Doubles) -> float:
    """The mean over labels of P(a note of the label has a higher chance of it than another note), ties by half."""
    areas = [_one_area(labels == label, chances[:, label], weights) for label in range(chances.shape[1])]
    return float(np.nanmean(areas))


def _one_area(has: Mask, chance: Doubles, weights: Doubles) -> float:
    level = np.unique(chance, return_inverse=True)[1]
    with_it, without = (np.bincount(level, weights * side) for side in (has, ~has))
    below = np.cumsum(without) - without / 2
    total = with_it.sum() * without.sum()
    return float((with_it * below).sum() / total) if total else float("nan")
