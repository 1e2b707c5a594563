"""Who knows that words were shuffled: he puts them back in order as well as he can, and reads them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import Lattice, Weighed, candidates
from clinveil.attacks.adversaries._ngrams import Counts, Pairs
from clinveil.attacks.adversaries._restore import restored
from clinveil.attacks.adversaries._windows import Together, by_window, reordered, to_one, together, width
from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries
from clinveil.channel.channel import Channel
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads

TRUSTS = (0.2, 0.5, 0.8)
TRIED = 800  # words of his own notes, on which he settles how much to trust what
_STEPS = np.linspace(0, 1, 11)


@adversaries.register("assembly")
class Assembly(Adversary):
    """Restores the order of shuffled words and reads them, by word pairs and by which words share a window.

    What he believes is a mixture of what the output tells alone, what its window tells besides, and what an order of
    the window tells that he draws with it; how much of each, he settles on notes of his own, which he shuffles alike.
    """

    knows = frozenset({"channel", "others"})
    in_release = ({},)
    at_most = 6_000
    order = 500
    most: int = flag(24, "Inputs of an output that are weighed, the likeliest.", ge=2)
    cooling: int = flag(20, "Sweeps while the order settles.", ge=1)
    sweeps: int = flag(40, "Sweeps that are averaged.", ge=1)

    def can(self, view: AdversaryView) -> bool:
        """Where words stand in their order, the readers of sequences read them better."""
        return super().can(view) and view.channel.policy.shuffle != "none"

    def read(self, view: AdversaryView, rng: Generator) -> Iterator[Reading]:
        """Orders and readings are drawn; by a seed for each note, so threads change nothing."""
        known = max(1, len(view.others) // 10)
        tried = _own_notes(view, view.others[:known], rng)
        trust, mix = _settled(self._desk(view, view.others[known:], rng), tried, rng, view.threads)
        desk, seeds = self._desk(view, view.others, rng), rng.integers(2**31, size=len(view.notes))

        def one(case: tuple[Ints, int]) -> Reading:
            there, parts, order = desk.parts(*case, trust)
            return there.reading(np.tensordot(mix, parts, 1), order)

        return threads(view.threads)(one, zip((n.outputs for n in view.notes), seeds.tolist(), strict=True))

    def _desk(self, view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> _Desk:
        policy, n_words = view.channel.policy, len(view.channel.words)
        size = width(policy)
        counts = together([note[reordered(note, policy, rng)] for note in notes], n_words, size)
        return _Desk(self, candidates(view, self.most), Counts.of(notes, n_words).tables, counts, size)


@dataclass(frozen=True, eq=False)
class _Desk:
    """What a reader of shuffled notes has before him."""

    how: Assembly
    held: Weighed
    pairs: Pairs
    counts: Together
    size: int

    def parts(self, outputs: Ints, seed: int, trust: float) -> tuple[Lattice, Doubles, Doubles]:
        """Of each candidate its chances alone, by its window, and by an order, (3, n_candidates); and the order."""
        there = self.held.lattice(outputs)
        place = np.repeat(np.arange(outputs.size), np.diff(there.begin))
        alone = to_one(there.weights * self.held.prior[there.rows], place, outputs.size)
        factor = by_window(there, alone, self.counts, self.size, trust)
        window = to_one(alone * factor, place, outputs.size)
        full = np.flatnonzero(np.diff(there.begin))
        begin = np.append(there.begin[full], there.rows.size)
        weights, how = there.weights * np.sqrt(factor), self.how
        sums, places = restored(
            begin, there.rows, weights, self.pairs, self.size, how.cooling, how.sweeps, seed % 2**31
        )
        order = np.arange(outputs.size, dtype=np.float64)
        order[full] = places
        return there, np.stack([alone, window, to_one(sums, place, outputs.size)]), order


def _own_notes(view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> list[tuple[Ints, Ints]]:
    """Notes of his own as the release would have them: outputs, and the words behind them."""
    made, words = [], 0
    for note in notes:
        known = note[note < view.channel.unknown]
        truth = known[reordered(known, view.channel.policy, rng)]
        truth = truth[view.channel.speaks[truth]]
        made += [(_drawn(view.channel, truth, rng), truth)] if truth.size else []
        words += truth.size
        if words >= TRIED:
            break
    return made


def _drawn(channel: Channel, rows: Ints, rng: Generator) -> Ints:
    """One output of each row."""
    ends = np.concatenate([[0.0], np.cumsum(channel.probabilities)])
    low, high = ends[channel.indptr[rows]], ends[channel.indptr[rows + 1]]
    found = np.searchsorted(ends[1:], low + rng.random(rows.size) * (high - low), side="right")
    return channel.indices[np.clip(found, channel.indptr[rows], channel.indptr[rows + 1] - 1)].astype(np.int64)


def _settled(desk: _Desk, tried: Sequence[tuple[Ints, Ints]], rng: Generator, workers: int) -> tuple[float, Doubles]:
    """How far to trust windows, and the shares of the three parts, (3,): the likeliest on his own notes.

    What the outputs tell alone is one of the mixtures, so he does no worse than it there.
    """
    seeds = rng.integers(2**31, size=len(tried)).tolist()
    best = (-np.inf, 0.0, np.array([1.0, 0.0, 0.0]))
    mixtures = np.array([(1 - a, a * (1 - b), a * b) for a, b in product(_STEPS, _STEPS)])
    for trust in TRUSTS if tried else ():

        def one(case: tuple[tuple[Ints, Ints], int], trust: float = trust) -> Doubles:
            (outputs, truth), seed = case
            there, parts, _ = desk.parts(outputs, seed, trust)
            hit = there.rows == np.repeat(truth, np.diff(there.begin))
            return parts[:, hit]

        chances = np.concatenate(list(threads(workers)(one, zip(tried, seeds, strict=True))), axis=1)
        scores = np.log(np.maximum(mixtures @ chances, 1e-12)).sum(axis=1)
        if scores.max() > best[0]:
            best = float(scores.max()), trust, mixtures[int(np.argmax(scores))]
    return best[1], best[2]
