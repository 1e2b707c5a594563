"""Patients of whom words of their own stand in synthetic notes: long runs, and notes copied whole.

A word of a note is the patient's own unless it lies in a stock phrase: a piece of 20 words or more that three patients
of either side hold (a note may stand under two), or, of a training patient, one that a held-out note holds. Whatever
long stock phrases are in the notes, they are then no copies, and what is copied shows at any size of the release. A
patient counts as copied by a run of the synthetic text with `span` own words, or by a whole note with 20 of them; of a
note that is a synthetic one, word for word and number for number, its numbers count as words.

Held-out patients, of whom the generator knew nothing, say how often that comes by chance. Where it came for none of
them one patient is too many: that is a rule and no test. Where it did, Fisher's exact test at 0.01 decides, within a
cap (`allowed`). What is own is at most as much for a training patient as for a held-out one, so the test keeps its
level. Shorter runs, and short notes that are synthetic ones, come by chance more easily: there is the test alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.suffix_automaton import in_runs
from clinveil.attacks.threats import tagged
from clinveil.core.finding import Finding
from clinveil.core.types import Ints, Mask, SmallInts
from clinveil.stats import hypergeometric_tail
from clinveil.stats.findings import proportion
from clinveil.stats.refusals import allowed, copies_refused_from

PIECE = 20  # words of a stock phrase, of a note that can be copied whole, and of one's own in it
SHORT = 5  # words and numbers of a note that is compared as one
HOLDERS = 2  # patients of one side who may hold a piece that is still their own
SOURCE = (
    "own words in runs shared with synthetic notes, exact (suffix automaton); Fisher 1935 against held-out patients"
)
CONTROL_IS = "held-out patients, their own words sought in the same way"
P_IS = "Fisher's exact test against held-out patients, one-sided"


@dataclass(frozen=True)
class Notes:
    """The notes of one side, one after another."""

    ids: SmallInts  # (n_words,)
    matches: SmallInts  # (n_words,) the longest run ending there that the synthetic text holds
    runs: SmallInts  # (n_synthetic_words,) the longest run ending there that these notes hold
    lengths: Ints  # (n_notes,) words
    owners: Ints  # (n_notes,) the row of the patient
    keys: NDArray[np.uint64]  # (n_notes,) a hash of the note's words and numbers
    numbers: Ints  # (n_notes,) how many numbers
    written: Mask  # (n_notes,) whether a synthetic note has the same hash
    patients: int

    @property
    def word_owners(self) -> Ints:
        """(n_words,) the patient of each word."""
        return np.repeat(self.owners, self.lengths)

    @property
    def place(self) -> Ints:
        """(n_words,) the place of each word in its note, from 0."""
        return np.arange(self.ids.size) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)

    def shared(self, span: int) -> Ints:
        """(n_patients, 2): the words of each patient that stand in runs of `span` of the synthetic text, and all."""
        copied = np.bincount(self.word_owners[in_runs(self.matches, span)], minlength=self.patients)
        return np.stack([copied, np.bincount(self.word_owners, minlength=self.patients)], axis=1)


@dataclass(frozen=True)
class Own:
    """What is each patient's own, and how much of it was copied; (n_patients,) each."""

    run: Ints  # the most own words in one run of the synthetic text
    note: Ints  # the most own words in one note: what a copy of all that the patient has would show
    tokens: Ints  # the same, with the numbers of a note that is nobody else's
    whole: Ints  # the most of these in one note that stands in the synthetic text whole
    long: Ints  # words and numbers of the longest note that is the patient's own as a whole
    same: Ints  # words and numbers of the longest of these that is a synthetic note


def _own_copies(training: Notes, held_out: Notes, piece: int = PIECE) -> tuple[Own, Own]:
    """Both sides. `piece`: how many words a stock phrase has at least."""
    sides = (training, held_out)
    stock = _stock([_pieces(side, piece) for side in sides], [side.word_owners for side in sides])
    known = _stock([side.keys for side in sides], [side.owners for side in sides])
    return _own(training, stock[0], known[0], piece), _own(held_out, stock[1], known[1], piece)


def _pieces(notes: Notes, piece: int) -> NDArray[np.uint64]:
    """(n_words,) a 64-bit hash of the `piece` words that end at each word, 0 where the note has not so many yet."""
    mixed = (notes.ids.astype(np.int64) + 3).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    found = np.zeros_like(mixed)
    # Of the words before, each times its power of an odd number, modulo 2^64.
    for back in range(min(piece, mixed.size)):
        found[back:] += mixed[: mixed.size - back] * np.uint64(pow(0x94D049BB133111EB, back, 2**64))
    found[notes.place < piece - 1] = 0
    return found


