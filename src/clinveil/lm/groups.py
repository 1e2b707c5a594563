"""Groups of similar notes within each label: a mixture of word distributions.

A written note draws one group of its label and keeps it, so that sex, type of note and topic change less often within
the note than n-grams alone allow. A group has at least `4 * min_patients` patients.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from clinveil.core.types import Doubles, Ints
from clinveil.lm.notes import EncodedNotes

GROUPS, PASSES = 8, 15  # groups of a label at most
FLOORS = 4  # a group has this many times the patient floor
PRIOR = 200.0  # tokens with the frequencies of the label, added to each group


def groups_of(notes: EncodedNotes, size: int) -> Ints:
    """Return the group of each note within its label, (n_notes,); 0 for all notes of a label with few patients.

    Source: Nigam et al. 2000, EM for a mixture of multinomials, section 3.
    """
    given, found = notes.conditions, np.zeros(len(notes), dtype=np.int64)
    if given is None:
        return found
    fewest = FLOORS * given.min_patients
    counts = csr_matrix((notes.weights, notes.ids, notes.offsets), shape=(len(notes), size))
    for label in range(int(given.labels.max()) + 1):
        rows = np.flatnonzero(given.labels == label)
        some = min(GROUPS, np.unique(given.patients[rows]).size // fewest)
        if some > 1:
            found[rows] = _fitted(counts[rows], given.patients[rows], some, fewest)
    return found


def _fitted(counts: csr_matrix, patients: Ints, groups: int, fewest: int) -> Ints:
    """Return the group of each note, (n_notes,), numbered from 0."""
    share = np.random.default_rng(0).dirichlet(np.ones(groups), counts.shape[0])
    overall = np.asarray(counts.sum(axis=0)).ravel() + 1e-3
    prior: Doubles = PRIOR * overall / overall.sum()
    for _ in range(PASSES):
        words = (counts.T @ share).T + prior
        logs = counts @ np.log(words / words.sum(axis=1, keepdims=True)).T + np.log(share.sum(axis=0) + 1e-9)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    while True:  # the notes of a group that is too small go to their next best group
        own = logs.argmax(axis=1)
        sizes = [np.unique(patients[own == group]).size for group in range(logs.shape[1])]
        if min(sizes) >= fewest or len(sizes) == 1:
            return own.astype(np.int64)
        logs = np.delete(logs, int(np.argmin(sizes)), axis=1)
