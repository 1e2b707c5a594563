"""What makes word vectors tell less of people: fewer words, and noise. Vectors in, vectors out; order is kept.

None of it is a guarantee: attack the result as the vectors themselves were attacked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.vectors.table import Vectors

Mask = NDArray[np.bool_]
_BITS = 53


def census_names() -> frozenset[str]:
    """Names of the census and of many cultures, as name forms; many ordinary words are among them."""
    from clinveil.lexicons.names import all_given_names, surnames, world_given, world_surnames

    return frozenset(surnames()) | frozenset(all_given_names()) | world_given() | world_surnames()


def scrub(vectors: Vectors, top: int, names: Collection[str]) -> Vectors:
    """Keep a word if it is among the `top` most frequent, or a common or clinical word and in no list of names.

    A frequent name passes by its frequency: give `top` no higher than the notes' ordinary words reach.

    Args:
        vectors: most frequent first; with counts these decide.
        top: how many words pass by frequency.
        names: name forms, for example `census_names()` and those of known patients.

    Raises:
        InputError: nothing would be left. UsageError: a negative `top`.
    Source: Finley, Pakhomov & Melton 2016 (vocabulary scrubber; their lexicon is SPECIALIST, ours clinveil's lists).
    """
    from clinveil.lexicons.names import name_form
    from clinveil.lexicons.words import is_word

    if top < 0:
        raise UsageError(f"the {top} most frequent words cannot be had", hint="0 or more")
    frequent = np.zeros(len(vectors), dtype=np.bool_)
    frequent[_by_count(vectors)[:top]] = True
    harmless = (is_word(word) and name_form(word) not in names for word in vectors.words)
    keep = frequent | np.fromiter(harmless, dtype=np.bool_, count=len(vectors))
    return keep_words(vectors, keep, scrub_top=top)


def _by_count(vectors: Vectors) -> NDArray[np.int64]:
    order = np.arange(len(vectors))
    return order if vectors.counts is None else np.argsort(-vectors.counts, kind="stable")


def drop_rare(vectors: Vectors, min_patients: int) -> Vectors:
    """Keep the words that occur in the notes of at least `min_patients` patients.

    Raises InputError if the vectors do not say in how many patients' notes a word occurs, or nothing would be left.
    """
    if vectors.patients is None:
        raise InputError(
            "these vectors do not say in how many patients' notes a word occurs",
            hint="train them with clinveil embed",
        )
    return keep_words(vectors, vectors.patients >= min_patients, min_patients=min_patients)


def keep_words(vectors: Vectors, keep: Mask, **how: Any) -> Vectors:
    """The vectors of some of the words; `how` goes to the record. Raises InputError if none is left."""
    if not keep.any():
        raise InputError("no word would be left of the vectors", hint="ask for less")
    rows = np.flatnonzero(keep)
    counts, patients = (None if column is None else column[rows] for column in (vectors.counts, vectors.patients))
    words = [vectors.words[row] for row in rows.tolist()]
    return Vectors(words, vectors.matrix[rows], counts, patients, vectors.n_patients, _recorded(vectors, how))


def add_noise(vectors: Vectors, share: float, key: Key) -> Vectors:
    """Add independent Gaussian noise to every number of every vector.

    Who knows the noise can take it away, so it comes from a key and not from a seed, by word: the same key gives a word
    the same noise in any order.

    Args:
        share: standard deviation of the noise, in root mean squares of the matrix: scales differ between algorithms.

    Raises UsageError for a share below 0.
    Source: paper B, Conclusion (proposed there, and not tried).
    """
    from scipy.special import ndtri

    if not share >= 0:
        raise UsageError(f"noise of {share} cannot be had", hint="0 or more")
    scale = share * float(np.sqrt(np.mean(vectors.matrix.astype(np.float64) ** 2)))
    noisy = vectors.matrix.copy()
    secret = key.subkey("vector-noise")
    for row, word in enumerate(vectors.words):
        noisy[row] += (scale * ndtri(_uniform(secret, word, vectors.dim))).astype(np.float32)
    how = {"noise": share, "noise_sigma": scale, "noise_test_seed": key.test_seed}
    return Vectors(vectors.words, noisy, vectors.counts, vectors.patients, vectors.n_patients, _recorded(vectors, how))


def _uniform(secret: bytes, word: str, size: int) -> NDArray[np.float64]:
    """`size` numbers in (0, 1), a keyed pseudo-random function of the word (SHAKE256; its key is of fixed length)."""
    data = hashlib.shake_256(secret + word.encode("utf-8", "surrogatepass")).digest(8 * size)
    bits = np.frombuffer(data, dtype="<u8") >> np.uint64(64 - _BITS + 1)
    return (bits.astype(np.float64) + 0.5) * 2.0 ** -(_BITS - 1)


def _recorded(vectors: Vectors, how: dict[str, Any]) -> dict[str, Any]:
    done = dict(vectors.meta.get("mitigation", {}))
    return {**vectors.meta, "mitigation": {**done, **how}}
