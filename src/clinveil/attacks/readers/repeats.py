"""A reader of memoised notes: places of one patient with one output mostly hide one word."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, diags_array

from clinveil.attacks.reader import Knowledge, Reader, Reading, Scene, Seen, readers
from clinveil.attacks.readers._context import in_context, pairs_of
from clinveil.attacks.readers._tables import Table, table_of
from clinveil.channel.policy import Memo
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints


@readers.register("repeats")
class Repeats(Reader):
    """Reads each place by its context, then all places of a memo's scope with one output together.

    A place's word is weighed by its own context and by what the other places of its group hide: a mixture of words
    whose shares have a Dirichlet prior, `spread` times the belief without context. Without a memo places tell nothing
    of one another. Source: threat model A5; mixture by variational expectation (Blei et al. 2003, section 5.2).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"channel", "others", "patients"})
    order: ClassVar[int] = 450
    spread: float = flag(0.3, "Places that the belief without context weighs; low: a group hides one word.", gt=0)
    rounds: int = flag(4, "Rounds in which the places of a group hear of one another.", ge=1)

    def read(self, scene: Scene, rng: Generator) -> list[Reading]:
        """Nothing is drawn but the order of the reader's own notes, where the release shuffles."""
        alone, policy = channel_table(scene), scene.channel.policy
        pairs = pairs_of(scene.others, policy, scene.prior.size, rng)
        first = in_context(scene, pairs, alone.held(scene.prior))
        groups = _groups(scene.notes, policy.memo)
        return _together(first, scene, alone, groups, self)


def channel_table(scene: Scene) -> Table:
    """What the channel and the frequencies of other notes tell of each output alone."""
    joint = csc_matrix(diags_array(scene.prior) @ scene.by_output)
    return table_of(joint, np.zeros(scene.prior.size), scene.prior)


def _groups(notes: Sequence[Seen], memo: Memo) -> list[Ints]:
    """Of each note the group of each place, numbered over all notes."""
    numbers: dict[Hashable, int] = {}
    alone = count(-1, -1)
    found = []
    for row, note in enumerate(notes):
        scope = {"note": row, "corpus": 0}.get(memo, note.patient)
        keys = [next(alone) if memo == "occurrence" else (scope, y) for y in note.outputs.tolist()]
        found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64))
    return found


def _together(
    first: Sequence[Reading], scene: Scene, alone: Table, groups: Sequence[Ints], settings: Repeats
) -> list[Reading]:
    """The readings after the places of each group have heard of one another."""
    beliefs = np.concatenate([one.chances for one in first])
    sizes = np.concatenate([np.diff(one.starts) for one in first])
    starts, group = np.cumsum([0, *sizes]), np.concatenate(groups)
    outputs, order = np.concatenate([note.outputs for note in scene.notes]), np.argsort(group, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        y = outputs[places[0]]
        base = alone.chances[alone.starts[y] : alone.starts[y + 1]]
        if places.size > 1 and base.size:
            at = starts[places][:, None] + np.arange(base.size)
            beliefs[at] = _heard(beliefs[at], base, settings)
    split = np.split(beliefs, np.cumsum([one.rows.size for one in first])[:-1])
    return [Reading(one.starts, one.rows, chances) for one, chances in zip(first, split, strict=True)]


def _heard(beliefs: Doubles, base: Doubles, settings: Repeats) -> Doubles:
    """Beliefs (n_places, n_candidates) of a group, each after hearing the others; `base`: of its output alone."""
    context, now = beliefs / base, beliefs
    for _ in range(settings.rounds):
        others = now.sum(axis=0) - now + settings.spread * base
        now = np.maximum(context * others, 1e-300)
        now = now / now.sum(axis=1, keepdims=True)
    return np.asarray(now)
