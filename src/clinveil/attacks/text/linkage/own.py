"""Shadow vectors: the attacker trains vectors on the known texts, and builds a channel from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.adversaries._shadow import channel_like, shadow_settings
from clinveil.attacks.text.linkage.sides import Sides
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import mechanisms
from clinveil.channel.settings import ChannelSettings
from clinveil.core.keys import Key
from clinveil.corpus.corpus import corpus_of_texts
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

CHANNEL = ChannelSettings(mechanism="neighbours", min_patients=1, allow_small=True)


@dataclass(frozen=True, eq=False)
class Own:
    """Vectors that an attacker trained, and channels built from them; the settings of the release are public."""

    vectors: Vectors = field(repr=False)
    channels: tuple[Channel, ...]

    @classmethod
    def of(
        cls,
        sides: Sides,
        rng: Generator,
        scratch: Path,
        *,
        vectors: VectorSettings | None = None,
        channels: tuple[ChannelSettings, ...] = (CHANNEL,),
        like: Channel | None = None,
        texts: Sequence[str] = (),
        threads: int = 1,
    ) -> Own:
        """Train on the known texts.

        Args:
            vectors: training settings (default: those of all shadow vectors).
            channels: settings of the channels. like: the channel of the release, whose settings are used instead, with
                the released words as outputs; its matrix and words are not used.
            texts: texts to train on instead of the known texts.

        Raises:
            InputError: the texts have too few words.
        """
        corpus = corpus_of_texts(texts or sides.known)
        settings = vectors or shadow_settings(sum(len(text.split()) for text in texts or sides.known))
        trained = train(corpus, settings, seed=int(rng.integers(2**31)), workers=threads, scratch=scratch)
        key = Key.from_seed(int(rng.integers(2**31)))
        if like is not None and like.mechanism in mechanisms:
            outputs = {word for note in sides.released_words for word in note}
            return cls(trained, (channel_like(like, trained, outputs, key, threads),))
        channels_built = [build_channel(trained, one, key=key, threads=threads)[0] for one in channels]
        return cls(trained, tuple(channels_built))
