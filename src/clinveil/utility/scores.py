"""Scores of classifiers: micro- and macro-F1 and accuracy, with intervals over test patients and
paired differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import NO_NUMBERS, Doubles, Finding, Ints, Numbers
from clinveil.stats import bootstrap_weights, clopper_pearson

UNIT = "test notes"
ORIGINAL = "original notes"
RELEASED = "released notes"
METHOD = "bootstrap over patients, 95 %"
Classes = NDArray[Any]  # (n,) int64, or (n, n_classes) bool
SOURCE = "paper A, Table 4 and Figure 2: classification of protected text"


def f1_sums(truth: Classes, guess: Classes, n_classes: int) -> Doubles:
    """Return the contributions of each item to F1, (n, 3 n_classes): correct, true and predicted by
    class.
    """
    if truth.ndim == 2:
        return np.concatenate([truth & guess, truth, guess], axis=1).astype(np.float64)
    sums = np.zeros((len(truth), 3 * n_classes))
    rows = np.arange(len(truth))
    sums[rows, truth] = truth == guess
    sums[rows, n_classes + truth] = 1
    sums[rows, 2 * n_classes + guess] = 1
    return sums


def macro_f1(sums: Doubles) -> Doubles:
    """Return the mean F1 of the classes that are true or predicted, from sums of `f1_sums`; NaN if
    there are none.
    """
    right, true, predicted = np.split(sums, 3, axis=-1)
    live = true + predicted > 0
    each = 2 * right / np.where(live, true + predicted, 1)
    with np.errstate(invalid="ignore"):
        return np.asarray(each.sum(axis=-1) / live.sum(axis=-1))


def micro_f1(sums: Doubles) -> Doubles:
    """Return F1 over all decisions; with one class per note it is the accuracy. NaN if there are
    none.
    """
    right, true, predicted = (part.sum(axis=-1) for part in np.split(sums, 3, axis=-1))
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * right / (true + predicted))


def permuted_f1(sums: Doubles) -> Doubles:
    """Return the expected macro-F1 of the same predictions over all permutations of the true
    labels: a fair chance.
    """
    _, true, predicted = np.split(sums, 3, axis=-1)
    n = np.maximum(true.sum(axis=-1, keepdims=True), 1)
    return macro_f1(np.concatenate([true * predicted / n, true, predicted], axis=-1))


def by_patient(values: NDArray[Any], patient: Ints, n_patients: int) -> Doubles:
    """Add up the rows of each patient: values (n, n_sums) -> (n_patients, n_sums)."""
    sums = np.zeros((n_patients, values.shape[1]))
    np.add.at(sums, patient, values)
    return sums


METRICS: Mapping[str, Callable[[Doubles], Doubles]] = {
    "macro_f1": macro_f1,
    "micro_f1": micro_f1,
    "accuracy": micro_f1,
}
_MEASURES = {"macro_f1": "", "micro_f1": "_micro", "accuracy": "_accuracy"}


def score(metric: str, truth: Classes, guess: Classes) -> float:
    """Return a metric of predicted classes; NaN if undefined."""
    n_classes = int(max(truth.max(initial=0), guess.max(initial=0))) + 1
    return float(METRICS[metric](f1_sums(truth, guess, n_classes).sum(axis=0)))


class Scores:
    """Makes findings of predictions on the test notes; several runs (seeds) of one model are
    averaged.
    """

    def __init__(
        self,
        truth: Classes,
        patients: Sequence[str],
        majority: Classes,
        labels: tuple[str, ...] = (),
        numbers: Numbers = NO_NUMBERS,
    ) -> None:
        self._truth = truth
        self._majority = majority
        self._patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
        self._labels = labels
        self._numbers = numbers
        self._patients = int(self._patient.max()) + 1
        self._all = np.ones(self._patients, dtype=np.int64)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that differ: with one class per note micro-F1 equals accuracy."""
        return ("macro_f1", "micro_f1") if self._truth.ndim == 2 else ("macro_f1", "accuracy")

    def _scores(self, metric: str, guesses: Sequence[Classes]) -> Callable[[Ints], float]:
        """Return a function from the weights of patients to the mean score of some runs."""
        n_classes = int(max(each.max(initial=0) for each in (self._truth, *guesses))) + 1
        sums = [
            by_patient(f1_sums(self._truth, guess, n_classes), self._patient, self._patients)
            for guess in guesses
        ]
        return lambda weights: float(np.mean([METRICS[metric](weights @ each) for each in sums]))

    def side(
        self,
        metric: str,
        series: str,
        guesses: Sequence[Classes],
        shuffled: Sequence[Classes],
        rng: Generator,
        numbers: Numbers = NO_NUMBERS,
    ) -> Finding:
        """Return the score of one side, with the majority class as chance and shuffled labels as
        control.
        """
        mean = self._scores(metric, guesses)
        low, high = bootstrap_weights(self._patients, mean, rng)
        # All correct: the bootstrap has no variance, so use the exact interval of the patients.
        if low == 1.0:
            low = clopper_pearson(self._patients, self._patients).low
        guessed = score(metric, self._truth, self._majority)
        numbers = {**self._numbers, **numbers, "seeds": len(guesses)}
        if len(guesses) > 1:
            each = [score(metric, self._truth, guess) for guess in guesses]
            numbers["seed_sd"] = float(np.std(each, ddof=1))
            numbers["worst"] = min(each)
            numbers["best"] = max(each)
        return Finding(
            f"utility.classification{_MEASURES[metric]}",
            mean(self._all),
            len(self._truth),
            "higher",
            low=low,
            high=high,
            chance=None if np.isnan(guessed) else guessed,
            control=self._scores(metric, shuffled)(self._all) if shuffled else None,
            chance_is="always the most frequent class",
            control_is="training labels shuffled" if shuffled else "",
            control_kind="negative" if shuffled else None,
            unit=UNIT,
            method=METHOD,
            source=SOURCE,
            series=series,
            labels=(*self._labels, metric),
            numbers=numbers,
        )

    def loss(
        self, metric: str, original: Sequence[Classes], released: Sequence[Classes], rng: Generator
    ) -> Finding:
        """Return the loss of the released side, paired on the same test notes."""

        ours, theirs = (self._scores(metric, side) for side in (original, released))

        def lost(weights: Ints) -> float:
            return ours(weights) - theirs(weights)

        low, high = bootstrap_weights(self._patients, lost, rng)
        return Finding(
            f"utility.classification{_MEASURES[metric]}_loss",
            lost(self._all),
            len(self._truth),
            "lower",
            low=low,
            high=high,
            unit=UNIT,
            method=METHOD,
            source=SOURCE,
            labels=(*self._labels, metric),
            numbers=self._numbers,
            why="a difference has no chance level",
        )


