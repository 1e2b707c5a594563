"""Strata of words in findings: rare words, content words, function words and names."""

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
"""Number of most frequent words treated as function words; all others are content words."""


def word_strata(channel: Channel, counts: NDArray[Any], names: Iterable[str] = ()) -> dict[str, Mask]:
    """Return a mask over the rows of the channel, (n_words + 1,), for each stratum.

    The unknown row belongs to all, rare and content. Names are parts of `names`, and common first names and surnames,
    that are not also other words; they include eponyms (Foley).

    Args:
        counts: (n_words,) occurrences of the channel's words in the measured notes.
        names: full names or parts of them, for example of known patients.
    """
    function = np.zeros(counts.size, dtype=np.bool_)
    function[np.argsort(-counts, kind="stable")[:FUNCTION]] = True
    strata = _strata(channel.words, counts, function & (counts > 0), names)
    unknown_row = {"all": True, "rare": True, "content": True}
    return {name: np.append(mask, unknown_row.get(name, False)) for name, mask in strata.items()}


def unknown_strata(unknown: Mapping[str, int], names: Iterable[str] = ()) -> dict[str, Mask]:
    """Return the same strata of out-of-vocabulary words, (n_types,); none of them is a function word."""
    counts = np.fromiter(unknown.values(), dtype=np.int64, count=len(unknown))
    return _strata(unknown, counts, np.zeros(counts.size, dtype=np.bool_), names)


def _strata(forms: Iterable[str], counts: NDArray[Any], function: Mask, names: Iterable[str]) -> dict[str, Mask]:
    listed = name_forms(names)[0]
    is_given = np.array([is_name(form, listed, usual=True) for form in forms], dtype=np.bool_)
    every = np.ones(counts.size, dtype=np.bool_)
    return {"all": every, "rare": counts < RARE, "content": ~function, "function": function, "names": is_given}


def name_forms(names: Iterable[str]) -> tuple[set[str], int]:
    """Return the words of names that are not also other words ("Blood" is), and how many are left out."""
    forms = word_set(names)
    only = set(filter(is_not_word, forms))
    return only, len(forms) - len(only)
