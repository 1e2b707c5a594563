"""Skip-gram: the context is predicted from the word (Mikolov et al. 2013)."""

from __future__ import annotations

from typing import ClassVar

from clinveil.vectors.algorithm import algorithms
from clinveil.vectors.by_gensim import Word2Vec


@algorithms.register("skipgram")
class Skipgram(Word2Vec):
    """The context from the word."""

    name: ClassVar[str] = "skipgram"
    skipgram: ClassVar[bool] = True
