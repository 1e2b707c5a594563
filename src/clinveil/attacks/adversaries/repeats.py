"""A reader of memoised notes: places of one patient with one output mostly hide one word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, diags_array

from clinveil.attacks.adversaries._context import in_context, pairs_of, sure
from clinveil.attacks.adversaries._heard import SPREAD, together
from clinveil.attacks.adversaries._tables import Table, table_of
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Reading, adversaries
from clinveil.core.settings import flag


@adversaries.register("repeats")
class Repeats(Adversary):
    """Reads each place by its context, then all places of a memo's scope with one output together.

    Without a memo places tell nothing of one another. Source: threat model A5; `_heard.together`.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"channel", "others", "patients"})
    order: ClassVar[int] = 450
    spread: float = flag(SPREAD, "Places that the belief without context weighs; low: a group hides one word.", gt=0)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn but the order of the reader's own notes, where the release shuffles."""
        alone, policy = channel_table(view), view.channel.policy
        pairs = pairs_of(view.others, policy, view.prior.size, rng)
        first = in_context(view, pairs, alone.held(view.prior))
        return sure(together(first, view.notes, alone, policy.scope, self.spread))


def channel_table(view: AdversaryView) -> Table:
    """What the channel and the frequencies of other notes tell of each output alone."""
    joint = csc_matrix(diags_array(view.prior) @ view.by_output)
    return table_of(joint, np.zeros(view.prior.size), view.prior)