def _stock(keys: list[NDArray[np.uint64]], owners: list[Ints]) -> list[Mask]:
    """For each side whether a key is stock to it; 0 never is.

    To held-out patients what three patients hold; to training patients what any held-out one holds too. So a training
    patient never has more of their own than a held-out one in their place.
    """
    every = np.concatenate(keys)
    held_out = np.repeat([0, 1], [part.size for part in keys])
    owner = np.concatenate(owners)
    order = np.lexsort((owner, held_out, every))
    every, held_out, owner = every[order], held_out[order], owner[order]
    same = np.append(False, (every[1:] == every[:-1]) & (held_out[1:] == held_out[:-1]) & (owner[1:] == owner[:-1]))
    kind = np.cumsum(np.append(False, every[1:] != every[:-1]))
    holders = np.stack([np.bincount(kind[~same & (held_out == side)], minlength=kind[-1] + 1) for side in (0, 1)])
    at = np.empty(order.size, dtype=np.int64)
    at[order] = kind
    of_three = holders.sum(axis=0) > HOLDERS
    split = np.split(at, [keys[0].size])
    return [(of_three | (holders[1] > 0))[split[0]] & (keys[0] != 0), of_three[split[1]] & (keys[1] != 0)]


def _own(notes: Notes, stock: Mask, known: Mask, piece: int) -> Own:
    own = ~in_runs(np.where(stock, piece, 0).astype(np.int32), piece)
    before = np.concatenate([[0], np.cumsum(own)])
    ends = np.arange(1, own.size + 1)
    in_run = before[ends] - before[ends - notes.matches]
    last = np.cumsum(notes.lengths)
    in_note = before[last] - before[last - notes.lengths]
    whole = np.where((notes.matches[last - 1] >= notes.lengths) & (notes.lengths >= PIECE), in_note, 0)
    tokens = in_note + np.where(known, 0, notes.numbers)
    alone = np.where(known, 0, notes.lengths + notes.numbers)
    same = notes.written & ~known
    by_note = (in_note, tokens, np.maximum(whole, tokens * same), alone, alone * same)
    run = _most(notes.word_owners, in_run, notes.patients)
    return Own(run, *(_most(notes.owners, values, notes.patients) for values in by_note))


def _most(owners: Ints, values: Ints, patients: int) -> Ints:
    most = np.zeros(patients, dtype=np.int64)
    np.maximum.at(most, owners, values)
    return most


def own_findings(training: Notes, held_out: Notes, spans: Sequence[int], detail: dict[str, Any]) -> Iterator[Finding]:
    """`attack.copies_own` by span and `attack.copies_whole`; control: held-out patients.

    The share of training patients with `span` own words in one run of the synthetic text, and of those of whom a whole
    note stands in it.
    """
    for span in spans:
        # A phrase shorter than the run asked for can be stock too.
        seen, other = _own_copies(training, held_out, min(PIECE, span))
        more = {**detail, "span": span, "most_own_words": int(seen.run.max())}
        yield _finding("attack.copies_own", seen.run >= span, other.run >= span, seen.note >= span, more)
    seen, other = _own_copies(training, held_out)
    same = {"same_copied": seen.same, "same_held_out_copied": other.same, "same_visible": seen.long}
    short = {name: int((longest >= SHORT).sum()) for name, longest in same.items()}
    more = {**detail, "least_words": PIECE, "least_same": SHORT, **short}
    yield _finding("attack.copies_whole", seen.whole >= PIECE, other.whole >= PIECE, seen.tokens >= PIECE, more)


def _finding(measure: str, copied: Mask, by_chance: Mask, visible: Mask, detail: dict[str, Any]) -> Finding:
    n, others, seen = copied.size, by_chance.size, int(visible.sum())
    count, chance = int(copied.sum()), int(by_chance.sum())
    may = allowed(n, others, chance)
    more = {**detail, "held_out_patients": others, "held_out_copied": chance, "allowed": may}
    more |= {"visible": seen, "refused_from": copies_refused_from(n, seen, may)}
    about: dict[str, Any] = {"control": chance / others, "control_is": CONTROL_IS, "control_kind": "negative"}
    about |= {"p": hypergeometric_tail(count, n + others, count + chance, n), "p_is": P_IS, "source": SOURCE}
    return tagged(proportion(measure, count, n, over="patients", detail=more, **about), "recipient", "copies")
