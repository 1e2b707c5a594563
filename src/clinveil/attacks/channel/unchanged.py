"""How often a word comes out as it went in, by how far its nearest neighbour is: exact, from the channel.

Paper A holds against mechanisms that add noise of one size everywhere that words in sparse regions of the space stay
what they are, and those are the rare ones. Here is how often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import channel_and_counts
from clinveil.attacks.channel.name_outputs import EXACT, USUAL
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.core.words import words_beside
from clinveil.stats.findings import unmeasured

DECILES = 10
SOURCE = "paper A, introduction: what it holds against noise of one size; exact from the channel"


@attacks.register("unchanged")
class Unchanged(Attack):
    """How often a word comes out as it went in, by how far its nearest neighbour is."""

    needs = frozenset({"channel", "counts", "vectors"})
    words = words_beside(__file__)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Distances are those of the first model of `vectors`, among the channel's words; nothing is drawn."""
        from clinveil.vectors.euclidean import nearest_distances  # compiles

        channel, known, _ = channel_and_counts(context)
        assert context.vectors
        vectors = context.vectors[0]
        if channel.ids.keys() - vectors.ids.keys():
            raise InputError("the channel has words without a vector", hint="give the vectors that it was made of")
        matrix = vectors.matrix[[vectors.ids[word] for word in channel.words]]
        nearest = nearest_distances(matrix, channel.eligible)
        return unchanged_by_distance(channel, known, nearest)


def unchanged_by_distance(channel: Channel, counts: Ints, nearest: NDArray[Any]) -> list[Finding]:
    """P(a word comes out unchanged), over all words and by tenth of the words by distance to the nearest neighbour.

    Args:
        channel: of any mechanism. counts: (n_words,) occurrences of its words.
        nearest: (n_words,) the distance of each word to its nearest other word, for example `1 - similarity`.

    Returns:
        `attack.unchanged`, weighted by tokens; the same by word and the tenth's median distance in the detail. Chance:
        a random output as frequent as it comes out of the channel.
    """
    weight = np.asarray(counts, dtype=np.float64)
    chance = channel.outputs(weight / max(weight.sum(), 1.0))
    order = np.argsort(nearest, kind="stable")
    parts = [("all words", order)]
    parts += [(f"tenth {i} by distance", part) for i, part in enumerate(np.array_split(order, DECILES), 1)]
    return [_finding(name, part, channel.unchanged, weight, nearest, chance) for name, part in parts if part.size]


def _finding(
    name: str, part: NDArray[np.intp], same: Doubles, weight: Doubles, nearest: NDArray[Any], chance: Doubles
) -> Finding:
    detail: dict[str, Any] = {"label": name, "words": int(part.size)}
    detail |= {"by_word": float(same[part].mean()), "distance": float(np.median(nearest[part]))}
    told: dict[str, Any] = {"detail": detail, "source": SOURCE, "unit": "tokens"}
    tokens = weight[part].sum()
    if not tokens:
        return unmeasured("attack.unchanged", "none of these words occurs", **told)
    shares = weight[part] / tokens
    told |= {"chance": float(shares @ chance[part]), "method": EXACT, "chance_is": USUAL}
    return Finding("attack.unchanged", float(shares @ same[part]), int(tokens), "lower", **told)
