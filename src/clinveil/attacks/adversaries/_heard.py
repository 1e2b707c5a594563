"""Places that a memo binds together: what one hides, the others of its scope with the same output mostly hide too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count

import numpy as np

from clinveil.attacks.adversaries._tables import Table
from clinveil.attacks.adversary import AlignedNote, Reading
from clinveil.channel.policy import Scope
from clinveil.core.types import Doubles, Ints

SPREAD, ROUNDS = 0.3, 4


def together(
    first: Sequence[Reading], notes: Sequence[AlignedNote], alone: Table, scope: Scope, spread: float = SPREAD
) -> list[Reading]:
    """The readings after the places of each group have heard of one another.

    What a group hides is a mixture of words whose shares have a Dirichlet prior, `spread` times the belief of its
    output alone; a place weighs its own context and what the others hide. Without a memo nothing changes.

    Args:
        first: over the candidates of `alone`, all of them. alone: what each output tells.
    Source: mixture by variational expectation (Blei, Ng and Jordan 2003, section 5.2).
    """
    beliefs = np.concatenate([np.zeros(0), *(one.chances for one in first)])
    sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(one.starts) for one in first)])
    starts, group = np.cumsum([0, *sizes]), np.concatenate([np.zeros(0, np.int64), *_groups(notes, scope)])
    outputs = np.concatenate([np.zeros(0, np.int64), *(note.outputs for note in notes)])
    order = np.argsort(group, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if places.size > 1:
            y = outputs[places[0]]
            base = alone.chances[alone.starts[y] : alone.starts[y + 1]]
            at = starts[places][:, None] + np.arange(base.size)
            beliefs[at] = heard(beliefs[at], base, spread)
    split = np.split(beliefs, np.cumsum([one.rows.size for one in first])[:-1])
    return [Reading(one.starts, one.rows, chances) for one, chances in zip(first, split, strict=True)]


def _groups(notes: Sequence[AlignedNote], scope: Scope) -> list[Ints]:
    """Of each note the group of each place, numbered over all notes."""
    numbers: dict[Hashable, int] = {}
    alone = count(-1, -1)
    found = []
    for row, note in enumerate(notes):
        group = {"note": row, "corpus": 0}.get(scope, note.patient)
        keys = [next(alone) if scope == "occurrence" else (group, y) for y in note.outputs.tolist()]
        found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64))
    return found


def heard(beliefs: Doubles, base: Doubles, spread: float) -> Doubles:
    """Beliefs (n_places, n_candidates) of a group, each after hearing the others; `base`: of its output alone."""
    context, now = beliefs / base, beliefs
    for _ in range(ROUNDS):
        others = now.sum(axis=0) - now + spread * base
        now = np.maximum(context * others, 1e-300)
        now = now / now.sum(axis=1, keepdims=True)
    return np.asarray(now)
