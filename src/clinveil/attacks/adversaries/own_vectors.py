"""Adversary that runs this software on other notes and uses the result in place of the release's channel."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from clinveil.attacks.adversaries._shadow import cached_shadow, shadow_table
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Recovery, adversaries
from clinveil.core.settings import flag

DOUBT = "Weight of output frequencies relative to the shadow channel."


@adversaries.register("own-vectors")
class OwnVectors(Adversary):
    """Train shadow vectors on other notes, build a channel of the known mechanism, and recover words one by one.

    Source: threat model A9 (i); unigram Bayes with the shadow channel in place of the true one.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 500
    doubt: float = flag(0.5, DOUBT, ge=0, le=1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words of only one vocabulary use the background frequencies."""
        return shadow_table(view, cached_shadow(view, "others", rng), view.prior, self.doubt).recoveries(view)
