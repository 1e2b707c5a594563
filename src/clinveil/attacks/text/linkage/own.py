"""The attacker who has no vectors of the release: he trains his own on the known texts, and makes a channel of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.text.linkage.sides import Sides
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.keys import Key
from clinveil.corpus.corpus import corpus_of_texts
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

VECTORS = VectorSettings(algorithm="skipgram", window=10, epochs=10)
CHANNEL = ChannelSettings(mechanism="neighbours", min_patients=1, allow_small=True)


@dataclass(frozen=True, eq=False)
class Own:
    """Vectors that an attacker trained, and channels made of them; the settings of the release are no secret."""

    vectors: Vectors = field(repr=False)
    channels: tuple[Channel, ...]

    @classmethod
    def of(
        cls,
        sides: Sides,
        rng: Generator,
        scratch: Path,
        *,
        vectors: VectorSettings = VECTORS,
        channels: tuple[ChannelSettings, ...] = (CHANNEL,),
        threads: int = 1,
    ) -> Own:
        """Trained on the known texts. Raises InputError where they have too few words for it."""
        texts = corpus_of_texts(sides.known)
        made = train(texts, vectors, seed=int(rng.integers(2**31)), workers=threads, scratch=scratch)
        key = Key.from_seed(int(rng.integers(2**31)))
        built = [build_channel(made, one, key=key, threads=threads)[0] for one in channels]
        return cls(made, tuple(built))
