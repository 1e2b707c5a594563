"""Adversary that learns from the release itself which of its words are similar."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from clinveil.attacks.adversaries._shadow import cached_shadow, shadow_table
from clinveil.attacks.adversaries.own_vectors import DOUBT
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Recovery, adversaries
from clinveil.core.settings import flag


@adversaries.register("release-vectors")
class ReleaseVectors(Adversary):
    """Train shadow vectors on the released notes, build a channel, and recover words one by one.

    Source: threat model A9 (ii). Words that are never an output have no vector and use the background frequencies.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 510
    doubt: float = flag(0.5, DOUBT, ge=0, le=1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; the prior comes from other notes, because released frequencies are those of outputs."""
        return shadow_table(view, cached_shadow(view, "released", rng), view.prior, self.doubt).recoveries(view)
