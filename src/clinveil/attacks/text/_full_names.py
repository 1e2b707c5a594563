"""Search for full names in released notes: each patient's own name and the names of other patients.

A full name occurs in a note if all its words are adjacent, in any order and in any spelling with
the same lookup form; for a name of three or more parts, first and last alone also count.
Punctuation and numbers between words are ignored. A name of one part cannot be distinguished from a
word; it is counted but not tested.

Every window of k adjacent name words gets the sum of its words' random 64-bit codes. Equal sums are
equal multisets except with probability 2^-64, so one sorted look-up per window finds names, however
many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import Finding, Ints, KnownList, SmallInts, words
from clinveil.stats import HitCounts, MeasureSpec, alone, own_name_p, permutation_p

PERMUTATIONS = 999
REPLICATES = 39
SOURCE = (
    "permutation test, exact if no two matches share a patient or a name (Riordan 1958), else"
    " Phipson & Smyth 2010"
)
CHANCE_IS = "own names found if names are permuted between patients, mean over all permutations"
Codes = NDArray[np.uint64]
_Table = tuple[Codes, SmallInts, NDArray[np.int16]]  # codes, the names' rows, replicates


class NameCodes(NamedTuple):
    """Names as sums of word codes: of all parts, and of the first and last part only (the same for
    two parts).
    """

    whole: Codes  # (n,)
    whole_words: NDArray[np.int16]  # (n,) number of words
    ends: Codes
    ends_words: NDArray[np.int16]


class NameHits(NamedTuple):
    """Names found in a batch of notes."""

    note: Ints  # index of the note in its batch
    row: SmallInts  # row of the name
    replicate: NDArray[np.int16]  # 0 for real names
    code: Codes


class FullNameIndex:
    """The names of n patients and `replicates` sets of shuffled names, prepared for search.

    A shuffled set combines the same first names with other last names: shuffled within each
    position among names with the same number of parts, so that every part keeps its frequency.

    Attributes:
        tested: (n,) whether a name has at least two parts and two words.
        real: the codes of the real names.
    """

    def __init__(
        self, names: Sequence[Sequence[str]], rng: Generator, *, replicates: int = REPLICATES
    ) -> None:
        parts = [[words(part) for part in name] for name in names]
        self.ids: dict[str, int] = {}
        for word in (w for name in parts for part in name for w in part):
            self.ids.setdefault(word, len(self.ids) + 1)
        self._codes = rng.integers(1, 2**64, size=len(self.ids) + 1, dtype=np.uint64)
        self._codes[0] = 0
        self.replicates = replicates
        self.tested = np.array([len(n) > 1 and sum(map(len, n)) > 1 for n in parts], dtype=bool)
        n = len(names)
        self.real = NameCodes(
            np.zeros(n, np.uint64),
            np.zeros(n, np.int16),
            np.zeros(n, np.uint64),
            np.zeros(n, np.int16),
        )
        sizes = np.array([len(name) for name in parts], dtype=np.int64)
        groups = (
            np.flatnonzero(self.tested & (sizes == size)) for size in np.unique(sizes[self.tested])
        )
        self._tables = _tables(
            [piece for rows in groups for piece in self._codes_of(parts, rows, rng)]
        )

    def _codes_of(
        self, parts: list[list[list[str]]], rows: Ints, rng: Generator
    ) -> list[tuple[NameCodes, Ints, int]]:
        """Return the codes of names of one number of parts: real ones (also stored in `real`), then
        replicates.
        """
        named = [[[self.ids[w] for w in part] for part in parts[row]] for row in rows.tolist()]
        codes = np.array(
            [[self._codes[part].sum(dtype=np.uint64) for part in name] for name in named],
            dtype=np.uint64,
        )
        lengths = np.array([[len(part) for part in name] for name in named], dtype=np.int16)
        code_sets = [(real := _summed(codes, lengths), rows, 0)]
        pairs: Any = zip(self.real, real, strict=True)
        for target, values in pairs:
            target[rows] = values
        for replicate in range(1, self.replicates + 1):
            for column in range(1, codes.shape[1]):
                order = rng.permutation(len(rows))
                codes[:, column] = codes[order, column]
                lengths[:, column] = lengths[order, column]
            code_sets.append((_summed(codes, lengths), rows, replicate))
        return code_sets

    def find(self, notes: Iterable[Sequence[str]]) -> NameHits:
        """Return all names in these notes (each a list of lookup forms)."""
        get = self.ids.get
        ids: list[int] = []
        lengths = []
        for note in notes:
            ids += [get(word, 0) for word in note]
            ids.append(0)  # separates the notes
            lengths.append(len(note) + 1)
        row = np.array(ids, dtype=np.int64)
        note_of = np.repeat(np.arange(len(lengths)), lengths)
        found = [
            _windows(row, self._codes, size, table, note_of) for size, table in self._tables.items()
        ]
        none = np.zeros(0, dtype=np.int64)
        found.append(
            NameHits(none, none.astype(np.int32), none.astype(np.int16), none.astype(np.uint64))
        )
        return NameHits(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def search(self, own: Ints, notes: Sequence[Sequence[str]]) -> NamesFound:
        """Search a batch: each note's lookup forms, and the row of its patient or -1."""
        hits = self.find(notes)
        of_note = own[hits.note]
        if self.tested.size:  # another patient may have the same name
            same = (hits.code == self.real.whole[of_note]) | (hits.code == self.real.ends[of_note])
            other = ~(same & (of_note >= 0))
        else:
            other = np.ones(hits.note.size, dtype=bool)
        own_patient = (hits.replicate == 0) & (of_note >= 0)
        pairs = np.unique(np.stack([of_note[own_patient], hits.row[own_patient]], axis=1), axis=0)
        replicate, note = np.unique(
            np.stack([hits.replicate[other], hits.note[other]], axis=1), axis=0
        ).T
        return NamesFound(
            pairs, np.bincount(replicate, minlength=self.replicates + 1), note[replicate == 0]
        )


