"""Logistic regression on words and word pairs."""

from __future__ import annotations

from typing import Any

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._linear import Linear


def _estimator(strength: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    balanced = {"class_weight": "balanced", "solver": "liblinear", "max_iter": 200, "tol": 1e-3}
    return LogisticRegression(C=strength, random_state=seed, **balanced)


classifiers.register("lr")(Linear("logistic regression on words and word pairs", 20.0, _estimator, (2.0, 10.0, 50.0)))
