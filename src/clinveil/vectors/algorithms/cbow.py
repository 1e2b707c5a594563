"""CBOW: a word is predicted from the mean of its context (Mikolov et al. 2013); paper A's vectors."""

from __future__ import annotations

from typing import ClassVar

from clinveil.vectors.algorithm import algorithms
from clinveil.vectors.by_gensim import ByGensim


@algorithms.register("cbow")
class Cbow(ByGensim):
    """The word from the mean of its context."""

    name: ClassVar[str] = "cbow"
