"""Within: a classifier trained and tested on released notes. It does not measure performance on real notes."""

from __future__ import annotations

from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.utility.tasks.labels import Arms


def within(arms: Arms, rng: Generator) -> Finding:
    """Return `utility.within` of one label and model, between the floor and the ceiling of `utility.transfer`."""
    return arms.finding("utility.within", arms.within, rng)
