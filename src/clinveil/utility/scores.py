"""Scores of classifiers: micro- and macro-F1 and accuracy, with intervals over test patients and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.finding import Better, Finding
from clinveil.core.types import Doubles
from clinveil.stats import Interval, bootstrap_weights, clopper_pearson

UNIT, METHOD = "test notes", "bootstrap over patients, 95 %"
Classes = NDArray[Any]  # (n,) int64, or (n, n_classes) bool
Weights = NDArray[Any] | None
SOURCE = "paper A, Table 4 and Figure 2: classification of protected text"


def macro_f1(truth: Classes, guess: Classes, weights: Weights = None) -> float:
    """Return the mean F1 over classes, without classes that are neither true nor predicted; NaN if none is left."""
    right, both = _counts(truth, guess, weights)
    live = both > 0
    return float((2 * right[live] / both[live]).mean()) if live.any() else float("nan")


def micro_f1(truth: Classes, guess: Classes, weights: Weights = None) -> float:
    """Return F1 over all decisions; with one class per note it equals accuracy. NaN if there are none."""
    right, both = _counts(truth, guess, weights)
    return float(2 * right.sum() / both.sum()) if both.sum() else float("nan")


def accuracy(truth: Classes, guess: Classes, weights: Weights = None) -> float:
    """Return the share of notes with all classes predicted correctly."""
    right = truth == guess if truth.ndim == 1 else (truth == guess).all(axis=1)
    total = len(right) if weights is None else weights.sum()
    return float(_weighted(right, weights).sum() / total)


def _counts(truth: Classes, guess: Classes, weights: Weights) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return for each class the true positives, and the sum of true and predicted occurrences."""
    if truth.ndim == 2:
        column = np.ones(len(truth)) if weights is None else weights
        return column @ (truth & guess), column @ truth.astype(np.int64) + column @ guess.astype(np.int64)
    n = int(max(truth.max(initial=0), guess.max(initial=0))) + 1
    right = np.bincount(truth, weights=_weighted(truth == guess, weights), minlength=n)
    both = np.bincount(truth, weights=weights, minlength=n) + np.bincount(guess, weights=weights, minlength=n)
    return right, both


def _weighted(right: NDArray[np.bool_], weights: Weights) -> NDArray[Any]:
    return right.astype(np.float64) if weights is None else right * weights


METRICS: Mapping[str, Callable[..., float]] = {"macro_f1": macro_f1, "micro_f1": micro_f1, "accuracy": accuracy}
_MEASURES = {"macro_f1": "", "micro_f1": "_micro", "accuracy": "_accuracy"}


