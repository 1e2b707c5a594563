"""Own words of patients in synthetic notes: long runs, and complete notes.

A word of a note is the patient's own unless it belongs to a stock phrase. A stock phrase has at
least 20 words and occurs in notes of three patients of either side (a note may belong to two), or,
for a training patient, in any held-out note. Stock phrases, however long, are therefore not copies,
and copying is detectable at any size of the release. A patient counts as copied by a run of the
synthetic text with `span` own words, or by a complete note with 20 of them. In a note that equals a
synthetic note word for word and number for number, numbers count as words.

Held-out patients, unknown to the generator, show how often this happens by chance. If it happens
for none of them, one
training patient is too many: a rule, not a test. Otherwise Fisher's exact test at 0.01 decides, up
to a maximum (`allowed`). A training patient never has more own words than a held-out one would
have, so the test keeps its level. Shorter runs, and short notes equal to synthetic ones, happen by
chance more easily and are judged by the test alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.suffix_automaton import in_runs
from clinveil.attacks.threats import tagged
from clinveil.core import NO_NUMBERS, Finding, Ints, Mask, Numbers, SmallInts
from clinveil.stats import HitCounts, MeasureSpec, allowed, copies_refused_from, hypergeometric_tail

MIN_PHRASE = 20  # words of a stock phrase, of a note that counts as copied, and of own words in it
MIN_SAME = 5  # minimum words and numbers of a note that is compared as a unit
MAX_HOLDERS = 2  # maximum patients of one side with a phrase that is still their own
SOURCE = (
    "own words in runs shared with synthetic notes, exact (suffix automaton); "
    "Fisher 1935 against held-out patients"
)
CONTROL_IS = "held-out patients, with the same search for their own words"
P_IS = "Fisher's exact test against held-out patients, one-sided"


@dataclass(frozen=True)
class MatchedNotes:
    """The notes of one side, concatenated."""

    ids: SmallInts  # (n_words,)
    matches: SmallInts  # (n_words,) the longest run ending there that occurs in the synthetic text
    runs: SmallInts  # (n_synthetic_words,) the longest run ending there that occurs in these notes
    lengths: Ints  # (n_notes,) words
    owners: Ints  # (n_notes,) the row of the patient
    keys: NDArray[np.uint64]  # (n_notes,) a hash of the note's words and numbers
    numbers: Ints  # (n_notes,) number of numbers
    is_synthetic: Mask  # (n_notes,) whether a synthetic note has the same hash
    patients: int

    @property
    def word_owners(self) -> Ints:
        """Return the patient of each word, (n_words,)."""
        return np.repeat(self.owners, self.lengths)

    @property
    def offsets(self) -> Ints:
        """Return the offset of each word in its note, (n_words,)."""
        return np.arange(self.ids.size) - np.repeat(
            np.cumsum(self.lengths) - self.lengths, self.lengths
        )

    def shared(self, span: int) -> Ints:
        """Return the words of each patient in runs of `span` of the synthetic text, and all words,
        (n_patients, 2).
        """
        copied = np.bincount(self.word_owners[in_runs(self.matches, span)], minlength=self.patients)
        return np.stack([copied, np.bincount(self.word_owners, minlength=self.patients)], axis=1)


@dataclass(frozen=True)
class OwnWords:
    """Each patient's own words, and how many of them were copied; arrays of (n_patients,)."""

    run: Ints  # maximum own words in one run of the synthetic text
    note: (
        Ints  # maximum own words in one note: the result if all of the patient's notes were copied
    )
    tokens: Ints  # the same, including numbers of a note that no other patient has
    whole: Ints  # maximum of these in one note that occurs in the synthetic text as a unit
    long: Ints  # words and numbers of the longest note that only this patient has
    same: Ints  # words and numbers of the longest of these that equals a synthetic note


