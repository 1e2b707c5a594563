"""Phrases that stand together by chance: the words of a note in a random order, and a test of those that were found.

What words a note holds is given; only their order is random. A phrase of which a word is missing cannot stand there,
and one that was left in clear is told from chance the better the longer it is, and the note.

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

SELDOM = 0.01  # an address of two words in a note of a hundred
SURE = 20.0  # expected so often, a phrase stands there but for 1 in 10^8
SINGLE = 0.8  # of the level, for single phrases; a count's tail is steep, so that it loses little by having the rest
P_IS = (
    "the words of each note in random orders: one found that would be so seldom, or so many found, at levels of 4 to 1"
)


@dataclass(frozen=True)
class PhraseOdds:
    """A phrase as chance sees it.

    Attributes:
        words: its different words. needs: how often each stands in it. size: how many words it has.
        overlaps: whether it can begin before it has ended, as "baden baden" can.
    """

    words: tuple[str, ...]
    needs: tuple[int, ...]
    size: int
    overlaps: bool

    @classmethod
    def of(cls, forms: Sequence[str]) -> PhraseOdds:
        """Of the words of a phrase, in order."""
        needs, phrase = Counter(forms), list(forms)
        overlaps = any(phrase[:i] == phrase[-i:] for i in range(1, len(phrase)))
        return cls(tuple(needs), tuple(needs.values()), len(phrase), overlaps)

    def times(self, held: Sequence[int], n: int, often: int = 1) -> float:
        """How many sets of so many places of the phrase a random order of n words holds, on average.

        Args:
            held: how often each of `words` stands among the n.
        """
        if n < often * self.size:
            return 0.0
        ways = prod(perm(has, often * need) for has, need in zip(held, self.needs, strict=True))
        return comb(n - often * (self.size - 1), often) * ways / perm(n, often * self.size)

    def chance(self, held: Sequence[int], n: int) -> float:
        """P that a random order of n words holds the phrase: exact; for one that overlaps itself, no less than it is.

        Args:
            held: as in `times`.
        """
        expected = self.times(held, n)
        if self.overlaps or expected > SURE:
            return min(1.0, expected)
        total, sign, often, term = 0.0, 1, 1, expected
        while term > 1e-15 * expected:
            total, sign, often = total + sign * term, -sign, often + 1
            term = self.times(held, n, often)
        return min(1.0, max(0.0, total))


def found_p(chances: Doubles, found: Mask, whose: Ints) -> float:
    """P that random orders bring what was found: one that is so unlikely, or so many, at levels of 4 to 1.

    One so unlikely: all phrases that are no more likely are expected so often. So many: patients of whom one was found,
    against a Poisson of all that is expected, whose tail is no smaller than the true one. Phrases of one patient may
    depend on each other.

    Args:
        chances: (n,) P of each phrase in its patient's notes. found: (n,) whether it stands there. whose: (n,) patient.
    Source: Hoeffding 1956, Ann. Math. Statist. 27:713; Anderson & Samuels 1967, Proc. Fifth Berkeley Symp. 1:1.
    """
    if not found.any():
        return 1.0
    seldom = float(chances[chances <= chances[found].min() * (1 + 1e-9)].sum())  # equal but for rounding
    many = _so_many(np.unique(whose[found]).size, float(chances.sum()))
    return min(1.0, seldom / SINGLE, many / (1 - SINGLE))


def _so_many(count: int, expected: float) -> float:
    from scipy.stats import poisson

    return expected if count == 1 else float(poisson.sf(count - 1, expected))  # the sum of chances bounds that of one


def found_refused_from(expected: float) -> int:
    """The smallest number of patients, two at least, that is refused with one phrase each, of a chance below `SELDOM`.

    Args:
        expected: how many random orders bring, before any was left in.
    """
    count = max(2, int(expected))
    while _so_many(count, expected + count * SELDOM) >= ALPHA * (1 - SINGLE):
        count += 1
    return count


def one_refused_below(chances: Doubles) -> float:
    """A phrase with a smaller chance is refused alone, as one more among phrases of these chances."""
    ordered = np.concatenate([[0.0], np.sort(chances)])
    room = ALPHA * SINGLE - np.cumsum(ordered)
    last = int(np.flatnonzero(ordered < room)[-1])  # the first is 0, and has all the room
    following = float(ordered[last + 1]) if last + 1 < ordered.size else 1.0
    return min(following, float(room[last]))
