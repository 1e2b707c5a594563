"""Transfer: a classifier trained on released notes, tested on real notes of other patients."""

from __future__ import annotations

from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.utility.tasks.labels import Arms


def transfer(arms: Arms, rng: Generator) -> Finding:
    """Return `utility.transfer` of one label and model: macro-F1 on real held-out notes."""
    return arms.finding("utility.transfer", arms.released, rng)
