"""Readings rescored by a language model, ours or any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MOST, candidates
from clinveil.attacks.adversaries._forward_backward import links, marginals
from clinveil.attacks.adversaries._ngrams import Counts
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Reading, adversaries
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.lm.model import LanguageModel, load_model
from clinveil.lm.vocabulary import WordVocabulary

Scorer = Callable[[Sequence[int], Ints], Doubles]
"""log P(candidate rows | rows read so far in the note), one for each candidate."""
_TINY = 1e-300


@adversaries.register("language-model")
class ByLanguageModel(Adversary):
    """Reads by pairs of words, and lets a language model choose among what they leave, from the first word on.

    A belief is that of pairs times (P(word | all that was read before) / its frequency) to the power of `trust`.
    """

    knows = frozenset({"channel", "others"})
    order = 480
    model: Path | None = flag(None, "A language model of whole words, of an attacker's own notes.")
    most: int = flag(MOST, "Inputs of an output that are weighed by pairs of words.", ge=2)
    trust: float = flag(0.5, "How much of what the model says counts.", ge=0, le=1)

    def can(self, view: AdversaryView) -> bool:
        """With a model only."""
        return super().can(view) and self.model is not None

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn. Raises InputError for a model of pieces of words."""
        assert self.model is not None
        return self.by(view, scorer_of(load_model(self.model)[0], view.channel))

    def by(self, view: AdversaryView, scorer: Scorer) -> list[Reading]:
        """Readings by any model: the hook for those of others."""
        held = candidates(view, self.most)
        pairs = Counts.of(view.others, len(view.channel.words)).tables

        def one(note: AlignedNote) -> Reading:
            there = held.lattice(note.outputs)
            found = marginals(there.begin, there.rows, there.weights, pairs, links(there.begin, there.rows, pairs))
            read: list[int] = []
            for low, high in zip(there.begin[:-1].tolist(), there.begin[1:].tolist(), strict=True):
                rows = there.rows[low:high]
                if rows.size:
                    found[low:high] = self._weighed(found[low:high], scorer(read, rows), pairs.unigram[rows])
                    read.append(int(rows[np.argmax(found[low:high])]))
            return there.reading(found)

        return [one(note) for note in view.notes]

    def _weighed(self, chances: Doubles, said: Doubles, usual: Doubles) -> Doubles:
        logs = np.log(np.maximum(chances, _TINY)) + self.trust * (said - np.log(usual))
        weighed = np.exp(logs - logs.max())
        return np.asarray(np.maximum(weighed / weighed.sum(), _TINY))


def scorer_of(model: LanguageModel, channel: Channel) -> Scorer:
    """One of our language models as a scorer. Raises InputError for a model of pieces of words."""
    if not isinstance(model.vocabulary, WordVocabulary):
        raise InputError("the language model knows pieces of words, no words", hint="train one of whole words")
    ids = np.array([model.vocabulary.encode(word)[0] for word in channel.words], dtype=np.int64)
    stream, pushed = model.stream(1), list[int]()

    def score(read: Sequence[int], rows: Ints) -> Doubles:
        if list(read[: len(pushed)]) != pushed:
            stream.reset(np.array([0]))
            pushed.clear()
        for row in read[len(pushed) :]:
            stream.push(ids[[row]])
            pushed.append(row)
        return np.log(np.maximum(stream.probabilities()[0][ids[rows]], _TINY))

    return score
