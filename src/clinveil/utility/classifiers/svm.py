"""A linear support vector machine on words and word pairs."""

from __future__ import annotations

from typing import Any

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._linear import Linear


def _estimator(strength: float, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=strength, class_weight="balanced", max_iter=2_000, tol=1e-3, random_state=seed)


classifiers.register("svm")(Linear("a linear SVM on words and word pairs", 15.0, _estimator, (0.05, 0.2, 1.0)))
