"""Beliefs with context for readers who have candidates of their own, and their own notes shuffled likewise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversaries._forward_backward import lattice, links, marginals
from clinveil.attacks.adversaries._ngrams import Counts, Pairs
from clinveil.attacks.adversary import AdversaryView, AlignedNote, Reading
from clinveil.channel.policy import Policy
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads


def pairs_of(notes: Sequence[Ints], policy: Policy, n_words: int, rng: Generator) -> Pairs:
    """Word pairs of notes, counted in the order that a release would give them.

    An attacker of a shuffled release shuffles his own notes likewise before he counts. Sentences are not known here:
    where they are shuffled as wholes, or within, the whole note is.
    """
    if not policy.keeps_order:
        whole = policy.shuffle != "window" or policy.sentences
        notes = [_shuffled(note, note.size if whole else policy.window, rng) for note in notes]
    return Counts.of(notes, n_words).tables


def _shuffled(note: Ints, window: int, rng: Generator) -> Ints:
    places = np.arange(note.size) // max(1, window) + rng.random(note.size)
    return np.asarray(note[np.argsort(places)])


def beliefs(pairs: Pairs, held: Candidates, outputs: Ints) -> tuple[Ints, Doubles]:
    """Starts (n + 1,) and P(x_t | all outputs) over the candidates of each place, end to end."""
    begin, rows, weights = lattice(outputs, held)
    return begin, marginals(begin, rows, weights, pairs, links(begin, rows, pairs))


def in_context(view: AdversaryView, pairs: Pairs, held: Candidates) -> list[Reading]:
    """Readings that weigh all words of a note at once; every candidate of an output keeps its place."""

    def one(note: AlignedNote) -> Reading:
        begin, chances = beliefs(pairs, held, note.outputs)
        return Reading(begin, lattice(note.outputs, held)[1], chances)

    return list(threads(view.threads)(one, view.notes))


def sure(readings: Sequence[Reading]) -> list[Reading]:
    """The readings without candidates that have next to no chance."""
    return [_sure(reading) for reading in readings]


def _sure(reading: Reading) -> Reading:
    keep = reading.chances > 1e-12
    kept = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
    return Reading(kept[reading.starts], reading.rows[keep], reading.chances[keep])
