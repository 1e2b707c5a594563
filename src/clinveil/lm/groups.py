"""Groups of notes with similar words, given their labels, and classes of tokens with similar
neighbours.

A written note draws a group and keeps it, so that sex, type of note and topic change less often
within the note than n-grams alone allow. A group has at least `4 * min_patients` patients.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from clinveil.core import Doubles, Ints
from clinveil.lm.notes import EncodedNotes

GROUPS = 12
PASSES = 20
# of tokens
AXES = 50
CLASSES = 200
PRIOR = 5.0  # occurrences of each token, as expected, added to each group


def groups_of(
    notes: EncodedNotes, frequencies: Doubles, labels: Ints, patients: Ints, fewest: int
) -> tuple[Ints, Doubles]:
    """Fit groups by EM, starting from random groups; a fixed seed, so the result depends on the
    notes only.

    Args:
        frequencies: (n_labels, size) of the tokens of each label. labels: (n_notes,), all known.
        fewest: patients of a group at least.

    Returns the group of each note, (n_notes,), and the log ratio of each group's token frequencies
    to those of its labels, (n_groups, size).
    """
    size = frequencies.shape[1]
    n = len(notes)
    counts = csr_matrix((notes.weights, notes.ids, notes.offsets), shape=(n, size))
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    of_label = csr_matrix((lengths, (np.arange(n), labels)), shape=(n, len(frequencies)))

    def ratios_of(share: Doubles) -> Doubles:
        expected = (of_label.T @ share).T @ frequencies
        return np.asarray(np.log(((counts.T @ share).T + PRIOR) / (expected + PRIOR)))

    share = np.random.default_rng(0).dirichlet(
        np.ones(int(np.clip(np.unique(patients).size // fewest, 1, GROUPS))), n
    )
    for _ in range(PASSES):
        logs = counts @ ratios_of(share).T
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    while True:  # the notes of a group that is too small go to their next best group
        own = logs.argmax(axis=1)
        sizes = [np.unique(patients[own == group]).size for group in range(logs.shape[1])]
        if min(sizes) >= fewest or len(sizes) == 1:
            return own.astype(np.int64), ratios_of(np.eye(logs.shape[1])[own])
        logs = np.delete(logs, int(np.argmin(sizes)), axis=1)


def classes_of(notes: EncodedNotes, size: int) -> Ints:
    """Return the class of each token, (size,): tokens of a class are followed and preceded by
    similar tokens.
    """
    following = csr_matrix((notes.weights[1:], (notes.ids[:-1], notes.ids[1:])), shape=(size, size))
    both = hstack([normalize(following.sqrt()), normalize(following.T.tocsr().sqrt())]).tocsr()
    axes = min(AXES, size - 1)
    places = (
        TruncatedSVD(axes, random_state=0).fit_transform(both) if axes > 1 else np.zeros((size, 1))
    )
    distinct = len(np.unique(places.round(9), axis=0))
    weights = np.log2(2 + np.bincount(notes.ids, notes.weights, size))
    clusters = KMeans(min(CLASSES, distinct), n_init=1, random_state=0)
    found: Ints = clusters.fit_predict(places, sample_weight=weights).astype(np.int64)
    return found
