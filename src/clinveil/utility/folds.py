"""Cross-validated classification of both sides: each patient is tested once, and the folds say how far splits differ.

Guesses of all folds are pooled, so the interval draws all patients anew; it takes the trained models as given, and the
spread of the folds, which holds training too, stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.finding import Finding
from clinveil.utility.classifiers import NEURAL
from clinveil.utility.classifiers.predict import predict
from clinveil.utility.classifiers.settings import ClassifierSettings
from clinveil.utility.labelled import Labelled, Parts, folds_of
from clinveil.utility.scores import METRICS, Scores, majority_of

FOLDS, NEURAL_FOLDS = 5, 2  # of as many parts; networks are trained on the first two only
Guesses = list[NDArray[Any]]  # of each fold
Side = Literal["original", "released"]


@dataclass(frozen=True)
class _Runs:
    """What a model guessed for the test notes of each fold, and for the first with training labels shuffled."""

    guesses: Guesses
    shuffled: NDArray[Any]


class Folded:
    """Labelled notes, their released texts in the same order, and the folds that every model shares."""

    def __init__(self, labelled: Labelled, released: Sequence[str], rng: Generator) -> None:
        """Raises InputError where the notes are too few to be split."""
        self._labelled = labelled
        self._texts: dict[Side, Sequence[str]] = {"original": labelled.texts, "released": released}
        self._folds = folds_of(labelled, rng, FOLDS)

    def findings(self, model: str, settings: ClassifierSettings, rng: Generator) -> list[Finding]:
        """Both sides and the paired loss, of each metric."""
        folds = self._folds[: NEURAL_FOLDS if model in NEURAL else FOLDS]
        seed = int(rng.integers(2**31))
        ours, theirs = (self._runs(model, side, folds, seed, settings) for side in self._texts)
        pooled = _Pooled(self._labelled, folds, {"model": model})
        return [f for metric in pooled.scores.metrics for f in pooled.findings(metric, ours, theirs, rng)]

    def _runs(self, model: str, side: Side, folds: Sequence[Parts], seed: int, settings: ClassifierSettings) -> _Runs:
        texts = self._texts[side]

        def guess(parts: Parts, *, shuffled: bool) -> NDArray[Any]:
            given: dict[str, Any] = {"train_texts": texts, "test_texts": texts, "settings": settings}
            return predict(model, self._labelled, parts, seed, shuffled=shuffled, **given).test

        return _Runs([guess(parts, shuffled=False) for parts in folds], guess(folds[0], shuffled=True))


@dataclass(frozen=True)
class _Pooled:
    """The test notes of all folds together."""

    labelled: Labelled
    folds: Sequence[Parts]
    detail: dict[str, Any]
    scores: Scores = field(init=False)

    def __post_init__(self) -> None:
        targets, rows = self.labelled.targets, np.concatenate([parts.test for parts in self.folds])
        # One class for all folds: where several are as frequent, one a fold would be no constant guess.
        majority = majority_of(targets, len(rows))
        sizes = {"train": len(self.folds[0].learn), "test": len(rows), "near_duplicates": self.folds[0].duplicates}
        patients = [self.labelled.patients[i] for i in rows]
        detail = {**self.labelled.detail, **sizes, **self.detail, "folds": len(self.folds)}
        object.__setattr__(self, "scores", Scores(targets[rows], patients, majority, detail))

    def findings(self, metric: str, original: _Runs, released: _Runs, rng: Generator) -> list[Finding]:
        """Of both sides, and of what was lost."""
        ours, theirs = (self._by_fold(metric, runs.guesses) for runs in (original, released))
        pooled = [[np.concatenate(runs.guesses)] for runs in (original, released)]
        loss = self.scores.loss(metric, pooled[0], pooled[1], rng, _spread(ours - theirs))
        return [
            self._side(metric, "original", original, ours, rng),
            self._side(metric, "released", released, theirs, rng),
            loss,
        ]

    def _side(self, metric: str, side: Side, runs: _Runs, by_fold: NDArray[np.float64], rng: Generator) -> Finding:
        guesses = [np.concatenate(runs.guesses)]
        found = self.scores.side(metric, side, guesses, [], rng, _spread(by_fold))
        return replace(
            found,
            control=METRICS[metric](self._truth(0), runs.shuffled),
            control_is="training labels shuffled, in the first fold",
            control_kind="negative",
        )

    def _by_fold(self, metric: str, guesses: Guesses) -> NDArray[np.float64]:
        return np.array([METRICS[metric](self._truth(i), guess) for i, guess in enumerate(guesses)])

    def _truth(self, fold: int) -> NDArray[Any]:
        return np.asarray(self.labelled.targets[self.folds[fold].test])


def _spread(by_fold: NDArray[np.float64]) -> dict[str, float]:
    """How far the folds are apart."""
    return {
        "fold_sd": float(np.std(by_fold, ddof=1)),
        "fold_lowest": float(by_fold.min()),
        "fold_highest": float(by_fold.max()),
    }
