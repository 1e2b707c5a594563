"""Copy scan: text of training notes, and of other patients' notes, that synthetic notes repeat word
for word.

All three views are exact. Synthetic side: the share of synthetic words in runs of at least 10, 20
or 50 words that occur in a training note. Patients' side: the share of a patient's words in such
runs of the synthetic text, for training and for held-out patients; stock phrases occur in both, so
the difference is the copying due to training, independent of the sizes. Own words: the number of
patients with copied own words, outside stock phrases (`CopiedPatients`); the gates of a synthetic
release judge this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import compress
from math import ceil, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, in_runs, separated
from clinveil.attacks.text._own_copies import (
    CopiedPatients,
    MatchedNotes,
    copied_patients,
    own_run_copies,
    phrase_hashes,
    stock_phrases,
    whole_note_copies,
)
from clinveil.core import (
    Doubles,
    Finding,
    InputError,
    Ints,
    Mask,
    Numbers,
    SmallInts,
    UsageError,
    setting,
    words,
)
from clinveil.corpus import Corpus, rows
from clinveil.stats import (
    HitCounts,
    Interval,
    MeasureSpec,
    bootstrap_clusters,
    permutation_p,
    ratio,
    share_by_patient,
)

PHRASE = 5  # words
# of the limit; the upper limit: 8, 6
LEAST = 4
DEVIATIONS = 4
UPPER_LEAST = 8
UPPER_DEVIATIONS = 6
SHARE = 0.08  # of the own phrases of a patient
Hashes = NDArray[np.uint64]


def near_copies(
    training: MatchedNotes, held_out: MatchedNotes, synthetic: Sequence[SmallInts]
) -> CopiedPatients:
    """Count training and held-out patients with a near copy (`attack.copies_near`)."""
    sides = (training, held_out)
    keys = [phrase_hashes(side.ids, side.offsets, PHRASE) for side in sides]
    stock = stock_phrases(keys, [side.word_owners for side in sides])
    lengths = np.array([note.size for note in synthetic])
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    written = phrase_hashes(np.concatenate(synthetic), offsets, PHRASE)
    pairs = _distinct(written, np.repeat(np.arange(lengths.size), lengths), written != 0)
    counts = list[Ints]()
    own = list[Ints]()
    for side, key, is_stock in zip(sides, keys, stock, strict=True):
        phrases = _distinct(key, side.word_owners, (key != 0) & ~is_stock)
        counts.append(_most_in_one(phrases, pairs, lengths.size, side.patients))
        own.append(np.bincount(phrases[1], minlength=side.patients))
    # Where most patients are copied, their median is no measure of coincidence.
    middle = min(float(np.median(np.concatenate(counts))), float(counts[1].max()))
    limit = ceil(middle + DEVIATIONS * sqrt(middle + 1) + LEAST)
    upper = ceil(middle + UPPER_DEVIATIONS * sqrt(middle + 1) + UPPER_LEAST)
    copied = [
        (n >= upper) | ((n >= limit) & (n >= SHARE * all_own))
        for n, all_own in zip(counts, own, strict=True)
    ]
    numbers = {
        "least_phrases": limit,
        "phrase": PHRASE,
        "most_phrases": int(counts[0].max()),
        "upper": upper,
    }
    return copied_patients(
        "attack.copies_near", limit, copied[0], copied[1], own[0] >= limit, numbers=numbers
    )


def _distinct(keys: Hashes, owners: Ints, which: NDArray[np.bool_]) -> tuple[Hashes, Ints]:
    """Return the distinct pairs of phrase and owner, sorted by phrase."""
    keys = keys[which]
    owners = owners[which]
    order = np.lexsort((owners, keys))
    keys = keys[order]
    owners = owners[order]
    new = np.append(True, (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1]))[: keys.size]
    return keys[new], owners[new]


def _most_in_one(
    phrases: tuple[Hashes, Ints], written: tuple[Hashes, Ints], notes: int, patients: int
) -> Ints:
    """Return the largest number of a patient's own phrases in one synthetic note, (n_patients,)."""
    first = np.searchsorted(written[0], phrases[0], "left")
    last = np.searchsorted(written[0], phrases[0], "right")
    n = last - first
    at = np.arange(n.sum()) + np.repeat(first - np.cumsum(n) + n, n)
    pairs, counts = np.unique(np.repeat(phrases[1], n) * notes + written[1][at], return_counts=True)
    most = np.zeros(patients, dtype=np.int64)
    np.maximum.at(most, pairs // notes, counts)
    return most


UNKNOWN = "<unk>"
SPANS = (10, 20, 50)
PERMUTATIONS = 9_999
_TOKENS = re.compile(r"[^\W_]+")
_NUMBERS = re.compile(r"\d+")
MATCHED = "held-out patients; matched: as many words of training patients as are held out"
TOO_FEW = (
    "fewer training than held-out words: all training words are used, and the control had more"
    " opportunity"
)
EXACT_ENDS = (
    "exact where both shares are 0 or 1, for this number of patients (Clopper-Pearson), 95 %"
)
SOURCE = "copy scan: longest common runs, exact (suffix automaton), against held-out patients"
COPIED_TEXT = MeasureSpec(
    measure="attack.copies",
    over="synthetic notes",
    unit="synthetic words",
    source=SOURCE,
    control_is=MATCHED,
    control_kind="negative",
)


class Copies(Attack):
    """Find runs of words that synthetic notes share with training notes, compared with those of
    held-out patients.
    """

    needs = frozenset({"released", "training", "held_out"})
    span: tuple[int, ...] = setting(SPANS, "Minimum words of a copied run; repeatable.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the scan on corpora. Raises UsageError for a span under 2 words, and the errors of
        `copies`.
        """
        if not self.span or min(self.span) < 2:
            raise UsageError("span requires whole numbers from 2")
        assert context.released is not None
        return copies(context.released, context.training, context.held_out, rng, spans=self.span)


def copies(
    synthetic: Corpus,
    training: Corpus,
    held_out: Corpus,
    rng: Generator,
    *,
    spans: Sequence[int] = SPANS,
) -> list[Finding]:
    """Scan synthetic notes for copies, from both sides, for each length of run.

    If synthetic notes contain `<unk>` for rare words, words that they never use count as `<unk>` on
    all sides, so that a copy with masked rare words still counts as a copy.

    Args:
        synthetic: the notes to share; all are held in memory, about 130 bytes a word.
        training, held_out: patients that the model was trained on, and similar ones; about 50 bytes
            a word.
        spans: lengths of run that count as copied, in words.

    Returns:
        `attack.copies` (share of synthetic words in runs of any training note) and
        `attack.copies_longest`, without a control, because more notes share more stock phrases.
        `attack.copies_matched` and `attack.copies_longest_matched`: the same for a random sample of
        training patients with about as many words as are held out; control: held-out patients.
        `attack.copies_of_patients`: share of training patients' words minus that of held-out ones,
            P over patients.
        `attack.copies_own` by span, `attack.copies_whole`, `attack.copies_near`: `CopiedPatients`.

    Raises:
        InputError: no words on one of the three sides, or a patient in both training and held-out
            notes.
    """
    return scan_copies(synthetic, training, held_out, rng, spans=spans).findings


@dataclass(frozen=True)
class CopyScan:
    """Result of a scan for copies.

    Attributes:
        findings: all findings. own: patients with own words in a run, by its length; whole, near:
            patients with a copied note, and with a near copy.
    """

    findings: list[Finding]
    own: Mapping[int, CopiedPatients]
    whole: CopiedPatients
    near: CopiedPatients


def scan_copies(
    synthetic: Corpus,
    training: Corpus,
    held_out: Corpus,
    rng: Generator,
    *,
    spans: Sequence[int] = SPANS,
) -> CopyScan:
    """Scan like `copies`, and return the counts of patients with the findings."""
    spans = sorted(spans)
    _refuse_shared(training, held_out)
    scan = _scan(synthetic, training, held_out, rng)
    findings = list(scan.longest())
    for span in spans:
        findings += [*scan.text(span), scan.patients(span, rng)]
    own = {span: own_run_copies(scan.trained, scan.held, span) for span in spans}
    whole = whole_note_copies(scan.trained, scan.held)
    near = near_copies(scan.trained, scan.held, scan.notes)
    findings += [patients.finding(scan.numbers) for patients in (*own.values(), whole, near)]
    return CopyScan(findings, own, whole, near)


def _refuse_shared(training: Corpus, held_out: Corpus) -> None:
    """Raise InputError if a patient is on both sides; checked before the scan, which takes
    longer.
    """
    trained = {note.patient_id for note in rows(training)}
    held_ids = {note.patient_id for note in rows(held_out)}
    if shared := len(trained & held_ids):
        raise InputError(
            f"{shared} patients are on both sides", hint="split by patient before training"
        )


def _scan(synthetic: Corpus, training: Corpus, held_out: Corpus, rng: Generator) -> _Scan:
    vocabulary = Vocabulary()
    notes = list[SmallInts]()
    synthetic_keys = set[int]()
    floor = False
    for _, _, text in rows(synthetic):
        notes.append(vocabulary.add(words(text)))
        synthetic_keys.add(_key(text))
        floor = floor or UNKNOWN in text
    lengths = np.array([note.size for note in notes])
    if not lengths.sum():
        raise InputError(
            "the synthetic notes contain no words",
            hint="create notes first: clinveil release --as synthetic",
        )
    number = vocabulary.add
    if floor:
        vocabulary.unk = int(vocabulary.ids(words(UNKNOWN))[0])
        number = vocabulary.ids
    automaton = SuffixAutomaton(separated(notes))
    trained = _side(automaton.fresh(), number, synthetic_keys, training)
    held = _side(automaton.fresh(), number, synthetic_keys, held_out)
    for side, name in ((trained, "training"), (held, "held-out")):
        if not side.ids.size:
            raise InputError(f"the {name} notes contain no words")
    chosen = _matched_sample(trained, held, rng)[trained.owners]
    matched = automaton.fresh()
    for ids in compress(np.split(trained.ids, np.cumsum(trained.lengths)[:-1]), chosen):
        matched.stream(ids)
    numbers = {
        "synthetic_notes": len(notes),
        "training_words": trained.ids.size,
        "held_out_words": held.ids.size,
        "matched_words": int(trained.lengths[chosen].sum()),
    }
    return _Scan(trained, held, matched.runs(), notes, lengths, numbers)


def _key(text: str) -> int:
    """Return a 64-bit hash of the note's words and numbers; other characters are ignored."""
    return int.from_bytes(
        blake2b(" ".join(_TOKENS.findall(text.lower())).encode(), digest_size=8).digest(), "little"
    )


def _side(
    automaton: SuffixAutomaton,
    number: Callable[[Sequence[str]], SmallInts],
    synthetic_keys: AbstractSet[int],
    corpus: Corpus,
) -> MatchedNotes:
    """Stream one side through the automaton of the synthetic notes."""
    numbers_of: dict[str, int] = {}
    ids = [np.zeros(0, dtype=np.int32)]
    matches = [np.zeros(0, dtype=np.int32)]
    columns_of = list[tuple[int, ...]]()
    for _, patient, text in rows(corpus):
        patient_number = numbers_of.setdefault(patient, len(numbers_of))
        key = _key(text)
        ids.append(number(words(text)))
        matches.append(automaton.stream(ids[-1]))
        columns_of.append(
            (ids[-1].size, patient_number, len(_NUMBERS.findall(text)), key in synthetic_keys, key)
        )
    columns = np.array(columns_of, dtype=np.uint64).reshape(-1, 5).T
    lengths, owners, numbers, same = columns[:4].astype(np.int64)
    return MatchedNotes(
        np.concatenate(ids),
        np.concatenate(matches),
        automaton.runs(),
        lengths,
        owners,
        columns[4],
        numbers,
        same > 0,
        len(numbers_of),
    )


def _matched_sample(trained: MatchedNotes, held: MatchedNotes, rng: Generator) -> Mask:
    """Return a mask of random training patients with about as many words as the held-out ones,
    (n_patients,).
    """
    order = rng.permutation(trained.patients)
    reached = np.cumsum(np.bincount(trained.owners, weights=trained.lengths)[order])
    chosen = np.zeros(trained.patients, dtype=np.bool_)
    chosen[order[: int(np.searchsorted(reached, held.ids.size)) + 1]] = True
    return chosen


@dataclass(frozen=True)
class _Scan:
    """Both sides on the same synthetic notes, and the runs of a training sample of the size of the
    held-out side.
    """

    trained: MatchedNotes
    held: MatchedNotes
    matched: SmallInts  # (n_synthetic_words,)
    notes: Sequence[SmallInts]  # synthetic
    lengths: Ints  # words of each synthetic note
    numbers: Numbers

    def longest(self) -> Iterator[Finding]:
        """Yield the longest run: of all training notes, and of a sample of the size of the held-out
        side.
        """
        by_note = np.maximum.reduceat(
            self.trained.runs, np.cumsum(self.lengths + 1) - self.lengths - 1
        )
        longest = float(self.trained.runs.max())
        matched = float(self.matched.max())
        held = float(self.held.runs.max())
        name = "attack.copies_longest"
        n = int(self.lengths.sum())
        why = "no interval is available for a maximum"
        yield Finding(
            name,
            longest,
            n,
            "lower",
            source=SOURCE,
            numbers={
                **self.numbers,
                "median_of_notes": float(np.median(by_note)),
                "held_out": held,
                "matched": matched,
            },
            unit="words",
            why=why,
        )
        yield Finding(
            f"{name}_matched",
            matched,
            n,
            "lower",
            control=held,
            control_is=MATCHED,
            control_kind="negative",
            source=SOURCE,
            numbers=self.numbers,
            unit="words",
            why=why,
            warning=self._warning(),
        )

    def text(self, span: int) -> Iterator[Finding]:
        """Yield the share of synthetic words in runs of `span`, for the same two."""
        trained = self._by_note(in_runs(self.trained.runs, span))
        matched = self._by_note(in_runs(self.matched, span))
        held = self._by_note(in_runs(self.held.runs, span))
        labels = (f"{span} words or more",)
        numbers = {**self.numbers, "span": span}
        yield COPIED_TEXT.share(
            HitCounts.of_clusters(trained),
            labels=labels,
            numbers={**numbers, "held_out": ratio(held), "matched": ratio(matched)},
        )
        sampled = replace(COPIED_TEXT, measure="attack.copies_matched").share(
            HitCounts.of_clusters(matched, control=ratio(held)), labels=labels, numbers=numbers
        )
        yield replace(sampled, warning=self._warning())

    def _warning(self) -> str:
        return TOO_FEW if self.trained.ids.size < self.held.ids.size else ""

    def _by_note(self, covered: Mask) -> Ints:
        """Return the covered words and all words of each synthetic note, (n_notes, 2)."""
        starts = np.concatenate([[0], np.cumsum(self.lengths + 1)])
        before = np.concatenate([[0], np.cumsum(covered)])
        return np.stack([before[starts[1:]] - before[starts[:-1]], self.lengths], axis=1)

    def patients(self, span: int, rng: Generator) -> Finding:
        """Return the share of training patients' words that was copied, minus that of the held-out
        ones.
        """
        trained = self.trained.shared(span)
        held = self.held.shared(span)
        value, (low, high), p = _difference(trained, held, rng)
        numbers = {
            **self.numbers,
            "span": span,
            "patients": len(trained),
            "held_out_patients": len(held),
            "training_share": ratio(trained),
            "held_out_share": ratio(held),
        }
        return Finding(
            "attack.copies_of_patients",
            value,
            len(trained) + len(held),
            "lower",
            low,
            high,
            chance=0.0,
            source=SOURCE,
            labels=(f"{span} words or more",),
            numbers=numbers,
            unit="patients",
            p=p,
            p_is="patients permuted between the sides, one-sided",
            method=EXACT_ENDS if _extreme(trained, held) else "bootstrap over patients, 95 %",
            chance_is="training patients copied as much as held-out patients",
        )


def _difference(trained: Ints, held: Ints, rng: Generator) -> tuple[float, Interval, float]:
    """Return the share of the trained minus that of the others: value, interval, and P with
    patients permuted.
    """
    shared = np.concatenate([trained, held])
    member = np.arange(len(shared)) < len(trained)
    marked = np.column_stack([shared, member])

    def gap(rows: Ints) -> float:
        return ratio(rows[rows[:, 2] == 1]) - ratio(rows[rows[:, 2] == 0])

    permuted = np.array([rng.permutation(member) @ shared for _ in range(PERMUTATIONS)])
    draws = _shares(permuted) - _shares(shared.sum(axis=0) - permuted)
    if _extreme(trained, held):
        # For shares of 0 or 1 only one end of each exact interval is uncertain, 2.5 % each.
        low, high = share_by_patient(trained)
        held_low, held_high = share_by_patient(held)
        ends = Interval(low - held_high, high - held_low)
    else:
        ends = bootstrap_clusters(marked, gap, rng)
    return gap(marked), ends, permutation_p(gap(marked), draws)


def _extreme(trained: Ints, held: Ints) -> bool:
    """Return whether both shares are 0 or 1; a bootstrap of their difference would have no
    width.
    """
    return ratio(trained) in (0.0, 1.0) and ratio(held) in (0.0, 1.0)


def _shares(counts: Ints) -> Doubles:
    """Return the first column divided by the second, (n,); NaN for no data, as in `ratio`."""
    return np.divide(
        counts[:, 0], counts[:, 1], out=np.full(len(counts), np.nan), where=counts[:, 1] > 0
    )
