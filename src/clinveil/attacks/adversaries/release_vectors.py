"""An outsider who has the release, and learns from it which of its words are near one another."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from clinveil.attacks.adversaries._shadow import kept_shadow, shadow_table
from clinveil.attacks.adversaries.own_vectors import DOUBT
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Reading, adversaries
from clinveil.core.settings import flag


@adversaries.register("release-vectors")
class ReleaseVectors(Adversary):
    """No channel: makes vectors and a channel of the released notes themselves, and reads word by word.

    Source: threat model A9 (ii). Words that never come out have no vector, and are read by the background alone.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 510
    doubt: float = flag(0.5, DOUBT, ge=0, le=1)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """The prior is that of other notes: the release's frequencies are those of outputs."""
        return shadow_table(view, kept_shadow(view, "released", rng), view.prior, self.doubt).readings(view)