def _both_sides(
    training: MatchedNotes, held_out: MatchedNotes, phrase: int = MIN_PHRASE
) -> tuple[OwnWords, OwnWords]:
    """Compute both sides. `piece`: minimum words of a stock phrase."""
    sides = (training, held_out)
    is_stock = stock_phrases(
        [phrase_hashes(side.ids, side.offsets, phrase) for side in sides],
        [side.word_owners for side in sides],
    )
    is_shared = stock_phrases([side.keys for side in sides], [side.owners for side in sides])
    return _own_words(training, is_stock[0], is_shared[0], phrase), _own_words(
        held_out, is_stock[1], is_shared[1], phrase
    )


def phrase_hashes(ids: SmallInts, offsets: Ints, phrase: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the `phrase` words that end at each word, (n_words,); 0 near the
    start of a note.
    """
    mixed = (ids.astype(np.int64) + 3).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    found = np.zeros_like(mixed)
    # Each preceding word times its power of an odd number, modulo 2^64.
    for back in range(min(phrase, mixed.size)):
        found[back:] += mixed[: mixed.size - back] * np.uint64(pow(0x94D049BB133111EB, back, 2**64))
    found[offsets < phrase - 1] = 0
    return found


def stock_phrases(keys: list[NDArray[np.uint64]], owners: list[Ints]) -> list[Mask]:
    """Return, for each side, whether a key is a stock phrase; 0 never is.

    For held-out patients: keys of three patients. For training patients: also keys of any held-out
    patient. So a training patient never has more own words than a held-out patient in their place
    would have.
    """
    all_keys = np.concatenate(keys)
    held_out = np.repeat([0, 1], [part.size for part in keys])
    owner = np.concatenate(owners)
    order = np.lexsort((owner, held_out, all_keys))
    all_keys = all_keys[order]
    held_out = held_out[order]
    owner = owner[order]
    same = np.append(
        False,
        (all_keys[1:] == all_keys[:-1])
        & (held_out[1:] == held_out[:-1])
        & (owner[1:] == owner[:-1]),
    )
    kind = np.cumsum(np.append(False, all_keys[1:] != all_keys[:-1]))
    holders = np.stack(
        [np.bincount(kind[~same & (held_out == side)], minlength=kind[-1] + 1) for side in (0, 1)]
    )
    group = np.empty(order.size, dtype=np.int64)
    group[order] = kind
    many_holders = holders.sum(axis=0) > MAX_HOLDERS
    split = np.split(group, [keys[0].size])
    return [
        (many_holders | (holders[1] > 0))[split[0]] & (keys[0] != 0),
        many_holders[split[1]] & (keys[1] != 0),
    ]


def _own_words(notes: MatchedNotes, is_stock: Mask, is_shared: Mask, phrase: int) -> OwnWords:
    own = ~in_runs(np.where(is_stock, phrase, 0).astype(np.int32), phrase)
    cumulative = np.concatenate([[0], np.cumsum(own)])
    ends = np.arange(1, own.size + 1)
    in_run = cumulative[ends] - cumulative[ends - notes.matches]
    last = np.cumsum(notes.lengths)
    in_note = cumulative[last] - cumulative[last - notes.lengths]
    whole = np.where(
        (notes.matches[last - 1] >= notes.lengths) & (notes.lengths >= MIN_PHRASE), in_note, 0
    )
    tokens = in_note + np.where(is_shared, 0, notes.numbers)
    alone = np.where(is_shared, 0, notes.lengths + notes.numbers)
    same = notes.is_synthetic & ~is_shared
    by_note = (in_note, tokens, np.maximum(whole, tokens * same), alone, alone * same)
    run = _maximum(notes.word_owners, in_run, notes.patients)
    return OwnWords(run, *(_maximum(notes.owners, values, notes.patients) for values in by_note))


def _maximum(owners: Ints, values: Ints, patients: int) -> Ints:
    most = np.zeros(patients, dtype=np.int64)
    np.maximum.at(most, owners, values)
    return most


@dataclass(frozen=True, slots=True)
class CopiedPatients:
    """How many patients have copied own words, of one kind of copy.

    Attributes:
        measure: name of its finding. least: own words (or phrases) from which a patient counts as
            copied.
        copied, patients: training patients copied, and all. by_chance, held_out: the same of
            held-out patients.
        visible: training patients with enough own words to be detected.
        whole_notes: the same counts for notes that equal a synthetic note; None without them.
        labels, numbers: of the finding.
    """

    measure: str
    least: int
    copied: int
    patients: int
    by_chance: int
    held_out: int
    visible: int
    whole_notes: CopiedPatients | None = None
    labels: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=dict)

    @property
    def allowed(self) -> int:
        """Return the number of copied training patients that is not refused without a test."""
        return allowed(self.patients, self.held_out, self.by_chance)

    @property
    def refused_from(self) -> int | None:
        """Return the number of copied patients that is refused with 95 % probability; None if no
        number is.
        """
        return copies_refused_from(self.patients, self.visible, self.allowed)

    def finding(self, scan: Numbers = NO_NUMBERS) -> Finding:
        """Return the share of copied training patients; control: held-out ones.

        Args:
            scan: numbers that all findings of a scan share.
        """
        spec = MeasureSpec(
            measure=self.measure,
            over="patients",
            source=SOURCE,
            control_is=CONTROL_IS,
            control_kind="negative",
            p_is=P_IS,
        )
        control = self.by_chance / self.held_out
        both = self.patients + self.held_out
        p = hypergeometric_tail(self.copied, both, self.copied + self.by_chance, self.patients)
        numbers = {
            **scan,
            **self.numbers,
            "held_out_patients": self.held_out,
            "held_out_copied": self.by_chance,
            "allowed": self.allowed,
            "visible": self.visible,
            "refused_from": self.refused_from,
        }
        counts = HitCounts(hits=self.copied, tries=self.patients, control=control)
        finding = spec.share(counts, p=p, labels=self.labels, numbers=numbers)
        return tagged(finding, "recipient", "copies")


def own_run_copies(training: MatchedNotes, held_out: MatchedNotes, span: int) -> CopiedPatients:
    """Count patients with `span` own words in one run of the synthetic text
    (`attack.copies_own`).
    """
    # A phrase shorter than the requested run can also be a stock phrase.
    trained, held = _both_sides(training, held_out, min(MIN_PHRASE, span))
    return copied_patients(
        "attack.copies_own",
        span,
        trained.run >= span,
        held.run >= span,
        trained.note >= span,
        labels=(f"{span} words or more",),
        numbers={"span": span, "most_own_words": int(trained.run.max())},
    )


def whole_note_copies(training: MatchedNotes, held_out: MatchedNotes) -> CopiedPatients:
    """Count patients with a complete note in the synthetic text (`attack.copies_whole`)."""
    trained, held = _both_sides(training, held_out)
    same = copied_patients(
        "attack.copies_whole",
        MIN_SAME,
        trained.same >= MIN_SAME,
        held.same >= MIN_SAME,
        trained.long >= MIN_SAME,
    )
    numbers = {
        "least_words": MIN_PHRASE,
        "least_same": MIN_SAME,
        "same_copied": same.copied,
        "same_held_out_copied": same.by_chance,
        "same_visible": same.visible,
    }
    return copied_patients(
        "attack.copies_whole",
        MIN_PHRASE,
        trained.whole >= MIN_PHRASE,
        held.whole >= MIN_PHRASE,
        trained.tokens >= MIN_PHRASE,
        whole_notes=same,
        numbers=numbers,
    )


def copied_patients(
    measure: str,
    least: int,
    copied: Mask,
    by_chance: Mask,
    visible: Mask,
    *,
    whole_notes: CopiedPatients | None = None,
    labels: tuple[str, ...] = (),
    numbers: Numbers = NO_NUMBERS,
) -> CopiedPatients:
    """Count copied patients.

    Args:
        copied, by_chance: of the training and the held-out patients. visible: training patients
            with enough own words. The others are fields of `CopiedPatients`.
    """
    return CopiedPatients(
        measure=measure,
        least=least,
        copied=int(copied.sum()),
        patients=copied.size,
        by_chance=int(by_chance.sum()),
        held_out=by_chance.size,
        visible=int(visible.sum()),
        whole_notes=whole_notes,
        labels=labels,
        numbers=numbers,
    )
