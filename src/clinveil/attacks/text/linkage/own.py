"""The attacker who has no vectors of the release: he trains his own on the known texts, and makes a channel of them."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.text.linkage.sides import Sides
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.keys import Key
from clinveil.corpus.corpus import memory_corpus
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.train import train

VECTORS = VectorSettings(algorithm="skipgram", window=10, epochs=10)
CHANNEL = ChannelSettings(min_patients=1, allow_small=True)


def own_channel(
    sides: Sides,
    rng: Generator,
    scratch: Path,
    *,
    vectors: VectorSettings = VECTORS,
    channel: ChannelSettings = CHANNEL,
    threads: int = 1,
) -> Channel:
    """The channel that our tool makes of the known texts; the settings of the release are no secret.

    Raises InputError where the texts have too few words for it.
    """
    texts = memory_corpus([(str(j), str(j), text) for j, text in enumerate(sides.known)])
    made = train(texts, vectors, seed=int(rng.integers(2**31)), workers=threads, scratch=scratch)
    return build_channel(made, channel, key=Key.from_seed(int(rng.integers(2**31))), threads=threads)[0]
