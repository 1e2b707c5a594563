"""Substitution scope of each row (`Channel.scopes`), from word counts and names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.kernel import CORPUS, OCCURRENCE, PATIENT
from clinveil.channel.policy import SCOPES
from clinveil.core.tokens import word_set
from clinveil.core.types import Ints
from clinveil.lexicons.ambiguity import is_name


def scoped(channel: Channel, counts: Ints, *, names: Iterable[str] | None = None) -> Channel:
    """Return the channel with the scope of each row: rare words per patient, names in the whole corpus.

    Args:
        counts: (n_words,) occurrences of the words; used for scope "rare" only.
        names: names in addition to the lexicon, full or parts; None: names are treated as other words.
    """
    policy = channel.policy
    if policy.scope != "rare" and names is None:
        return replace(channel, scopes=None)
    usual = OCCURRENCE if policy.scope == "rare" else SCOPES.index(policy.scope)
    scopes = np.full(len(channel.words) + 1, usual, dtype=np.uint8)
    if policy.scope == "rare":
        scopes[np.append(counts < policy.rare_below, True)] = PATIENT
    if names is not None:
        scopes[:-1][name_rows(channel, names)] = CORPUS
    return replace(channel, scopes=scopes)


def name_rows(channel: Channel, names: Iterable[str] = ()) -> Ints:
    """Return the rows of words that are only names, by the lexicon or in `names`, sorted: (n_names,)."""
    given = word_set(names)
    return np.flatnonzero([is_name(word, given) for word in channel.words])