class Scores:
    """Makes findings of predictions on the test notes; several runs (seeds) of one model are averaged."""

    def __init__(self, truth: Classes, patients: Sequence[str], majority: Classes, detail: Mapping[str, Any]) -> None:
        self._truth, self._majority = truth, majority
        self._patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
        self._detail = dict(detail)
        self._patients = int(self._patient.max()) + 1

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that differ: with one class per note micro-F1 equals accuracy."""
        return ("macro_f1", "micro_f1") if self._truth.ndim == 2 else ("macro_f1", "accuracy")

    def mean(self, metric: str, guesses: Sequence[Classes], weights: Weights = None) -> float:
        """Return the mean score of some runs."""
        score = METRICS[metric]
        return float(np.mean([score(self._truth, guess, weights) for guess in guesses]))

    def side(
        self,
        metric: str,
        side: str,
        guesses: Sequence[Classes],
        shuffled: Sequence[Classes],
        rng: Generator,
        detail: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Return the score of one side, with the majority class as chance and shuffled labels as control."""
        low, high = self._interval(lambda weights: self.mean(metric, guesses, weights), rng)
        if low == 1.0:  # all correct: the bootstrap has no variance, so use the exact interval of the patients
            low = clopper_pearson(self._patients, self._patients).low
        guessed = METRICS[metric](self._truth, self._majority)
        more = {**(detail or {}), "metric": metric, "side": side, **self._spread(metric, guesses)}
        return self._finding(
            *(_MEASURES[metric], self.mean(metric, guesses), "higher", (low, high), more),
            chance=None if np.isnan(guessed) else guessed,
            control=self.mean(metric, shuffled) if shuffled else None,
            chance_is="always the most frequent class",
            control_is="training labels shuffled" if shuffled else "",
            control_kind="negative" if shuffled else None,
        )

    def loss(self, metric: str, original: Sequence[Classes], released: Sequence[Classes], rng: Generator) -> Finding:
        """Return the loss of the released side, paired on the same test notes."""

        def lost(weights: Weights) -> float:
            return self.mean(metric, original, weights) - self.mean(metric, released, weights)

        more = {"metric": metric, "why": "a difference has no chance level"}
        return self._finding(_MEASURES[metric] + "_loss", lost(None), "lower", self._interval(lost, rng), more)

    def _interval(self, statistic: Callable[[Weights], float], rng: Generator) -> Interval:
        return bootstrap_weights(self._patients, lambda weights: statistic(weights[self._patient]), rng)

    def _finding(
        self, measure: str, value: float, better: Better, span: tuple[float, float], detail: dict[str, Any], **more: Any
    ) -> Finding:
        more |= {"unit": UNIT, "method": METHOD, "source": SOURCE, "detail": self._detail | detail}
        return Finding(f"utility.classification{measure}", value, len(self._truth), better, *span, **more)

    def _spread(self, metric: str, guesses: Sequence[Classes]) -> dict[str, Any]:
        """Return the spread of runs with different seeds."""
        if len(guesses) < 2:
            return {"seeds": len(guesses)}
        each = [METRICS[metric](self._truth, guess) for guess in guesses]
        return {"seeds": len(each), "seed_sd": float(np.std(each, ddof=1)), "worst": min(each), "best": max(each)}


# The grid of the code that paper A's MIMIC task follows, which tuned the threshold on the reported test notes.
THRESHOLDS = (0.02, 0.03, 0.04, 0.05, 0.055, 0.058, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def choose(truth: Classes, probabilities: Doubles) -> tuple[float, float]:
    """Return the validation score that models are selected by, and the threshold of all labels.

    With several labels per note the score is micro-F1 at the best threshold (the largest of equal ones), otherwise
    macro-F1 of the likeliest classes; 0 if undefined.
    """
    if truth.ndim == 1:
        return float(np.nan_to_num(macro_f1(truth, decided(probabilities, 0.0, several=False)))), THRESHOLDS[-1]
    return max((float(np.nan_to_num(micro_f1(truth, probabilities >= t))), t) for t in THRESHOLDS)


def decided(probabilities: Doubles, threshold: float, *, several: bool) -> Classes:
    """Return the predicted classes: all with a probability of at least the threshold, or the likeliest one."""
    return probabilities >= threshold if several else probabilities.argmax(axis=1).astype(np.int64)


def log_loss(truth: Classes, probabilities: Doubles) -> float:
    """Return the mean -ln P of the true classes."""
    if truth.ndim == 2:
        right = np.where(truth, probabilities, 1 - probabilities)
    else:
        right = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def majority_of(targets: Classes, n: int) -> Classes:
    """Return a constant guess for n notes: the most frequent class, or with several labels the k most frequent.

    k has the best micro-F1 on the given targets. Source: paper A's reference 28, "predict top 4".
    """
    if targets.ndim == 1:
        return np.full(n, np.bincount(targets).argmax())
    order = np.argsort(-targets.sum(axis=0), kind="stable")
    guesses = [np.isin(np.arange(order.size), order[:k]) for k in range(1, order.size + 1)]
    best = max(guesses, key=lambda guess: micro_f1(targets, np.tile(guess, (len(targets), 1))))
    return np.tile(best, (n, 1))
