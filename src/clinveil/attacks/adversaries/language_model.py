"""Candidates rescored by a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MAX_INPUTS, candidates
from clinveil.attacks.adversaries._forward_backward import links, marginals
from clinveil.attacks.adversaries._ngrams import Counts
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Recovery, adversaries
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.lm.files import load_model
from clinveil.lm.model import LanguageModel
from clinveil.lm.vocabulary import WordVocabulary

Scorer = Callable[[Sequence[int], Ints], Doubles]
"""log P(candidate rows | rows chosen so far in the note), one value per candidate."""
_TINY = 1e-300


@adversaries.register("language-model")
class ByLanguageModel(Adversary):
    """Recover words by word pairs, then choose among the candidates with a language model, from left to right.

    The score is the word-pair probability times (P(word | all previous words) / its frequency) to the power of `trust`.
    """

    knowledge = frozenset({"channel", "others"})
    order = 480
    model: Path | None = flag(None, "A word-level language model trained on an attacker's own notes.")
    max_inputs: int = flag(MAX_INPUTS, "Maximum inputs of an output for the word-pair model.", ge=2)
    trust: float = flag(0.5, "Weight of the language model.", ge=0, le=1)

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether a model is given."""
        return super().is_applicable(view) and self.model is not None

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; deterministic. Raises InputError for a subword model."""
        assert self.model is not None
        return self.recover_with(view, scorer_of(load_model(self.model)[0], view.channel))

    def recover_with(self, view: AdversaryView, scorer: Scorer) -> list[Recovery]:
        """Recover each note with any scorer; for models from outside this package."""
        table = candidates(view, self.max_inputs)
        pairs = Counts.of(view.others, len(view.channel.words)).tables

        def attack(note: AlignedNote) -> Recovery:
            lattice = table.lattice(note.outputs)
            found = marginals(
                lattice.begin, lattice.rows, lattice.weights, pairs, links(lattice.begin, lattice.rows, pairs)
            )
            recover: list[int] = []
            for low, high in zip(lattice.begin[:-1].tolist(), lattice.begin[1:].tolist(), strict=True):
                rows = lattice.rows[low:high]
                if rows.size:
                    found[low:high] = self._weighed(found[low:high], scorer(recover, rows), pairs.unigram[rows])
                    recover.append(int(rows[np.argmax(found[low:high])]))
            return lattice.recovery(found)

        return [attack(note) for note in view.notes]

    def _weighed(self, chances: Doubles, log_scores: Doubles, frequencies: Doubles) -> Doubles:
        logs = np.log(np.maximum(chances, _TINY)) + self.trust * (log_scores - np.log(frequencies))
        weighed = np.exp(logs - logs.max())
        return np.asarray(np.maximum(weighed / weighed.sum(), _TINY))


def scorer_of(model: LanguageModel, channel: Channel) -> Scorer:
    """Return one of this package's language models as a scorer. Raises InputError for a subword model."""
    if not isinstance(model.vocabulary, WordVocabulary):
        raise InputError("the language model uses subwords", hint="pass a word-level model")
    ids = np.array([model.vocabulary.encode(word)[0] for word in channel.words], dtype=np.int64)
    stream, history = model.stream(1), list[int]()

    def score(recover: Sequence[int], rows: Ints) -> Doubles:
        if list(recover[: len(history)]) != history:
            stream.reset(np.array([0]))
            history.clear()
        for row in recover[len(history) :]:
            stream.push(ids[[row]])
            history.append(row)
        return np.log(np.maximum(stream.probabilities()[0][ids[rows]], _TINY))

    return score
