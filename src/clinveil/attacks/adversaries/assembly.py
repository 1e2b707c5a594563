"""Adversary that restores the order of shuffled words and recovers them jointly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import Lattice, Weighed, candidates
from clinveil.attacks.adversaries._sequence import Counts, Pairs
from clinveil.attacks.adversaries._windows import (
    WindowCounts,
    by_window,
    count_windows,
    normalize,
    reordered,
    restored,
    width,
)
from clinveil.attacks.adversary import Adversary, AdversaryView, Recovery, adversaries
from clinveil.channel.channel import Channel
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads

TRUSTS = (0.2, 0.5, 0.8)
FIT_WORDS = 800  # words of the attacker's own notes on which the mixture weights are fitted
_STEPS = np.linspace(0, 1, 11)


@adversaries.register("assembly")
class Assembly(Adversary):
    """Restore the order of shuffled words and recover them, from word pairs and words in the same window.

    The result is a mixture of three estimates: from the output alone, from the words of its window, and from a sampled
    order of the window. The weights are fitted on the attacker's own notes, shuffled in the same way.
    """

    knowledge = frozenset({"channel", "others"})
    in_release = ({},)
    max_words = 6_000
    order = 500
    max_inputs: int = flag(24, "Maximum inputs of an output, the most probable.", ge=2)
    cooling: int = flag(20, "Annealing sweeps.", ge=1)
    sweeps: int = flag(40, "Sweeps to average.", ge=1)

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether the release shuffles words; sequence models are better where words keep their order."""
        return super().is_applicable(view) and view.channel.policy.shuffle != "none"

    def recover(self, view: AdversaryView, rng: Generator) -> Iterator[Recovery]:
        """Sample orders and words; each note has its own seed, so the number of threads has no effect."""
        n_examples = max(1, len(view.others) // 10)
        examples = _own_notes(view, view.others[:n_examples], rng)
        trust, mix = _fitted(self._sampler(view, view.others[n_examples:], rng), examples, rng, view.threads)
        sampler, seeds = self._sampler(view, view.others, rng), rng.integers(2**31, size=len(view.notes))

        def attack(case: tuple[Ints, int]) -> Recovery:
            lattice, estimates, order = sampler.estimates(*case, trust)
            return lattice.recovery(np.tensordot(mix, estimates, 1), order)

        return threads(view.threads)(attack, zip((n.outputs for n in view.notes), seeds.tolist(), strict=True))

    def _sampler(self, view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> _Sampler:
        policy, n_words = view.channel.policy, len(view.channel.words)
        size = width(policy)
        counts = count_windows([note[reordered(note, policy, rng)] for note in notes], n_words, size)
        return _Sampler(self, candidates(view, self.max_inputs), Counts.of(notes, n_words).tables, counts, size)


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Everything needed to attack one shuffled note."""

    attack: Assembly
    candidate_table: Weighed
    pairs: Pairs
    counts: WindowCounts
    size: int

    def estimates(self, outputs: Ints, seed: int, trust: float) -> tuple[Lattice, Doubles, Doubles]:
        """Return the three estimates of each candidate, (3, n_candidates), and the order."""
        lattice = self.candidate_table.lattice(outputs)
        position = np.repeat(np.arange(outputs.size), np.diff(lattice.begin))
        alone = normalize(lattice.weights * self.candidate_table.prior[lattice.rows], position, outputs.size)
        factor = by_window(lattice, alone, self.counts, self.size, trust)
        window = normalize(alone * factor, position, outputs.size)
        full = np.flatnonzero(np.diff(lattice.begin))
        begin = np.append(lattice.begin[full], lattice.rows.size)
        weights, attack = lattice.weights * np.sqrt(factor), self.attack
        sums, positions = restored(
            begin, lattice.rows, weights, self.pairs, self.size, attack.cooling, attack.sweeps, seed % 2**31
        )
        order = np.arange(outputs.size, dtype=np.float64)
        order[full] = positions
        return lattice, np.stack([alone, window, normalize(sums, position, outputs.size)]), order


def _own_notes(view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> list[tuple[Ints, Ints]]:
    """Return some of the attacker's own notes as the release would contain them: outputs, and their source words."""
    examples, words = [], 0
    for note in notes:
        n_examples = note[note < view.channel.unknown]
        truth = n_examples[reordered(n_examples, view.channel.policy, rng)]
        truth = truth[view.channel.speaks[truth]]
        examples += [(_drawn(view.channel, truth, rng), truth)] if truth.size else []
        words += truth.size
        if words >= FIT_WORDS:
            break
    return examples


def _drawn(channel: Channel, rows: Ints, rng: Generator) -> Ints:
    """One output of each row."""
    ends = np.concatenate([[0.0], np.cumsum(channel.probabilities)])
    low, high = ends[channel.indptr[rows]], ends[channel.indptr[rows + 1]]
    found = np.searchsorted(ends[1:], low + rng.random(rows.size) * (high - low), side="right")
    return channel.indices[np.clip(found, channel.indptr[rows], channel.indptr[rows + 1] - 1)].astype(np.int64)


def _fitted(
    sampler: _Sampler, examples: Sequence[tuple[Ints, Ints]], rng: Generator, workers: int
) -> tuple[float, Doubles]:
    """Return the weight of windows and the shares of the three estimates, (3,), with the highest likelihood.

    One possible mixture is the output alone, so the fit is never worse than that on these notes.
    """
    seeds = rng.integers(2**31, size=len(examples)).tolist()
    best = (-np.inf, 0.0, np.array([1.0, 0.0, 0.0]))
    mixtures = np.array([(1 - a, a * (1 - b), a * b) for a, b in product(_STEPS, _STEPS)])
    for trust in TRUSTS if examples else ():

        def attack(case: tuple[tuple[Ints, Ints], int], trust: float = trust) -> Doubles:
            (outputs, truth), seed = case
            lattice, estimates, _ = sampler.estimates(outputs, seed, trust)
            hit = lattice.rows == np.repeat(truth, np.diff(lattice.begin))
            return estimates[:, hit]

        chances = np.concatenate(list(threads(workers)(attack, zip(examples, seeds, strict=True))), axis=1)
        scores = np.log(np.maximum(mixtures @ chances, 1e-12)).sum(axis=1)
        if scores.max() > best[0]:
            best = float(scores.max()), trust, mixtures[int(np.argmax(scores))]
    return best[1], best[2]
