"""An audit copy of a training run with canaries in it: how far the model, and its synthetic notes, give them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.models.canaries import (
    Canary,
    Family,
    canary_findings,
    exposures,
    extracted,
    invent,
    name_family,
    number_family,
    phrase_family,
    planted,
)
from clinveil.attacks.models.leaveout.from_text import written
from clinveil.attacks.models.text_model import model_of_text
from clinveil.core.finding import Finding
from clinveil.corpus.corpus import MemoryCorpus, memory_corpus
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import EncodedNotes, PlainNotes, encode, read_notes
from clinveil.lm.ready import ready
from clinveil.lm.recipe import ModelSettings
from clinveil.lm.sampling import Drawing, lanes_for
from clinveil.lm.train import make_vocabulary, train_model

COMMON, NAMES = 200, 300


@dataclass(frozen=True)
class CanaryRun:
    """What an audit copy is made of.

    Attributes:
        each: canaries of every family and number of repeats. repeats: how often they are planted.
    """

    settings: ModelSettings
    seed: int
    each: int = 5
    repeats: tuple[int, ...] = (1, 2, 4, 8, 16)
    threads: int = 1

    def __call__(self, notes: PlainNotes, say: Callable[[str], None] = lambda line: None) -> list[Finding]:
        """Plant, train, write as many tokens as there were, and measure on the model and on the text alone.

        Args:
            notes: the training notes, in MedText's form.

        Returns:
            `attack.canary_exposure` and `attack.canary_extraction` by family and repeats; of an n-gram model, which
            writes no notes, the exposure under the model alone.
        """
        rng = np.random.default_rng([self.seed, 0xCA])
        canaries = invent(families(notes, rng), rng, repeats=self.repeats, each=self.each)
        with_canaries = read_notes(planted(as_corpus(notes), canaries, rng), prepared=True)
        model, encoded = self._train(with_canaries, canaries, say)
        own = {"model": model.kind, "from": "the model"}
        text = [] if model.kind == "ngram" else self._write(model, encoded)
        with ready(model, threads=self.threads):
            bits = exposures(canaries, score_of(model), rng)
        numbers = tuple(map(str, range(len(text))))
        released = PlainNotes(tuple(text), numbers, numbers)
        taken = extracted(canaries, as_corpus(released))
        found = canary_findings(canaries, bits, taken, rng, own)
        if not text:
            return [one for one in found if one.measure == "attack.canary_exposure"]
        n_grams = model_of_text(released, model.vocabulary)
        bits = exposures(canaries, score_of(n_grams), rng)  # of names that nobody wrote all are equally likely
        by_text = canary_findings(canaries, bits, taken, rng, {"model": model.kind, "from": "released notes"})
        return found + [one for one in by_text if one.measure == "attack.canary_exposure"]

    def _train(
        self, notes: PlainNotes, canaries: Sequence[Canary], say: Callable[[str], None]
    ) -> tuple[LanguageModel, EncodedNotes]:
        every = [word for canary in canaries for word in canary.family.text(canary.secret).split()]
        places = [word for canary in canaries for place in canary.family.places for word in place]
        vocabulary = make_vocabulary(notes, self.settings, always=[*every, *places])
        encoded = encode(notes.texts, vocabulary)
        model, _ = train_model(notes, encoded, vocabulary, self.settings, seed=self.seed, threads=self.threads, say=say)
        return model, encoded

    def _write(self, model: LanguageModel, encoded: EncodedNotes) -> list[str]:
        """Synthetic notes of so many tokens, under a public key."""
        drawing = Drawing(lanes_for(len(encoded)), int(encoded.lengths.max()))
        notes = written(model, encoded.ids.size, self.seed, drawing, threads=self.threads)
        return [model.vocabulary.decode(notes.note(row).tolist()) for row in range(len(notes))]


def families(notes: PlainNotes, rng: Generator) -> list[Family]:
    """Phrases of common words of the notes, record numbers, and full names."""
    from clinveil.corpus.medtext import dictionary
    from clinveil.lexicons.names import all_given_names, surnames

    counts = dictionary(notes.texts, notes.patients).counts
    common = [word for word, _ in counts.most_common() if word.isascii() and word.isalpha()][:COMMON]
    pools = [sorted(names) for names in (all_given_names(), surnames())]
    given, family = ([pool[i].capitalize() for i in rng.permutation(len(pool))[:NAMES]] for pool in pools)
    return [phrase_family(common), number_family(), name_family(given, family)]


def as_corpus(notes: PlainNotes) -> MemoryCorpus:
    """Notes as a corpus."""
    return memory_corpus(list(zip(notes.note_ids, notes.patients, notes.texts, strict=True)))


def score_of(model: LanguageModel) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Log-probability of a sentence on a line of its own, the end of the note not counted."""

    def score(texts: Sequence[str]) -> NDArray[np.float64]:
        logs = model.score([model.vocabulary.encode(f"\n{text}") for text in texts])
        return np.array([one[:-1].sum() for one in logs])

    return score