def _summed(codes: Codes, lengths: NDArray[np.int16]) -> NameCodes:
    ends = (codes[:, 0] + codes[:, -1], lengths[:, 0] + lengths[:, -1])
    return NameCodes(codes.sum(axis=1, dtype=np.uint64), lengths.sum(axis=1, dtype=np.int16), *ends)


def _tables(code_sets: list[tuple[NameCodes, Ints, int]]) -> dict[int, _Table]:
    """Group all codes by number of words, sorted by code."""
    if not code_sets:
        return {}
    sets = [
        (codes_, rows.astype(np.int32), np.full(rows.size, n, dtype=np.int16))
        for codes_, rows, n in code_sets
    ]
    pieces = [(codes_.whole, codes_.whole_words, *of_set) for codes_, *of_set in sets]
    # For a name of two parts, the ends are the full name.
    pieces += [(f.ends, f.ends_words, *of_set) for f, *of_set in sets if (f.ends != f.whole).any()]
    codes, sizes, rows, replicates = (
        np.concatenate(column) for column in zip(*pieces, strict=True)
    )
    tables = {}
    for size in np.unique(sizes[sizes > 1]).tolist():
        positions = np.flatnonzero(sizes == size)
        positions = positions[np.argsort(codes[positions], kind="stable")]
        tables[size] = (codes[positions], rows[positions], replicates[positions])
    return tables


def _windows(ids: Ints, codes: Codes, size: int, table: _Table, note_of: Ints) -> NameHits:
    """Return the names of `size` words among the windows of `size` adjacent name words."""
    if ids.size < size:
        ids = np.append(ids, np.zeros(size, dtype=np.int64))
    windows = np.lib.stride_tricks.sliding_window_view(ids, size)
    starts = np.flatnonzero((windows != 0).all(axis=1))
    window = codes[windows[starts]].sum(axis=1, dtype=np.uint64)
    table_codes, rows, replicates = table
    low = np.searchsorted(table_codes, window)
    n_matches = np.searchsorted(table_codes, window, side="right") - low
    positions = np.repeat(low - np.cumsum(n_matches) + n_matches, n_matches) + np.arange(
        n_matches.sum()
    )
    return NameHits(
        np.repeat(note_of[starts], n_matches),
        rows[positions],
        replicates[positions],
        np.repeat(window, n_matches),
    )


OWN_NAME = MeasureSpec(
    measure="attack.own_name",
    over="patients",
    source=SOURCE,
    chance_is=CHANCE_IS,
    p_is="owners permuted",
)
OTHER_NAMES = MeasureSpec(
    measure="attack.other_names",
    over="patients",
    unit="notes",
    source="chance: first names combined with other last names, each part as frequent as before",
    p_is="against the shuffled sets of names",
    chance_is="names of the same parts, shuffled within each position",
)


class NamesFound(NamedTuple):
    """Names found in a batch of notes, or in several."""

    pairs: Ints  # (m, 2) distinct rows of a note's patient and of a real name in the note
    counts: Ints  # (replicates + 1,) notes with the name of another patient, by set of names
    others: Ints  # index of the notes with a real name of another patient


def own_names(
    index: FullNameIndex,
    present: Ints,
    found: Sequence[NamesFound],
    rng: Generator,
    permutations: int = PERMUTATIONS,
) -> Finding:
    """Return the finding on own full names against permuted names; `present`: rows of the patients
    with a note.
    """
    tested_rows = present[index.tested[present]]
    numbers = {"one_part_names": present.size - tested_rows.size}
    known = KnownList(in_feed=index.tested.size, in_release=present.size)
    if not tested_rows.size:
        why = "no patient with a full name has released notes"
        return replace(OWN_NAME.missing(why, numbers=numbers), known_list=known)
    place = np.full(index.tested.size, -1)
    place[tested_rows] = np.arange(tested_rows.size)
    pairs = place[np.unique(np.concatenate([batch.pairs for batch in found]), axis=0)]
    patient, name = pairs[(pairs >= 0).all(axis=1)].T
    count = int((patient == name).sum())
    n = int(tested_rows.size)
    p, p_is = own_name_p(patient, name, n, rng, permutations)
    # The chance is the exact mean over all permutations.
    counts = HitCounts(hits=count, tries=n, chance=patient.size / n**2)
    finding = OWN_NAME.share(counts, p=p, numbers={**numbers, "expected": patient.size / n})
    known = replace(known, alone=alone(patient, name, n))
    return replace(finding, p_is=p_is, known_list=known)


def other_names(index: FullNameIndex, found: Sequence[NamesFound], notes: Ints) -> Finding:
    """Return the finding on other patients' full names against shuffled ones.

    `notes`: (n, 2) notes of each patient, and those with the name of another patient.
    """
    n = int(notes[:, 0].sum())
    names = int(index.tested.sum())
    numbers: dict[str, float] = {"names": names, "shuffled_sets": index.replicates}
    if not n or not names:
        why = "no released notes" if not n else "no full names to search for"
        return replace(OTHER_NAMES.missing(why, n, numbers=numbers), source=SOURCE)
    counts = np.sum([batch.counts for batch in found], axis=0)
    shuffled = counts[1:]
    return OTHER_NAMES.share(
        HitCounts.of_clusters(notes[:, ::-1], chance=float(shuffled.mean() / n)),
        p=permutation_p(counts[0], shuffled),
        numbers={**numbers, "chance_most": float(shuffled.max() / n)},
    )
