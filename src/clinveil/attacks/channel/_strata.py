"""Which words are rare, content, function words or names: the strata that figures of words are told by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.channel._inputs import RARE
from clinveil.channel.channel import Channel
from clinveil.core.tokens import word_set
from clinveil.core.types import Mask
from clinveil.lexicons.ambiguity import is_name, is_not_word

FUNCTION = 150
"""So many of the most frequent words are taken for function words; all others are content words."""


def word_strata(channel: Channel, counts: NDArray[Any], names: Iterable[str] = ()) -> dict[str, Mask]:
    """The words of each stratum, as masks over the rows of the channel, (n_words + 1,): all, rare, content, function,
    names.

    The unknown row is of all, rare and content. Names are parts of `names`, and usual first names and surnames, that
    are no other word; eponyms (Foley) are among them.

    Args:
        counts: (n_words,) occurrences of the channel's words in the notes that are measured.
        names: full names or parts of them, for example of known patients.
    """
    function = np.zeros(counts.size, dtype=np.bool_)
    function[np.argsort(-counts, kind="stable")[:FUNCTION]] = True
    found = _strata(channel.words, counts, function & (counts > 0), names)
    of_unknown = {"all": True, "rare": True, "content": True}
    return {name: np.append(mask, of_unknown.get(name, False)) for name, mask in found.items()}


def unknown_strata(unknown: Mapping[str, int], names: Iterable[str] = ()) -> dict[str, Mask]:
    """The same strata of words that the channel does not know, by their occurrences, (n_types,): no function words."""
    counts = np.fromiter(unknown.values(), dtype=np.int64, count=len(unknown))
    return _strata(unknown, counts, np.zeros(counts.size, dtype=np.bool_), names)


def _strata(forms: Iterable[str], counts: NDArray[Any], function: Mask, names: Iterable[str]) -> dict[str, Mask]:
    given = name_forms(names)[0]
    is_given = np.array([is_name(form, given, usual=True) for form in forms], dtype=np.bool_)
    every = np.ones(counts.size, dtype=np.bool_)
    return {"all": every, "rare": counts < RARE, "content": ~function, "function": function, "names": is_given}


def name_forms(names: Iterable[str]) -> tuple[set[str], int]:
    """The words of names that are no other word, and how many are left out: most tokens of "Blood" are no name."""
    forms = word_set(names)
    only = set(filter(is_not_word, forms))
    return only, len(forms) - len(only)