# The grid of the code that paper A's MIMIC task follows, which tuned the threshold on the reported
# test notes.
THRESHOLDS = (0.02, 0.03, 0.04, 0.05, 0.055, 0.058, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def choose(truth: Classes, probabilities: Doubles) -> tuple[float, float]:
    """Return the validation score that models are selected by, and the threshold of all labels.

    With several labels per note the score is micro-F1 at the best threshold (the largest of equal
    ones), otherwise macro-F1 of the likeliest classes; 0 if undefined.
    """
    if truth.ndim == 1:
        return float(
            np.nan_to_num(score("macro_f1", truth, probabilities.argmax(axis=1)))
        ), THRESHOLDS[-1]
    return max(
        (float(np.nan_to_num(score("micro_f1", truth, probabilities >= t))), t) for t in THRESHOLDS
    )


def decided(probabilities: Doubles, threshold: float, *, several: bool) -> Classes:
    """Return the predicted classes: all with a probability of at least the threshold, or the
    likeliest one.
    """
    return probabilities >= threshold if several else probabilities.argmax(axis=1).astype(np.int64)


def majority_of(targets: Classes, n: int) -> Classes:
    """Return a constant guess for n notes: the most frequent class, or with several labels the k
    most frequent.

    k has the best micro-F1 on the given targets. Source: paper A's reference 28, "predict top 4".
    """
    if targets.ndim == 1:
        return np.full(n, np.bincount(targets).argmax())
    order = np.argsort(-targets.sum(axis=0), kind="stable")
    guesses = [np.isin(np.arange(order.size), order[:k]) for k in range(1, order.size + 1)]
    best = max(
        guesses, key=lambda guess: score("micro_f1", targets, np.tile(guess, (len(targets), 1)))
    )
    return np.tile(best, (n, 1))
