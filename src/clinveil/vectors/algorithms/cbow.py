"""CBOW predicts a word from the mean of its context (Mikolov et al. 2013); used by paper A."""

from __future__ import annotations

from typing import ClassVar

from clinveil.vectors.algorithm import algorithms
from clinveil.vectors.by_gensim import ByGensim


@algorithms.register("cbow")
class Cbow(ByGensim):
    """Predict a word from the mean of its context (gensim)."""

    name: ClassVar[str] = "cbow"
