"""Test whether phrases occur more often than in a random order of each note's words.

The words of a note are fixed; only their order is random. A phrase with a missing word cannot
occur. A phrase left in clear is distinguished from chance more reliably the longer the phrase and
the note are.

Source: inclusion and exclusion, Feller 1968, An Introduction to Probability Theory, chapter 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, perm, prod

import numpy as np

from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats.refusals import ALPHA

SELDOM = 0.01  # chance of an address of two words in a note of 100 words
SURE = 20.0  # with this many expected occurrences, a phrase is missing once in 10^8 notes
# share of the level for single phrases; the count's tail is steep, so it needs only the rest
SINGLE = 0.8
P_IS = (
    "random orders of each note's words: a phrase this unlikely, or this many phrases, at levels of"
    " 4 to 1"
)


@dataclass(frozen=True)
class PhraseOdds:
    """The parameters of a phrase for the test.

    Attributes:
        words: its distinct words. needs: count of each word in it. size: number of words.
        overlaps: whether occurrences can overlap, as of "baden baden".
    """

    words: tuple[str, ...]
    needs: tuple[int, ...]
    size: int
    overlaps: bool

    @classmethod
    def of(cls, forms: Sequence[str]) -> PhraseOdds:
        """Create from the words of a phrase, in order."""
        needs = Counter(forms)
        phrase = list(forms)
        overlaps = any(phrase[:i] == phrase[-i:] for i in range(1, len(phrase)))
        return cls(tuple(needs), tuple(needs.values()), len(phrase), overlaps)

    def times(self, held: Sequence[int], n: int, often: int = 1) -> float:
        """Return the expected number of sets of `often` occurrences of the phrase in a random order
        of n words.

        Args:
            held: count of each of `words` among the n.
        """
        if n < often * self.size:
            return 0.0
        ways = prod(perm(has, often * need) for has, need in zip(held, self.needs, strict=True))
        return comb(n - often * (self.size - 1), often) * ways / perm(n, often * self.size)

    def chance(self, held: Sequence[int], n: int) -> float:
        """Return P that a random order of n words contains the phrase: exact, or an upper bound for
        overlapping
        phrases.

        Args:
            held: as in `times`.
        """
        expected = self.times(held, n)
        if self.overlaps or expected > SURE:
            return min(1.0, expected)
        total = 0.0
        sign = 1
        often = 1
        term = expected
        while term > 1e-15 * expected:
            total = total + sign * term
            sign = -sign
            often = often + 1
            term = self.times(held, n, often)
        return min(1.0, max(0.0, total))


def found_p(chances: Doubles, found: Mask, patients: Ints) -> float:
    """Return P that random orders produce a phrase this unlikely, or this many phrases, at levels
    of 4 to 1.

    The first part is the expected number of phrases that are at most as likely as the least likely
    one found. The second compares the number of patients with a found phrase to a Poisson
    distribution of the expected number, whose tail is an upper bound. Phrases of one patient may be
    dependent.

    Args:
        chances: (n,) P of each phrase in its patient's notes. found: (n,) whether it occurs.
            patients: (n,) patient.

    Source: Hoeffding 1956, Ann. Math. Statist. 27:713; Anderson & Samuels 1967, Proc. Fifth
    Berkeley Symp. 1:1.
    """
    if not found.any():
        return 1.0
    # Tolerance for rounding.
    seldom = float(chances[chances <= chances[found].min() * (1 + 1e-9)].sum())
    many = _so_many(np.unique(patients[found]).size, float(chances.sum()))
    return min(1.0, seldom / SINGLE, many / (1 - SINGLE))


def _so_many(count: int, expected: float) -> float:
    from scipy.stats import poisson

    # The sum is an upper bound.
    return expected if count == 1 else float(poisson.sf(count - 1, expected))


def found_refused_from(expected: float) -> int:
    """Return the smallest number of patients, at least two, that is rejected with one phrase of
    chance < `SELDOM` each.

    Args:
        expected: number of phrases expected by chance.
    """
    count = max(2, int(expected))
    while _so_many(count, expected + count * SELDOM) >= ALPHA * (1 - SINGLE):
        count += 1
    return count


def one_refused_below(chances: Doubles) -> float:
    """Return the chance below which one additional phrase is rejected, among phrases with these
    chances.
    """
    ordered = np.concatenate([[0.0], np.sort(chances)])
    remaining = ALPHA * SINGLE - np.cumsum(ordered)
    last = int(np.flatnonzero(ordered < remaining)[-1])  # the first is 0 and always qualifies
    following = float(ordered[last + 1]) if last + 1 < ordered.size else 1.0
    return min(following, float(remaining[last]))
