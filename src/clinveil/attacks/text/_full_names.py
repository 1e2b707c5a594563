"""Full names in released notes: the patient's own against a permutation of names, and other patients' against chance.

A full name stands in a note where all its words are adjacent, in any order and any spelling that shares the lookup
form; of a name of three or more parts, first and last alone count too. Punctuation and numbers between do not part
words. A name of one part cannot be told from a word and is not tested, only counted.

Every window of k adjacent name words gets the sum of its words' random 64-bit codes; equal sums are equal multisets
but for one chance in 2^64, so that names are found by one sorted look-up a window, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.stats import permutation_p, share_by_patient, share_method
from clinveil.stats.findings import proportion, unmeasured
from clinveil.stats.refusals import alone, own_name_p

PERMUTATIONS = 999
REPLICATES = 39
SOURCE = (
    "permutation test, exact where no two finds share a patient or a name (Riordan 1958), else Phipson & Smyth 2010"
)
CHANCE_IS = "own names found where owners are permuted, the mean over all permutations"
Codes = NDArray[np.uint64]
Rows = NDArray[np.int64]


class Forms(NamedTuple):
    """Names as sums of word codes: all of them, and for three or more parts first and last alone (else the same).

    Attributes:
        whole, ends: (n,) codes.
        whole_words, ends_words: (n,) how many words they are.
    """

    whole: Codes
    whole_words: Rows
    ends: Codes
    ends_words: Rows


class Hits(NamedTuple):
    """Names found: the note's place in its batch, the name's row, its replicate (0 is real), and its code."""

    note: Rows
    row: Rows
    replicate: Rows
    code: Codes


@dataclass(frozen=True)
class _Table:
    codes: Codes
    rows: Rows
    replicates: Rows


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
        self.real = Forms(_no_codes(n), _no_rows(n), _no_codes(n), _no_rows(n))
        made = [self._forms(parts, rows, rng) for rows in _by_parts(parts, self.tested)]
        self._tables = _tables([piece for group in made for piece in group])

    def _forms(self, parts: list[list[list[str]]], rows: Rows, rng: Generator) -> list[tuple[Forms, Rows, int]]:
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
            ids.extend([get(word, 0) for word in note])
            ids.append(0)  # no name runs across notes
            lengths.append(len(note) + 1)
        row = np.array(ids, dtype=np.int64)
        note_of = np.repeat(np.arange(len(lengths)), lengths)
        found = [_windows(row, self._codes, size, table, note_of) for size, table in self._tables.items()]
        found.append(Hits(_no_rows(0), _no_rows(0), _no_rows(0), _no_codes(0)))
        return Hits(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _no_rows(n: int) -> Rows:
    return np.zeros(n, dtype=np.int64)


def _no_codes(n: int) -> Codes:
    return np.zeros(n, dtype=np.uint64)


def _by_parts(parts: list[list[list[str]]], tested: NDArray[np.bool_]) -> list[Rows]:
    sizes = np.array([len(name) for name in parts], dtype=np.int64)
    return [np.flatnonzero(tested & (sizes == size)) for size in np.unique(sizes[tested])]


def _sum_forms(codes: Codes, lengths: Rows) -> Forms:
    last = codes.shape[1] - 1
    return Forms(
        codes.sum(axis=1, dtype=np.uint64),
        lengths.sum(axis=1),
        codes[:, 0] + codes[:, last],
        lengths[:, 0] + lengths[:, last],
    )


def _tables(made: list[tuple[Forms, Rows, int]]) -> dict[int, _Table]:
    """All forms by their number of words, sorted by code."""
    if not made:
        return {}
    pieces = [(forms.whole, forms.whole_words, rows, n) for forms, rows, n in made]
    # Of a name of two parts the ends are the whole.
    pieces += [(f.ends, f.ends_words, rows, n) for f, rows, n in made if (f.ends != f.whole).any()]
    codes, sizes, rows = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    replicates = np.concatenate([np.full(len(piece[2]), piece[3]) for piece in pieces])
    tables = {}
    for size in np.unique(sizes[sizes > 1]).tolist():
        places = np.flatnonzero(sizes == size)
        places = places[np.argsort(codes[places], kind="stable")]
        tables[size] = _Table(codes[places], rows[places], replicates[places])
    return tables


def _windows(ids: Rows, codes: Codes, size: int, table: _Table, note_of: Rows) -> Hits:
    """The names of `size` words among the windows of `size` adjacent name words."""
    whole = ids != 0
    starts = np.flatnonzero(whole)
    for shift in range(1, size):
        starts = starts[(starts + shift < ids.size)]
        starts = starts[whole[starts + shift]]
    window = np.zeros(starts.size, dtype=np.uint64)
    for shift in range(size):
        window += codes[ids[starts + shift]]
    low = np.searchsorted(table.codes, window)
    many = np.searchsorted(table.codes, window, side="right") - low
    places = np.repeat(low - np.cumsum(many) + many, many) + np.arange(many.sum())
    return Hits(np.repeat(note_of[starts], many), table.rows[places], table.replicates[places], np.repeat(window, many))


@dataclass
class NameScan:
    """Counts, note by note, of the names found; `findings` at the end.

    Attributes:
        index: the names; rows: row of each source patient id in it.
    """

    index: NameIndex
    rows: Mapping[str, int]
    _patients: dict[str, int] = field(default_factory=dict)
    _notes: list[Rows] = field(default_factory=lambda: [_no_rows(0)])
    _others: list[Rows] = field(default_factory=lambda: [_no_rows(0)])
    _pairs: list[Rows] = field(default_factory=lambda: [_no_rows(0).reshape(0, 2)])
    _counts: Rows = field(init=False)

    def __post_init__(self) -> None:
        self._counts = _no_rows(self.index.replicates + 1)

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

    def _is_own(self, hits: Hits, own: Rows) -> NDArray[np.bool_]:
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
        detail: dict[str, float | str] = {
            "one_part_names": len(present) - len(taking),
            "in_feed": len(self.rows),
            "in_release": len(present),
        }
        if not taking.size:
            why = "no patient with a full name has released notes"
            return unmeasured("attack.own_name", why, source=SOURCE, detail=detail, unit="patients")
        patient, name = self._found(taking)
        count, n = int((patient == name).sum()), int(taking.size)
        p, p_is = own_name_p(patient, name, n, rng, permutations)
        return proportion(
            "attack.own_name",
            count,
            n,
            over="patients",
            chance=patient.size / n**2,  # the mean over all permutations, exactly
            source=SOURCE,
            detail=detail | {"expected": patient.size / n, "alone": alone(patient, name, n)},
            p=p,
            p_is=p_is,
            chance_is=CHANCE_IS,
        )

    def _found(self, taking: Rows) -> tuple[Rows, Rows]:
        """Whose notes, and whose name, among the patients who take part, by their place there; each pair once."""
        place = np.full(self.index.tested.size, -1)
        place[taking] = np.arange(taking.size)
        pairs = place[np.unique(np.concatenate(self._pairs), axis=0)]
        patient, name = pairs[(pairs >= 0).all(axis=1)].T
        return patient, name

    def _other(self, rng: Generator) -> Finding:
        notes = np.bincount(np.concatenate(self._notes), minlength=1)
        names = int(self.index.tested.sum())
        detail: dict[str, float | str] = {"names": names, "shuffled_sets": self.index.replicates}
        n = int(notes.sum())
        if not n or not names:
            why = "no released notes" if not n else "no full names to look for"
            return unmeasured("attack.other_names", why, n, source=SOURCE, detail=detail, unit="notes")
        counts = self._counts
        by_patient = np.stack([np.bincount(np.concatenate(self._others), minlength=len(notes)), notes], axis=1)
        low, high = share_by_patient(by_patient)
        return Finding(
            "attack.other_names",
            counts[0] / n,
            n,
            "lower",
            low,
            high,
            chance=float(counts[1:].mean() / n),
            source="chance: first names paired with other last names, each part as frequent as before",
            detail={**detail, "chance_most": float(counts[1:].max() / n)},
            unit="notes",
            count=int(counts[0]),
            p=permutation_p(counts[0], counts[1:]),
            p_is="against the shuffled sets of names",
            method=share_method(by_patient, "patients"),
            chance_is="names of the same parts, shuffled within each position",
        )
