"""An outsider who runs our tool on his own notes many times, and counts what stood behind each output."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from clinveil.attacks.adversaries._shadow import shadow_matrix, shadow_table
from clinveil.attacks.adversaries._tables import frequency
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Reading, adversaries
from clinveil.core.settings import flag
from clinveil.core.types import Doubles

DOUBTS = np.linspace(0.05, 0.95, 19)


@adversaries.register("shadow-pairs")
class ShadowPairs(Adversary):
    """No channel: runs the tool on several parts of other notes, pools what it did, and reads word by word.

    Neighbours and clusters that stay when the notes change weigh most. How far runs are to be believed at all is told
    by how well each is foreseen from the others. Source: shadow models (Shokri et al. 2017), of a channel.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    order: ClassVar[int] = 520
    runs: int = flag(3, "How many times the tool is run.", ge=2)
    share: float = flag(0.7, "Share of the notes that each run gets.", gt=0, le=1)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """A run's counts are exact: those of endlessly many draws of its channel."""
        made = [self._run(view, rng) for _ in range(self.runs)]
        doubt = _doubt(made, view.prior, frequency(view.released, view.prior.size))
        return shadow_table(view, csr_matrix(sum(made) / len(made)), view.prior, doubt).readings(view)

    def _run(self, view: AdversaryView, rng: Generator) -> csr_matrix:
        size = max(1, round(self.share * len(view.others)))
        some = np.sort(rng.choice(len(view.others), size, replace=False)).tolist()
        return shadow_matrix(view, [view.others[i] for i in some], rng)


def _doubt(made: list[csr_matrix], prior: Doubles, outputs: Doubles) -> float:
    """The doubt under which each run's draws are likeliest by the mean of the others."""
    total = csr_matrix(sum(made))
    fits = np.zeros(DOUBTS.size)
    for one in made:
        parts = one.tocoo()
        rest = np.asarray(((total - one) / (len(made) - 1))[parts.row, parts.col]).ravel().clip(0)
        weight, base = prior[parts.row] * parts.data, outputs[parts.col]
        fits += [float((weight * np.log((1 - b) * rest + b * base)).sum()) for b in DOUBTS]
    return float(DOUBTS[np.argmax(fits)])
