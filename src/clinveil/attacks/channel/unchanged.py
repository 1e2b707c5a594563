"""Probability that a word is unchanged, by the distance to its nearest neighbour: exact, from the channel.

Paper A argues that mechanisms with noise of constant size leave words in sparse regions of the vector space unchanged,
and that these are the rare words. This attack measures how often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import channel_and_counts
from clinveil.attacks.channel.name_outputs import EXACT, RANDOM_OUTPUT
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.core.words import words_beside
from clinveil.stats.findings import unmeasured

DECILES = 10
SOURCE = "paper A, introduction, on noise of constant size; exact from the channel"


@attacks.register("unchanged")
class Unchanged(Attack):
    """Measure how often a word is unchanged, by the distance to its nearest neighbour."""

    needs = frozenset({"channel", "counts", "vectors"})
    words = words_beside(__file__)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack with the distances in the first model of `vectors`; deterministic."""
        from clinveil.vectors.search import nearest_distances  # compiles

        channel, known, _ = channel_and_counts(context)
        assert context.vectors
        vectors = context.vectors[0]
        if channel.ids.keys() - vectors.ids.keys():
            raise InputError(
                "the channel has words without a vector", hint="pass the vectors that the channel was built from"
            )
        matrix = vectors.matrix[[vectors.ids[word] for word in channel.words]]
        nearest = nearest_distances(matrix, channel.eligible)
        return unchanged_by_distance(channel, known, nearest)


def unchanged_by_distance(channel: Channel, counts: Ints, nearest: NDArray[Any]) -> list[Finding]:
    """Measure P(a word is unchanged), over all words and by tenth of the words by distance to the nearest neighbour.

    Args:
        channel: of any mechanism. counts: (n_words,) occurrences of its words.
        nearest: (n_words,) the distance of each word to its nearest other word, for example `1 - similarity`.

    Returns:
        `attack.unchanged`, weighted by tokens; unweighted and with the tenth's median distance in the detail. Chance: a
        random output, weighted by its frequency.
    """
    weight = np.asarray(counts, dtype=np.float64)
    chance = channel.outputs(weight / max(weight.sum(), 1.0))
    order = np.argsort(nearest, kind="stable")
    parts = [("all words", order)]
    parts += [(f"tenth {i} by distance", part) for i, part in enumerate(np.array_split(order, DECILES), 1)]
    return [_finding(name, part, channel.unchanged, weight, nearest, chance) for name, part in parts if part.size]


def _finding(
    name: str,
    part: NDArray[np.intp],
    unchanged_chance: Doubles,
    weight: Doubles,
    nearest: NDArray[Any],
    chance: Doubles,
) -> Finding:
    detail: dict[str, Any] = {"label": name, "words": int(part.size)}
    detail |= {"by_word": float(unchanged_chance[part].mean()), "distance": float(np.median(nearest[part]))}
    about: dict[str, Any] = {"detail": detail, "source": SOURCE, "unit": "tokens"}
    tokens = weight[part].sum()
    if not tokens:
        return unmeasured("attack.unchanged", "none of these words occurs", **about)
    shares = weight[part] / tokens
    about |= {"chance": float(shares @ chance[part]), "method": EXACT, "chance_is": RANDOM_OUTPUT}
    return Finding("attack.unchanged", float(shares @ unchanged_chance[part]), int(tokens), "lower", **about)
