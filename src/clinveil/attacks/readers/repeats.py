"""A reader of memoised notes: places of one patient with one output mostly hide one word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, diags_array

from clinveil.attacks.reader import Knowledge, Reader, Reading, Scene, readers
from clinveil.attacks.readers._context import in_context, pairs_of, sure
from clinveil.attacks.readers._heard import SPREAD, together
from clinveil.attacks.readers._tables import Table, table_of
from clinveil.core.settings import flag


@readers.register("repeats")
class Repeats(Reader):
    """Reads each place by its context, then all places of a memo's scope with one output together.

    Without a memo places tell nothing of one another. Source: threat model A5; `_heard.together`.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"channel", "others", "patients"})
    order: ClassVar[int] = 450
    spread: float = flag(SPREAD, "Places that the belief without context weighs; low: a group hides one word.", gt=0)

    def read(self, scene: Scene, rng: Generator) -> list[Reading]:
        """Nothing is drawn but the order of the reader's own notes, where the release shuffles."""
        alone, policy = channel_table(scene), scene.channel.policy
        pairs = pairs_of(scene.others, policy, scene.prior.size, rng)
        first = in_context(scene, pairs, alone.held(scene.prior))
        return sure(together(first, scene.notes, alone, policy.memo, self.spread))


def channel_table(scene: Scene) -> Table:
    """What the channel and the frequencies of other notes tell of each output alone."""
    joint = csc_matrix(diags_array(scene.prior) @ scene.by_output)
    return table_of(joint, np.zeros(scene.prior.size), scene.prior)
