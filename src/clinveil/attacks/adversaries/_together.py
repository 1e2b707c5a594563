"""Counts of which input produced which output, learnt from notes known in plain and released form.

Where words are shuffled, the attacker has a bag of outputs for each bag of inputs, and estimates the alignment from all
bags together: IBM model 1, each output drawn from one input of its bag (Brown et al. 1993, section 4.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from clinveil.attacks.adversary import AlignedNote
from clinveil.channel.policy import Policy, Scope
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

ROUNDS = 8
LINKS = 40_000_000  # pairs of positions weighed in a round


class DrawCounts(NamedTuple):
    """How often an input produced an output: inputs, outputs and counts (n_pairs,), sorted by input and output."""

    inputs: Ints
    outputs: Ints
    counts: Doubles


def count_draws(notes: Sequence[AlignedNote], policy: Policy, n_words: int) -> DrawCounts:
    """Count draws in some notes. A draw that the substitution scope repeats counts once; unknown words are ignored."""
    if policy.keeps_order:
        return _counted(notes, policy.scope, n_words)
    return _aligned(notes, policy, n_words)


def _scope(note: AlignedNote, row: int, scope: Scope) -> Hashable:
    return note.patient if scope in ("patient", "corpus", "rare") else row


def _counted(notes: Sequence[AlignedNote], scope: Scope, n_words: int) -> DrawCounts:
    scopes = {_scope(note, i, scope): 0 for i, note in enumerate(notes)}
    scopes = {scope: number for number, scope in enumerate(scopes)}
    groups = np.concatenate([np.full(len(n), scopes[_scope(n, i, scope)]) for i, n in enumerate(notes)])
    truth, outputs = (np.concatenate([getattr(n, name) for n in notes]) for name in ("truth", "outputs"))
    known = truth < n_words
    keys = truth[known] * np.int64(n_words) + outputs[known]
    if scope != "occurrence":
        keys = np.unique(np.stack([groups[known], keys]), axis=1)[1]
    pairs, counts = np.unique(keys, return_counts=True)
    return DrawCounts(pairs // n_words, pairs % n_words, counts.astype(np.float64))


def _aligned(notes: Sequence[AlignedNote], policy: Policy, n_words: int) -> DrawCounts:
    bags = [_bags(note, policy, n_words) for note in notes]
    sizes = [int((high - low).sum()) for _, low, high in bags]
    n_notes = max(1, int(np.searchsorted(np.cumsum(sizes), LINKS)))
    notes, bags = notes[:n_notes], bags[:n_notes]
    begin = np.cumsum([0, *(source.size for source, _, _ in bags)])
    sources = np.concatenate([source for source, _, _ in bags])
    low = np.concatenate([first + at for (_, first, _), at in zip(bags, begin, strict=False)])
    high = np.concatenate([last + at for (_, _, last), at in zip(bags, begin, strict=False)])
    outputs = np.concatenate([note.outputs for note in notes])
    keys = np.unique(_links(outputs, sources, low, high, n_words, np.zeros(int((high - low).sum()), np.int64)))
    counts = np.ones(keys.size)
    for _ in range(ROUNDS):
        totals = np.bincount(keys // n_words, counts, n_words)
        chances, counts = counts / np.maximum(totals, 1e-300)[keys // n_words], np.zeros(keys.size)
        _distribute(outputs, sources, low, high, n_words, keys, chances, counts)
    keep = counts > 0.01
    return DrawCounts(keys[keep] // n_words, keys[keep] % n_words, counts[keep])


def _bags(note: AlignedNote, policy: Policy, n_words: int) -> tuple[Ints, Ints, Ints]:
    """Return the source words in order and, for each output, the range of its possible inputs.

    Windows have a fixed size where no word is left out; otherwise the range is one window to either side.
    """
    positions, first = np.unique(note.positions, return_index=True)
    source = note.truth[first]
    at, n = np.arange(len(note)), source.size
    if policy.shuffle != "window" or policy.sentences:
        low, high = np.zeros(len(note), np.int64), np.full(len(note), n)
    elif n == len(note) == (positions[-1] + 1 if n else 0):
        low, high = at // policy.window * policy.window, np.minimum(n, (at // policy.window + 1) * policy.window)
    else:
        centre = at * n // max(1, len(note))
        low, high = np.maximum(0, centre - policy.window), np.minimum(n, centre + policy.window + 1)
    known = np.concatenate([[0], np.cumsum(source < n_words)])
    return source[source < n_words], known[low].astype(np.int64), known[high].astype(np.int64)


@helper
def _index(keys: Ints, key: int) -> int:
    """Return the index of a key in a sorted array."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _links(outputs: Ints, sources: Ints, low: Ints, high: Ints, n_words: int, keys: Ints) -> Ints:
    """Return every output with every input of its bag, as input * n_words + output."""
    at = 0
    for i in range(outputs.size):
        for j in range(low[i], high[i]):
            keys[at] = sources[j] * n_words + outputs[i]
            at += 1
    return keys


@kernel
def _distribute(
    outputs: Ints, sources: Ints, low: Ints, high: Ints, n_words: int, keys: Ints, chances: Doubles, counts: Doubles
) -> None:
    """Distribute each output over the inputs of its bag, in proportion to their chances."""
    for i in range(outputs.size):
        total = 0.0
        for j in range(low[i], high[i]):
            total += chances[_index(keys, sources[j] * n_words + outputs[i])]
        if total > 0:
            for j in range(low[i], high[i]):
                index = _index(keys, sources[j] * n_words + outputs[i])
                counts[index] += chances[index] / total
