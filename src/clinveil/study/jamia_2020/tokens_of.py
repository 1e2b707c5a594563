"""What a channel does to single tokens: recovered, unchanged, and names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from clinveil.core.finding import Finding

if TYPE_CHECKING:
    from clinveil.channel.channel import Channel
    from clinveil.vectors.table import Neighbours, Vectors


def token_findings(channel: Channel, vectors: Vectors, table: Neighbours) -> list[Finding]:
    """One-draw recovery by an attacker with the channel, words unchanged by distance, and what becomes of names."""
    from clinveil.attacks.channel.inversion import inversion
    from clinveil.attacks.channel.name_outputs import name_outputs
    from clinveil.attacks.channel.unchanged import unchanged_by_distance
    from clinveil.vectors.euclidean import nearest_distances

    counts = vectors.counts if vectors.counts is not None else np.ones(len(vectors), dtype=np.int64)
    nearest = nearest_distances(vectors.matrix, table.eligible)  # where the noise is measured, too
    found = [*inversion(channel, counts), *unchanged_by_distance(channel, counts, nearest)]
    return [*found, *name_outputs(channel, _names(vectors), counts)]


def _names(vectors: Vectors) -> Iterator[str]:
    """The words that can be read as a usual name and as nothing else: no list of patients is asked for here."""
    from clinveil.lexicons.ambiguity import Reading, reading

    for word in vectors.words:
        found = reading(word)
        if found & (Reading.USUAL_GIVEN | Reading.USUAL_FAMILY) and not found & (Reading.WORD | Reading.EPONYM):
            yield word
