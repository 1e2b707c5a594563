"""The one threshold over all labels, chosen on validation notes, never on test notes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.utility.scores import macro_f1, micro_f1

# The grid of the code that paper A's MIMIC task follows; there it was tuned on the notes that were reported.
THRESHOLDS = (0.02, 0.03, 0.04, 0.05, 0.055, 0.058, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def best_threshold(truth: NDArray[np.bool_], chances: NDArray[Any]) -> float:
    """The threshold with the largest micro-F1; of equal ones the largest."""
    return max(THRESHOLDS, key=lambda t: (np.nan_to_num(micro_f1(truth, chances >= t)), t))


def valid_score(truth: NDArray[Any], guess: NDArray[Any]) -> float:
    """What models are chosen by: micro-F1 of several labels, else macro-F1."""
    score = micro_f1(truth, guess) if truth.ndim == 2 else macro_f1(truth, guess)
    return float(np.nan_to_num(score))
