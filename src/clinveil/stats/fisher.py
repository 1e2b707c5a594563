"""Hits in one group against those by chance in another, by Fisher's exact test: how many are refused.

Source: Fisher 1935, The Design of Experiments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from clinveil.stats import hypergeometric_tail

ALPHA = 0.01
POWER = 0.95
CAP = 10  # one in so many of the training patients may be hit, where it came by chance for held-out ones


def allowed(training: int, held_out: int, by_chance: int) -> int:
    """How many of the training patients may be copied where that came by chance for some of the held-out ones.

    None where it came for none of these, nor where they are so few that the test could not refuse everybody; and never
    more than the share of the held-out ones or a tenth, whichever is more: of few held-out patients one would else
    excuse most of the training patients.
    """
    if not by_chance:
        return 0
    first = fisher_from(training, training, held_out, by_chance, ALPHA)
    return 0 if first is None else min(first - 1, max(by_chance * training // held_out, training // CAP))


def fisher_from(most: int, training: int, held_out: int, by_chance: int, level: float) -> int | None:
    """The smallest number of training patients, up to `most`, that Fisher's exact test refuses; None where none is."""
    both = training + held_out
    return _first(most, lambda k: hypergeometric_tail(k, both, k + by_chance, training) < level)


def refused_from(training: int, visible: int, may: int) -> int | None:
    """The smallest number of patients copied whole that is refused with 95 %; None where none is.

    Args:
        visible: how many of the training patients a copy of all their notes would show.
        may: how many may be copied.
    """
    return _first(training, lambda copied: hypergeometric_tail(may + 1, training, visible, copied) >= POWER)


def _first(most: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to `most` of which it holds; where it holds of one it does of all larger ones."""
    found = bisect_left(range(1, most + 1), True, key=holds) + 1
    return found if found <= most else None
