"""Full names in released notes: the patient's own against a permutation of names, and other patients' against chance.

A full name stands in a note where all its words are adjacent, in any order and any spelling that shares the lookup
form; of a name of three or more parts, first and last alone count too. Punctuation and numbers between do not part
words. A name of one part cannot be told from a word and is not tested, only counted.

Every window of k adjacent name words gets the sum of its words' random 64-bit codes; equal sums are equal multisets
but for one chance in 2^64, so that names are found by one sorted look-up a window, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.core.types import Ints
from clinveil.stats import permutation_p
from clinveil.stats.findings import clustered_share, proportion, unmeasured
from clinveil.stats.refusals import alone, own_name_p

PERMUTATIONS = 999
REPLICATES = 39
SOURCE = (
    "permutation test, exact where no two finds share a patient or a name (Riordan 1958), else Phipson & Smyth 2010"
)
CHANCE_IS = "own names found where owners are permuted, the mean over all permutations"
Codes = NDArray[np.uint64]
_Table = tuple[Codes, Ints, Ints]  # codes, the names' rows, replicates


class Forms(NamedTuple):
    """Names as sums of word codes: all of them, and for three or more parts first and last alone (else the same)."""

    whole: Codes  # (n,)
    whole_words: Ints  # (n,) how many words they are
    ends: Codes
    ends_words: Ints


class Hits(NamedTuple):
    """Names found."""

    note: Ints  # the note's place in its batch
    row: Ints  # the name's row
    replicate: Ints  # 0 is real
    code: Codes


class NameIndex:
    """The names of n patients and `replicates` sets of made-up ones, ready to be found in notes.

    A made-up set pairs the same first with other last names: shuffled within each position among names of as many
    parts, so that every name part keeps its frequency.

    Attributes:
        tested: (n,) whether a name has two parts and two words at least.
        real: the codes of the real names.
    """

    def __init__(self, names: Sequence[Sequence[str]], rng: Generator, *, replicates: int = REPLICATES) -> None:
        parts = [[words(part) for part in name] for name in names]
        self.ids: dict[str, int] = {}
        for word in (w for name in parts for part in name for w in part):
            self.ids.setdefault(word, len(self.ids) + 1)
        self._codes = rng.integers(1, 2**64, size=len(self.ids) + 1, dtype=np.uint64)
        self._codes[0] = 0
        self.replicates = replicates
        self.tested = np.array([len(n) > 1 and sum(map(len, n)) > 1 for n in parts], dtype=bool)
        n = len(names)
        self.real = Forms(np.zeros(n, np.uint64), np.zeros(n, np.int64), np.zeros(n, np.uint64), np.zeros(n, np.int64))
        sizes = np.array([len(name) for name in parts], dtype=np.int64)
        groups = (np.flatnonzero(self.tested & (sizes == size)) for size in np.unique(sizes[self.tested]))
        self._tables = _tables([piece for rows in groups for piece in self._forms(parts, rows, rng)])

    def _forms(self, parts: list[list[list[str]]], rows: Ints, rng: Generator) -> list[tuple[Forms, Ints, int]]:
        """The forms of names of as many parts: real ones, noted in `real`, and each replicate's."""
        named = [[[self.ids[w] for w in part] for part in parts[row]] for row in rows.tolist()]
        codes = np.array([[self._codes[part].sum(dtype=np.uint64) for part in name] for name in named], dtype=np.uint64)
        lengths = np.array([[len(part) for part in name] for name in named], dtype=np.int64)
        made = [(real := _sum_forms(codes, lengths), rows, 0)]
        for target, values in zip(self.real, real, strict=True):
            target[rows] = values
        for replicate in range(1, self.replicates + 1):
            for column in range(1, codes.shape[1]):
                order = rng.permutation(len(rows))
                codes[:, column], lengths[:, column] = codes[order, column], lengths[order, column]
            made.append((_sum_forms(codes, lengths), rows, replicate))
        return made

    def find(self, notes: Iterable[Sequence[str]]) -> Hits:
        """All names in these notes (each a list of lookup forms)."""
        get = self.ids.get
        ids: list[int] = []
        lengths = []
        for note in notes:
            ids += [get(word, 0) for word in note]
            ids.append(0)  # no name runs across notes
            lengths.append(len(note) + 1)
        row, note_of = np.array(ids, dtype=np.int64), np.repeat(np.arange(len(lengths)), lengths)
        found = [_windows(row, self._codes, size, table, note_of) for size, table in self._tables.items()]
        none = np.zeros(0, dtype=np.int64)
        found.append(Hits(none, none, none, none.astype(np.uint64)))
        return Hits(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _sum_forms(codes: Codes, lengths: Ints) -> Forms:
    ends = (codes[:, 0] + codes[:, -1], lengths[:, 0] + lengths[:, -1])
    return Forms(codes.sum(axis=1, dtype=np.uint64), lengths.sum(axis=1), *ends)


def _tables(made: list[tuple[Forms, Ints, int]]) -> dict[int, _Table]:
    """All forms by their number of words, sorted by code."""
    if not made:
        return {}
    pieces = [(forms.whole, forms.whole_words, rows, np.full(rows.size, n)) for forms, rows, n in made]
    # Of a name of two parts the ends are the whole.
    pieces += [(f.ends, f.ends_words, rows, np.full(rows.size, n)) for f, rows, n in made if (f.ends != f.whole).any()]
    codes, sizes, rows, replicates = (np.concatenate(column) for column in zip(*pieces, strict=True))
    tables = {}
    for size in np.unique(sizes[sizes > 1]).tolist():
        places = np.flatnonzero(sizes == size)
        places = places[np.argsort(codes[places], kind="stable")]
        tables[size] = (codes[places], rows[places], replicates[places])
    return tables


def _windows(ids: Ints, codes: Codes, size: int, table: _Table, note_of: Ints) -> Hits:
    """The names of `size` words among the windows of `size` adjacent name words."""
    if ids.size < size:
        ids = np.append(ids, np.zeros(size, dtype=np.int64))
    windows = np.lib.stride_tricks.sliding_window_view(ids, size)
    starts = np.flatnonzero((windows != 0).all(axis=1))
    window = codes[windows[starts]].sum(axis=1, dtype=np.uint64)
    known, rows, replicates = table
    low = np.searchsorted(known, window)
    many = np.searchsorted(known, window, side="right") - low
    places = np.repeat(low - np.cumsum(many) + many, many) + np.arange(many.sum())
    return Hits(np.repeat(note_of[starts], many), rows[places], replicates[places], np.repeat(window, many))


class NameScan:
    """Counts, note by note, of the names found; `findings` at the end.

    Attributes:
        index: the names; rows: row of each source patient id in it.
    """

    def __init__(self, index: NameIndex, rows: Mapping[str, int]) -> None:
        self.index, self.rows = index, rows
        self._patients: dict[str, int] = {}
        self._notes, self._others = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        self._pairs = [np.zeros((0, 2), dtype=np.int64)]
        self._counts = np.zeros(index.replicates + 1, dtype=np.int64)

    def add(self, patients: Sequence[str], notes: Sequence[Sequence[str]]) -> None:
        """Count a batch: each note's source patient id and its lookup forms."""
        seen = np.array([self._patients.setdefault(p, len(self._patients)) for p in patients], dtype=np.int64)
        own = np.array([self.rows.get(p, -1) for p in patients], dtype=np.int64)
        hits = self.index.find(notes)
        self._notes.append(seen)
        real = hits.replicate == 0
        known = real & (own[hits.note] >= 0)
        self._pairs.append(np.unique(np.stack([own[hits.note[known]], hits.row[known]], axis=1), axis=0))
        other = ~self._is_own(hits, own[hits.note])
        places = np.stack([hits.replicate[other], hits.note[other]], axis=1)
        replicate, note = np.unique(places, axis=0).T
        self._counts += np.bincount(replicate, minlength=self._counts.size)
        self._others.append(seen[note[replicate == 0]])

    def _is_own(self, hits: Hits, own: Ints) -> NDArray[np.bool_]:
        """Whether a hit spells the own name of the note's patient (another may bear the same)."""
        if not self.index.tested.size:
            return np.zeros(hits.note.size, dtype=bool)
        real = self.index.real
        same = (hits.code == real.whole[own]) | (hits.code == real.ends[own])
        return np.asarray(same & (own >= 0))

    def findings(self, rng: Generator, *, permutations: int = PERMUTATIONS) -> list[Finding]:
        """Own full names against permuted names, and other patients' full names against shuffled ones."""
        return [self._own(rng, permutations), self._other(rng)]

    def _own(self, rng: Generator, permutations: int) -> Finding:
        present = [row for patient in self._patients if (row := self.rows.get(patient)) is not None]
        taking = np.array([row for row in present if self.index.tested[row]], dtype=np.int64)
        detail: dict[str, Any] = {"one_part_names": len(present) - len(taking), "in_feed": len(self.rows)}
        detail["in_release"] = len(present)
        about: dict[str, Any] = {"source": SOURCE}
        if not taking.size:
            why = "no patient with a full name has released notes"
            return unmeasured("attack.own_name", why, detail=detail, unit="patients", **about)
        patient, name = self._found(taking)
        count, n = int((patient == name).sum()), int(taking.size)
        p, p_is = own_name_p(patient, name, n, rng, permutations)
        # Chance is the mean over all permutations, exactly.
        about |= {"p": p, "p_is": p_is, "chance": patient.size / n**2, "chance_is": CHANCE_IS}
        detail |= {"expected": patient.size / n, "alone": alone(patient, name, n)}
        return proportion("attack.own_name", count, n, over="patients", detail=detail, **about)

    def _found(self, taking: Ints) -> tuple[Ints, Ints]:
        """Whose notes, and whose name, among the patients who take part, by their place there; each pair once."""
        place = np.full(self.index.tested.size, -1)
        place[taking] = np.arange(taking.size)
        pairs = place[np.unique(np.concatenate(self._pairs), axis=0)]
        patient, name = pairs[(pairs >= 0).all(axis=1)].T
        return patient, name

    def _other(self, rng: Generator) -> Finding:
        notes = np.bincount(np.concatenate(self._notes), minlength=1)
        n, names = int(notes.sum()), int(self.index.tested.sum())
        detail: dict[str, float | str] = {"names": names, "shuffled_sets": self.index.replicates}
        if not n or not names:
            why = "no released notes" if not n else "no full names to look for"
            return unmeasured("attack.other_names", why, n, source=SOURCE, detail=detail, unit="notes")
        shuffled = self._counts[1:]
        return clustered_share(
            "attack.other_names",
            np.stack([np.bincount(np.concatenate(self._others), minlength=len(notes)), notes], axis=1),
            over="patients",
            chance=float(shuffled.mean() / n),
            source="chance: first names paired with other last names, each part as frequent as before",
            detail={**detail, "chance_most": float(shuffled.max() / n)},
            unit="notes",
            p=permutation_p(self._counts[0], shuffled),
            p_is="against the shuffled sets of names",
            chance_is="names of the same parts, shuffled within each position",
        )
