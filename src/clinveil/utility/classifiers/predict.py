"""One call for all models: train on one side's text, choose on validation, guess the test notes of another side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import UsageError
from clinveil.core.neural import need_torch
from clinveil.utility.classifiers import LINEAR, MODELS
from clinveil.utility.classifiers.settings import ClassifierSettings
from clinveil.utility.labelled import Labelled, Parts
from clinveil.vectors.table import Vectors


@dataclass(frozen=True)
class Predictions:
    """What a model guesses for the test notes.

    Attributes:
        test: (n_test,) int64 classes, or (n_test, n_classes) bool.
        valid_score: macro-F1 on the validation notes, of one class a note, or micro-F1; what was chosen by.
        detail: what was chosen, for people.
    """

    test: NDArray[Any] = field(repr=False)
    valid_score: float
    detail: Mapping[str, Any] = field(default_factory=dict)


def predict(
    model: str,
    labelled: Labelled,
    parts: Parts,
    seed: int,
    *,
    train_texts: Sequence[str] | None = None,
    test_texts: Sequence[str] | None = None,
    vectors: Vectors | None = None,
    settings: ClassifierSettings | None = None,
    shuffled: bool = False,
) -> Predictions:
    """Train a model and guess the test notes; the same seed gives the same guesses.

    Args:
        model: one of `MODELS`.
        train_texts, test_texts: the text of *every* note on the side that is trained (and chosen) on, and on the side
            that is tested; the labelled notes' own unless given. Both the same is the paper's setting; else a transfer.
        vectors: word vectors that a network starts from; linear models take none.
        shuffled: train on labels dealt out anew (control).

    Raises:
        UsageError: an unknown model. MissingExtra: a network without PyTorch. InputError: nothing to learn from.
    """
    if model not in MODELS:
        raise UsageError(f"there is no model {model}", remedy="one of " + ", ".join(MODELS))
    settings = settings or ClassifierSettings()
    targets = labelled.targets
    if shuffled:
        targets = targets.copy()
        targets[parts.learn] = np.random.default_rng([seed, 1]).permutation(targets[parts.learn])
    learnt = list(labelled.texts if train_texts is None else train_texts)
    tested = list(labelled.texts if test_texts is None else test_texts)
    if model in LINEAR:
        from clinveil.utility.classifiers.linear import fit_linear

        return fit_linear(model, learnt, tested, targets, parts, seed, settings)
    need_torch()
    from clinveil.utility.classifiers.neural import fit_network

    return fit_network(model, learnt, tested, targets, len(labelled.classes), parts, seed, vectors, settings)
