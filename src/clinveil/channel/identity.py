"""The identity channel: a control for attackers who know the channel. Not available as a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism
from clinveil.vectors.table import Vectors


class IdentityMechanism(Mechanism):
    """Leave every known word unchanged; an attacker who knows the channel must recover all of them."""

    name: ClassVar[str] = "identity"

    def compile(self, material: Material) -> Channel:
        """Return the channel; every word is eligible, without a rare-word floor."""
        n = len(material.vectors)
        every = replace(material, eligible=np.ones(n, dtype=np.bool_))
        return every.channel(self.name, {}, np.ones(n, dtype=np.int64), np.arange(n), np.ones(n))


def identity_channel(words: Sequence[str]) -> Channel:
    """Return the identity over these words; unknown words are dropped."""
    vectors = Vectors(words, np.zeros((len(words), 1), dtype=np.float32))
    return IdentityMechanism().compile(Material(vectors, np.ones(len(words), dtype=np.bool_)))
