"""Who learns from what he has read: his counts grow by it, and a patient's words are expected again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MOST, Lattice, candidates
from clinveil.attacks.adversaries._ngrams import Counts, triples
from clinveil.attacks.adversaries.trigram import in_context
from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads


@adversaries.register("adapted")
class Adapted(Adversary):
    """Reads by three words in a row, adds what he is fairly sure of to his counts, and reads again.

    The words that he believes to stand elsewhere in a patient's notes are likelier there. Source: adaptation by a
    recogniser's own output, cache: Kuhn & De Mori 1990, IEEE PAMI 12:570.
    """

    knows = frozenset({"channel", "others", "patients"})
    order = 440
    most: int = flag(MOST, "Inputs of an output that are weighed by pairs of words.", ge=2)
    beam: int = flag(20, "Of these, by three words in a row: the likeliest by pairs.", ge=2)
    rounds: int = flag(1, "Times that he reads again.", ge=1)
    trusted: float = flag(0.95, "What he believes at least this much is added to his counts.", ge=0, le=1)
    usual: float = flag(500.0, "Words of a patient that weigh as much as the frequencies of other notes.", gt=0)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn."""
        held, n_words = candidates(view, self.most), len(view.channel.words)
        there = [held.lattice(note.outputs) for note in view.notes]
        weights, own, found = [one.weights for one in there], list[Ints](), list[Doubles]()
        for again in range(self.rounds + 1):
            found = self._once([*view.others, *own], zip(there, weights, strict=True), n_words, view.threads)
            if again < self.rounds:
                own = [self._decided(*case, n_words) for case in zip(there, found, strict=True)]
                expected = self._expected(view, there, found)
                weights = [place.weights * factor for place, factor in zip(there, expected, strict=True)]
        return list(starmap(Lattice.reading, zip(there, found, strict=True)))

    def _once(
        self, known: Sequence[Ints], cases: Iterable[tuple[Lattice, Doubles]], n_words: int, workers: int
    ) -> list[Doubles]:
        counts = Counts.of(known, n_words)
        pairs, third = counts.tables, triples(known, counts)

        def one(case: tuple[Lattice, Doubles]) -> Doubles:
            return in_context(*case, pairs, third, self.beam)

        return list(threads(workers)(one, cases))

    def _decided(self, there: Lattice, chances: Doubles, n_words: int) -> Ints:
        """What he reads, a word a place; n_words where he is not sure enough."""
        place = np.repeat(np.arange(there.begin.size - 1), np.diff(there.begin))
        said, sure = np.full(there.begin.size - 1, n_words, dtype=np.int64), chances >= max(self.trusted, 0.5)
        said[place[sure]] = there.rows[sure]
        return said

    def _expected(self, view: AdversaryView, there: Sequence[Lattice], found: Sequence[Doubles]) -> list[Doubles]:
        """Of each candidate how much likelier its word is in this patient's notes than in others."""
        patients: dict[int, list[int]] = {}
        for number, note in enumerate(view.notes):
            patients.setdefault(note.patient, []).append(number)
        factors: list[Doubles] = [np.ones(0)] * len(there)
        for notes in patients.values():
            rows, chances = (np.concatenate([part[i] for i in notes]) for part in ([o.rows for o in there], found))
            often = np.bincount(rows, chances, view.prior.size)
            for i in notes:
                elsewhere = np.maximum(often[there[i].rows] - found[i], 0.0)
                factors[i] = 1 + elsewhere / (self.usual * view.prior[there[i].rows])
        return factors
