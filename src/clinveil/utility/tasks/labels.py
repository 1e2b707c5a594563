"""Classifiers for one label column, trained on several kinds of notes and tested on real held-out
notes.

`transfer` and `within` share these arms:
released  trained on released notes, tested on real notes
ceiling   trained on real notes, tested on real notes
floor     trained on notes of the same lengths and labels, whose words are drawn independently from
the words of the
          real training notes of that label
within    trained and tested on released notes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Finding, InputError, Ints, Number, words
from clinveil.stats import MeasureSpec
from clinveil.utility.classifiers import TrainTestTexts, predict
from clinveil.utility.labelled import (
    OTHER,
    ClassifiedNotes,
    RowsOfSplit,
    WrongNotes,
    folds_of,
    held_out_parts,
    paired,
    read_labelled,
    texts_of,
)
from clinveil.utility.scores import by_patient, f1_sums, macro_f1, permuted_f1
from clinveil.utility.shares import bootstrap_arms, share_finding
from clinveil.utility.tasks.notes import MOST_NOTES, Sides, refuse_few

METHOD = (
    "bootstrap over patients of the test notes, 95 %; exact where the classifiers agree on all of"
    " them"
)
RELEASE_CLASS = 20  # smallest class that is not merged: four test notes in each of five folds
FOLDS = 5  # without test patients


@dataclass(frozen=True)
class Tested:
    """Predicted classes of test notes, with the true classes and the patients: (n,) each."""

    truth: Ints = field(repr=False)
    guess: Ints = field(repr=False)
    patient: Ints = field(repr=False)


@dataclass(frozen=True)
class Label:
    """The labelled notes of both sides, on the same folds for all models.

    Attributes:
        real: notes with their classes, by id. released: where notes are paired the released notes
            with the same rows, else other notes with the same classes.
        folds: rows of `real`; one fold where there are test patients. released_folds: rows of
            `released`.
        seed: of the models. release: where the notes are from.
    """

    real: ClassifiedNotes
    released: ClassifiedNotes
    folds: list[RowsOfSplit] = field(repr=False)
    released_folds: list[RowsOfSplit] = field(repr=False)
    is_paired: bool
    seed: int
    release: Sides = field(repr=False)

    @classmethod
    def of(cls, release: Sides, label: str, rng: Generator) -> Label:
        """Read the notes that have the label, at most MOST_NOTES on each side.

        Raises WrongNotes where the original has no such column; InputError for too few notes,
        classes or patients.
        """
        real = _by_id(
            read_labelled(
                release.original.batches(),
                label,
                rng,
                limit=MOST_NOTES,
                min_class=RELEASE_CLASS,
                merge=True,
                tested=release.test_patients,
            )
        )
        if release.paired:
            real, texts = paired(real, texts_of(real, release.released.batches(), release.notes))
            released = replace(real, texts=texts)
        else:
            released = _by_id(_same_classes(release, label, real, rng))
        if release.test_patients is None:
            folds = folds_of(real, rng, FOLDS)
        else:
            refuse_few(len(release.test_patients.intersection(real.patients)))
            folds = [held_out_parts(real, release.test_patients, rng)]
        released_folds = folds if release.paired else folds_of(released, rng, FOLDS)
        seed = int(rng.integers(2**31))
        return cls(real, released, folds, released_folds, release.paired, seed, release)

    @cached_property
    def patients(self) -> tuple[Ints, Ints, int]:
        """Numbers of the patients of real and of released notes, and how many there are."""
        own = np.unique(np.array(self.real.patients, dtype=object), return_inverse=True)[1].astype(
            np.int64
        )
        n = int(own.max()) + 1
        if self.is_paired:
            return own, own, n
        theirs = (
            np.unique(np.array(self.released.patients, dtype=object), return_inverse=True)[1] + n
        )
        return own, theirs.astype(np.int64), int(theirs.max()) + 1

    @cached_property
    def weights(self) -> Doubles:
        """Weight of a test note by class, (n_classes,): labels of few patients have more test
        patients than others.

        With them, the classes of the test notes are as frequent as those of all notes.
        """
        n_classes = len(self.real.classes)
        if self.release.test_patients is None:
            return np.ones(n_classes)
        every, tested = (
            np.bincount(targets, minlength=n_classes) / len(targets)
            for targets in (self.real.targets, self.real.targets[self.folds[0].test])
        )
        return np.asarray(every / np.maximum(tested, 1e-9))

    @property
    def numbers(self) -> dict[str, Number]:
        """Counts for every finding."""
        kept = ("classes", "classes_merged", "not_released", "sampled")
        real = self.real.numbers
        sizes = {"train": len(self.folds[0].learn), "near_duplicates": self.folds[0].duplicates}
        sizes["train_released"] = sizes["train"] if self.is_paired else len(self.released)
        return {**{name: real[name] for name in kept if name in real}, **sizes}


@dataclass(frozen=True)
class ArmPredictions:
    """Predictions of one model on one label; each arm is trained on first access."""

    label: Label
    model: str

    @cached_property
    def ceiling(self) -> Tested:
        """Trained and tested on real notes."""
        real = self.label.real
        return self._tested(real, [TrainTestTexts(real.texts, real.texts)] * len(self.label.folds))

    @cached_property
    def floor(self) -> Tested:
        """Trained on words drawn independently per label, tested on real notes."""
        rng = np.random.default_rng([self.label.seed, 3])
        real = self.label.real
        sides = []
        for parts in self.label.folds:
            tested = set(parts.test.tolist())
            test = [text if row in tested else "" for row, text in enumerate(real.texts)]
            sides.append(TrainTestTexts(drawn_words(real, parts.learn, rng), test))
        return self._tested(real, sides)

    @cached_property
    def released(self) -> Tested:
        """Trained on released notes, tested on real notes."""
        if self.label.is_paired:
            return self._of_released[0]
        return self._transferred(self.label.real, self.label.released)

    @cached_property
    def within(self) -> Tested:
        """Trained and tested on released notes."""
        if self.label.is_paired:
            return self._of_released[1]
        notes = self.label.released
        sides = [TrainTestTexts(notes.texts, notes.texts)] * len(self.label.released_folds)
        return self._tested(notes, sides)

    @cached_property
    def _of_released(self) -> tuple[Tested, Tested]:
        """Trained once on released notes that have the rows of real ones, and tested on both."""
        n = len(self.label.real)
        both = _joined(self.label.real, self.label.released)
        folds = self.label.folds
        rows = [
            RowsOfSplit(one.train + n, one.valid + n, np.concatenate([one.test, one.test + n]))
            for one in folds
        ]
        runs = self._predicted(both, rows, [TrainTestTexts(both.texts, both.texts)] * len(rows))
        guesses = np.concatenate([guess.reshape(2, -1) for guess in runs], axis=1)
        tested = np.concatenate([one.test for one in folds])
        truth = self.label.real.targets[tested]
        patient = self.label.patients[0][tested]
        return Tested(truth, guesses[0], patient), Tested(truth, guesses[1], patient)

    def _tested(self, notes: ClassifiedNotes, sides: Sequence[TrainTestTexts]) -> Tested:
        own = notes is self.label.real
        folds = self.label.folds if own else self.label.released_folds
        tested = np.concatenate([parts.test for parts in folds])
        of_real, of_released, _ = self.label.patients
        guesses = np.concatenate(self._predicted(notes, folds, sides))
        return Tested(notes.targets[tested], guesses, (of_real if own else of_released)[tested])

    def _predicted(
        self, notes: ClassifiedNotes, folds: Sequence[RowsOfSplit], sides: Sequence[TrainTestTexts]
    ) -> list[Ints]:
        """Return the predictions of each fold; the settings that the first selects are those of
        all.
        """
        seed = self.label.seed
        first = predict(self.model, notes, folds[0], seed, sides[0])
        rest = zip(folds[1:], sides[1:], strict=True)
        return [
            first.test,
            *(predict(self.model, notes, one, seed, side, like=first).test for one, side in rest),
        ]

    def _transferred(self, real: ClassifiedNotes, other: ClassifiedNotes) -> Tested:
        """Train once on all released notes, and test on the real notes of all folds."""
        tested = np.concatenate([fold.test for fold in self.label.folds])
        first = self.label.released_folds[0]
        shift = len(real)
        valid = first.test + shift
        train = first.learn + shift
        both = _joined(real, other)
        made = predict(
            self.model,
            both,
            RowsOfSplit(train, valid, tested),
            self.label.seed,
            TrainTestTexts(both.texts, both.texts),
        )
        return Tested(real.targets[tested], made.test, self.label.patients[0][tested])

    def finding(self, measure: str, rng: Generator) -> Finding:
        """Return `utility.transfer` or `utility.within`: macro-F1 between this label's floor and
        ceiling.
        """
        arm = self.released if measure == "utility.transfer" else self.within
        n_classes = len(self.label.real.classes)
        n_patients = self.label.patients[2]
        sums = {
            name: by_patient(self._weighted(each, n_classes), each.patient, n_patients)
            for name, each in {
                "released": arm,
                "floor": self.floor,
                "ceiling": self.ceiling,
            }.items()
        }
        arms = bootstrap_arms(sums, macro_f1, rng, chance=permuted_f1)
        real = self.ceiling
        same = np.array_equal(arm.guess, real.guess) and np.array_equal(arm.truth, real.truth)
        agreeing = len(np.unique(real.patient)) if same else 0
        tested_on = self.label.release.tested_on(len(real.truth), len(np.unique(real.patient)))
        return share_finding(
            MeasureSpec(measure=measure, unit="test notes", method=METHOD),
            arms,
            len(arm.truth),
            "macro-F1",
            labels=(self.label.real.label, self.model),
            numbers={**self.label.numbers, "folds": len(self.label.folds)},
            tested_on=tested_on,
            agreeing=agreeing,
        )

    def _weighted(self, tested: Tested, n_classes: int) -> Doubles:
        """Return the contributions of notes to F1, (n, 3 n_classes), by the weights of their
        classes.
        """
        return (
            f1_sums(tested.truth, tested.guess, n_classes)
            * self.label.weights[tested.truth][:, None]
        )


def _joined(real: ClassifiedNotes, other: ClassifiedNotes) -> ClassifiedNotes:
    """Return the rows of two sides with the same classes, one after the other."""
    targets = np.concatenate([real.targets, other.targets])
    patients = [*real.patients, *other.patients]
    return replace(real, texts=[*real.texts, *other.texts], targets=targets, patients=patients)


def drawn_words(notes: ClassifiedNotes, learn: Ints, rng: Generator) -> list[str]:
    """Return notes of as many words as the training notes, drawn independently from the words of
    their label.

    Rows that are not for training are empty.
    """
    forms = {row: words(notes.texts[row]) for row in learn.tolist()}
    texts = [""] * len(notes)
    for target in np.unique(notes.targets[learn]).tolist():
        own = [row for row in forms if notes.targets[row] == target]
        pool = np.array([word for row in own for word in forms[row]], dtype=object)
        for row in own:
            texts[row] = " ".join(rng.choice(pool, len(forms[row])))
    return texts


def _by_id(notes: ClassifiedNotes) -> ClassifiedNotes:
    """Sort notes by id, so that the result does not depend on the order of rows."""
    return notes.only(sorted(range(len(notes)), key=lambda row: notes.note_ids[row]))


def _same_classes(
    release: Sides, label: str, real: ClassifiedNotes, rng: Generator
) -> ClassifiedNotes:
    """Return the released notes with the classes of the real ones. Raises InputError for a missing
    column or class.
    """
    try:
        notes = read_labelled(release.released.batches(), label, rng, limit=MOST_NOTES, min_class=1)
    except WrongNotes:
        raise InputError(
            "the released notes have no such column, and they cannot be paired with real notes"
        ) from None
    known = {name: at for at, name in enumerate(real.classes)}
    classes = [
        known.get(notes.classes[target], known.get(OTHER, -1)) for target in notes.targets.tolist()
    ]
    kept = [row for row, target in enumerate(classes) if target >= 0]
    if not kept:
        raise InputError("the released notes have none of the classes of the real notes")
    targets = np.array(classes, dtype=np.int64)
    return replace(notes, classes=real.classes, targets=targets).only(kept)
