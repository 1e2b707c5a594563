"""Stratified splits that keep each patient and near-duplicate texts on one side.

Near-duplicates are detected by MinHash over word shingles: texts with equal lookup forms, or with
an estimated Jaccard similarity of at least 0.6 between their sets of 5-word shingles. Candidates
come from 32 bands of 4 hashes, which miss a pair at 0.6 in 1 of 85 cases and at 0.8 in less than 1
of 10^7. Groups are transitive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import InputError, Ints, words

PARTS = 4
SHINGLE = 5
BANDS = 32
BAND_HASHES = 4
SIMILAR = 0.6
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
Signatures = NDArray[np.uint32]


@dataclass(frozen=True)
class Split:
    """Rows of training and test notes, both ascending; group of each note, (n,); number of
    near-duplicate texts.
    """

    train: Ints = field(repr=False)
    test: Ints = field(repr=False)
    group: Ints = field(repr=False)
    duplicates: int


def splits(
    patients: Sequence[str],
    texts: Sequence[str],
    labels: Sequence[str],
    rng: Generator,
    *,
    parts: int = PARTS,
) -> list[Split]:
    """Return one split per part, which is its test set; `patients`, `texts` and `labels` have one
    entry per note.

    Raises InputError for fewer groups than parts, or if no label has as many notes as parts.
    """
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)
    alike = near_duplicates(texts, rng)
    if not patient.size:
        raise InputError("no note to split")
    group = joined_groups(patient, alike)
    duplicates = len(alike) - len(np.unique(alike))
    few = InputError(f"too few independent notes to split in {parts} parts")
    return [Split(*rows, group, duplicates) for rows in group_folds(labels, group, parts, rng, few)]


def group_folds(
    labels: Sequence[str], group: Ints, parts: int, rng: Generator, few: InputError
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test rows of each fold, ascending, with whole groups and about equal
    shares of labels.

    Raises `few` for fewer groups than parts, or if no label has as many notes as parts.
    Source: scikit-learn's StratifiedGroupKFold.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    label = np.unique(np.array(labels, dtype=object), return_inverse=True)[1]
    if np.unique(group).size < parts or np.bincount(label).max() < parts:
        raise few
    folds = StratifiedGroupKFold(
        n_splits=parts, shuffle=True, random_state=int(rng.integers(2**31))
    )
    for train, test in folds.split(np.zeros(len(label)), label, group):
        yield np.sort(train).astype(np.int64), np.sort(test).astype(np.int64)


def joined_groups(*keys: Ints) -> Ints:
    """Return the group of each row, (n,): rows with equal values in any of the keys, (n,) each, are
    in one group.
    """
    return groups(len(keys[0]), np.concatenate([_links(each) for each in keys]))


def _links(keys: Ints) -> Ints:
    """Return pairs of each row with the first row of the same key, (n, 2)."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.stack([first[inverse], np.arange(keys.size)], axis=1).astype(np.int64)


def near_duplicates(texts: Iterable[str], rng: Generator) -> Ints:
    """Return the group of each text, (n,): texts that are linked by near-duplicates.

    Source: Broder 1997, Compression and Complexity of Sequences; banding: Leskovec, Rajaraman &
    Ullman, chapter 3.
    """
    minhash = MinHash.of(rng)
    rows = [minhash.signature(text) for text in texts]
    if not rows:
        return np.zeros(0, dtype=np.int64)
    return similar_groups(np.stack(rows))


@dataclass(frozen=True)
class MinHash:
    """Multiply-shift hash functions, (n_hashes,) each; texts are comparable under the same
    functions.
    """

    factors: NDArray[np.uint64] = field(repr=False)
    shifts: NDArray[np.uint64] = field(repr=False)

    @classmethod
    def of(cls, rng: Generator) -> MinHash:
        """Draw the hash functions."""
        hashes = BANDS * BAND_HASHES
        factors = rng.integers(1, 2**63, size=hashes, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        shifts = rng.integers(0, 2**63, size=hashes, dtype=np.uint64)
        return cls(factors, shifts)

    def signature(self, text: str) -> Signatures:
        """Return the smallest hash of the text's shingles for each hash function, (n_hashes,)."""
        shingles = _shingles(words(text))
        smallest = np.full(self.factors.size, np.iinfo(np.uint64).max, dtype=np.uint64)
        for start in range(0, shingles.size, 4096):  # bounded memory for a huge note
            mixed = shingles[start : start + 4096, None] * self.factors + self.shifts
            np.minimum(smallest, mixed.min(axis=0), out=smallest)
        return (smallest >> np.uint64(32)).astype(np.uint32)


def similar_groups(signatures: Signatures) -> Ints:
    """Return the group of each text, (n,), from the signatures of all texts, (n, n_hashes)."""
    links = [_band_links(signatures, band) for band in range(BANDS)]
    return groups(len(signatures), np.concatenate(links))


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


def _shingles(forms: Sequence[str]) -> NDArray[np.uint64]:
    """Return distinct 64-bit hashes of all runs of 5 words, or of the whole text if it is
    shorter.
    """
    codes = np.array([_code(word) for word in forms], dtype=np.uint64)
    size = min(SHINGLE, codes.size)
    total = np.zeros(codes.size - size + 1, dtype=np.uint64)
    for shift in range(size):
        total = total * _MULTIPLIER + codes[shift : codes.size - size + 1 + shift]
    mixed = (total ^ (total >> np.uint64(31))) * _MULTIPLIER
    return np.unique(mixed ^ (mixed >> np.uint64(29)))


def _band_links(signatures: Signatures, band: int) -> Ints:
    """Return similar texts that agree in a band, each with the first text of its bucket, (n_links,
    2).
    """
    part = np.ascontiguousarray(signatures[:, band * BAND_HASHES : (band + 1) * BAND_HASHES])
    pairs = _links(np.unique(part, axis=0, return_inverse=True)[1].ravel())
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    agree = (signatures[pairs[:, 0]] == signatures[pairs[:, 1]]).mean(axis=1)
    return np.asarray(pairs[agree >= SIMILAR], dtype=np.int64)


def groups(n: int, links: Ints) -> Ints:
    """Return the connected component of each of n items, (n,), given links (n_links, 2)."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix(
        (np.ones(len(links), dtype=np.int8), (links[:, 0], links[:, 1])), shape=(n, n)
    )
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
