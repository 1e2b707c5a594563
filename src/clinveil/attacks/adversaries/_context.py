"""Sequence probabilities over given candidates, and word pairs counted in the order of the release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversaries._forward_backward import lattice, links, marginals
from clinveil.attacks.adversaries._ngrams import Counts, Pairs
from clinveil.attacks.adversary import AdversaryView, AlignedNote, Recovery
from clinveil.channel.policy import Policy
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads


def pairs_of(notes: Sequence[Ints], policy: Policy, n_words: int, rng: Generator) -> Pairs:
    """Count word pairs of notes in the order that a release would give them.

    An attacker of a shuffled release shuffles their own notes in the same way before counting. Sentence boundaries are
    not known here: where sentences are shuffled, or words within them, the entire note is shuffled.
    """
    if not policy.keeps_order:
        by_note = policy.shuffle != "window" or policy.sentences
        notes = [_shuffled(note, note.size if by_note else policy.window, rng) for note in notes]
    return Counts.of(notes, n_words).tables


def _shuffled(note: Ints, window: int, rng: Generator) -> Ints:
    keys = np.arange(note.size) // max(1, window) + rng.random(note.size)
    return np.asarray(note[np.argsort(keys)])


def posteriors(pairs: Pairs, candidates: Candidates, outputs: Ints) -> tuple[Ints, Doubles]:
    """Return offsets (n + 1,) and P(word | all outputs) of the candidates of each position."""
    begin, rows, weights = lattice(outputs, candidates)
    return begin, marginals(begin, rows, weights, pairs, links(begin, rows, pairs))


def in_context(view: AdversaryView, pairs: Pairs, candidates: Candidates) -> list[Recovery]:
    """Return candidates weighed by all words of a note; every candidate of an output is kept."""

    def one(note: AlignedNote) -> Recovery:
        begin, chances = posteriors(pairs, candidates, note.outputs)
        return Recovery(begin, lattice(note.outputs, candidates)[1], chances)

    return list(threads(view.threads)(one, view.notes))


def pruned(recoveries: Sequence[Recovery]) -> list[Recovery]:
    """Remove candidates with negligible probability."""
    return [_pruned(recovery) for recovery in recoveries]


def _pruned(recovery: Recovery) -> Recovery:
    keep = recovery.chances > 1e-12
    counts = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
    return Recovery(counts[recovery.starts], recovery.rows[keep], recovery.chances[keep])
