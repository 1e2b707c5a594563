"""Copy scan: what synthetic notes repeat of the training notes, word for word, and what of other patients' notes.

Three views, all exact. From the synthetic side: the share of its words that stand in runs of at least 10, 20 or 50
words which some training note holds. From the patients' side: the share of a patient's words that stand in such runs of
the synthetic text, for patients trained on and for held-out patients alike; the difference is the copying that training
did, whatever the sizes of the sets. Stock phrases are in both. And of how many patients words of their own, in no stock
phrase, were copied (`own_copies`): what the gates of `clinveil synthesize` go by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, in_runs, separated
from clinveil.attacks.text._own_copies import PIECE, Notes, own_copies, runs_finding, whole_finding
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints, Mask, SmallInts
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows
from clinveil.stats import Interval, bootstrap_clusters, permutation_p, ratio, share_by_patient, share_method

UNKNOWN = "<unk>"
SPANS = (10, 20, 50)
PERMUTATIONS = 9_999
_TOKENS, _NUMBERS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
MATCHED = "held-out patients; matched: about as many words of training patients as were held out"
FEW = "fewer training than held-out words: all of them are taken, and the control had the better chance"
SOURCE = "copy scan: longest common runs, exact (suffix automaton), against held-out patients"


@attacks.register("copies")
class Copies(Attack):
    """Find runs of words that synthetic notes share with training notes, beside those shared with other patients."""

    needs = frozenset({"released", "training", "held_out"})
    words = words_beside(__file__)
    span: tuple[int, ...] = flag(SPANS, "Words in a row that count as copied; repeatable.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Of corpora. Raises UsageError for a span under 2 words, and as `copies` does."""
        if not self.span or min(self.span) < 2:
            raise UsageError("--span takes whole numbers from 2")
        assert context.released is not None
        return copies(context.released, context.training, context.held_out, rng, spans=self.span)


@dataclass(frozen=True)
class _Side:
    """One set of patients: the run that ends at each synthetic word, and what each patient has in the synthetic text.

    Attributes:
        runs: (n_synthetic_words,). shared: (n_patients, n_spans + 1), words in long runs, and all words.
        notes: the words themselves, by id.
    """

    runs: SmallInts
    shared: Ints
    notes: Notes = field(repr=False)

    @property
    def words(self) -> int:
        """How many there are in all."""
        return int(self.shared[:, -1].sum())


def copies(
    synthetic: Corpus, training: Corpus, held_out: Corpus, rng: Generator, *, spans: Sequence[int] = SPANS
) -> list[Finding]:
    """The copy scan of synthetic notes, by both sides, for each length of run.

    Where the synthetic notes write `<unk>` for rare words, words that they never use count as `<unk>` on all sides: a
    copy stays one with its rarest words blotted out.

    Args:
        synthetic: the notes to share; all are held in memory, about 130 bytes a word.
        training, held_out: the patients the model saw, and others like them; about 50 bytes a word.
        spans: lengths of run that count as copied, in words.

    Returns:
        `attack.copies` (share of synthetic words in runs of any training note) and `attack.copies_longest`: no control
        beside them, for more notes share more stock phrases. `attack.copies_matched` and
        `attack.copies_longest_matched`: the same of about as many words of training patients, drawn at random, as were
        held out; control: held-out patients. `attack.copies_of_patients`: share of training patients' words less that
        of held-out ones (both in the detail), chance 0, interval and permutation P over patients.
        `attack.copies_own` by span and `attack.copies_whole`: the share of training patients of whom a run of own
        words, or a whole note, was copied; control: held-out patients.

    Raises:
        InputError: no words on one of the three sides, or a patient both trained on and held out.
    """
    spans = tuple(sorted(spans))
    _refuse_shared(training, held_out)
    scan = _scan(synthetic, training, held_out, spans, rng)
    found = list(scan.longest())
    for place, span in enumerate(spans):
        found += [*scan.text(span), scan.patients(place, span)]
    return [*found, *scan.own(spans)]


def _scan(synthetic: Corpus, training: Corpus, held_out: Corpus, spans: tuple[int, ...], rng: Generator) -> _Scan:
    vocabulary, notes, written, floor = Vocabulary(), list[SmallInts](), set[int](), False
    for _, _, text in rows(synthetic):
        notes.append(vocabulary.add(words(text)))
        written.add(_key(text))
        floor = floor or UNKNOWN in text
    lengths = np.array([note.size for note in notes])
    if not lengths.sum():
        raise InputError("the synthetic notes hold no word", remedy="synthesize some first")
    number = vocabulary.add
    if floor:
        vocabulary.unk, number = int(vocabulary.ids(words(UNKNOWN))[0]), vocabulary.ids
    automaton = SuffixAutomaton(separated(notes))
    seen, other = (_side(automaton.fresh(), number, written, side, spans) for side in (training, held_out))
    for one, name in ((seen, "training"), (other, "held-out")):
        if not one.words:
            raise InputError(f"the {name} notes hold no word")
    matched = _some(automaton.fresh(), seen, _as_many(seen, other, rng))
    detail: dict[str, Any] = {"synthetic_notes": len(notes), "training_words": seen.words}
    detail |= {"held_out_words": other.words, "matched_words": matched.words}
    return _Scan(seen, other, matched, lengths, detail, rng)


def _refuse_shared(training: Corpus, held_out: Corpus) -> None:
    """Raise InputError where a patient stands on both sides; before the scan, which takes longer."""
    seen, kept = ({note.patient_id for note in rows(side)} for side in (training, held_out))
    if both := len(seen & kept):
        raise InputError(f"{both} patients stand on both sides", remedy="split by patient before training")


def _key(text: str) -> int:
    """A hash of the note's words and numbers, 64 bits: of what is written between them it knows nothing."""
    return int.from_bytes(blake2b(" ".join(_TOKENS.findall(text.lower())).encode(), digest_size=8).digest(), "little")


def _side(
    automaton: SuffixAutomaton,
    number: Callable[[Sequence[str]], SmallInts],
    written: AbstractSet[int],
    corpus: Corpus,
    spans: tuple[int, ...],
) -> _Side:
    """One side, streamed through the automaton of the synthetic notes."""
    places: dict[str, int] = {}
    shared: list[Ints] = []
    ids, matches, about = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)], list[tuple[int, ...]]()
    for _, patient, text in rows(corpus):
        place = places.setdefault(patient, len(places))
        if place == len(shared):
            shared.append(np.zeros(len(spans) + 1, dtype=np.int64))
        ids.append(number(words(text)))
        matches.append(automaton.stream(ids[-1]))
        shared[place] += [*(int(in_runs(matches[-1], span).sum()) for span in spans), ids[-1].size]
        key = _key(text)
        about.append((ids[-1].size, place, len(_NUMBERS.findall(text)), key in written, key))
    lengths, owners, numbers, same, keys = zip(*about, strict=True) if about else ((),) * 5
    notes = Notes(
        np.concatenate(ids),
        np.concatenate(matches),
        np.array(lengths, dtype=np.int64),
        np.array(owners, dtype=np.int64),
        np.array(keys, dtype=np.uint64),
        np.array(numbers, dtype=np.int64),
        np.array(same, dtype=np.bool_),
        len(places),
    )
    return _Side(automaton.runs(), np.array(shared, dtype=np.int64).reshape(-1, len(spans) + 1), notes)


def _some(automaton: SuffixAutomaton, side: _Side, chosen: Mask) -> _Side:
    """Some of the patients of a side."""
    notes = np.split(side.notes.ids, np.cumsum(side.notes.lengths)[:-1])
    for ids, owner in zip(notes, side.notes.owners, strict=True):
        if chosen[owner]:
            automaton.stream(ids)
    return _Side(automaton.runs(), side.shared * chosen[:, None], side.notes)


def _as_many(seen: _Side, other: _Side, rng: Generator) -> Mask:
    """Training patients, at random, with about as many words as the held-out ones have."""
    order = rng.permutation(len(seen.shared))
    reached = np.cumsum(seen.shared[order, -1])
    chosen = np.zeros(len(seen.shared), dtype=np.bool_)
    chosen[order[: int(np.searchsorted(reached, other.words)) + 1]] = True
    return chosen


def _by_note(covered: Mask, lengths: Ints) -> Ints:
    """(n_notes, 2): the words of each synthetic note that are covered, and all."""
    starts = np.concatenate([[0], np.cumsum(lengths + 1)])
    before = np.concatenate([[0], np.cumsum(covered)])
    return np.stack([before[starts[1:]] - before[starts[:-1]], lengths], axis=1)


@dataclass(frozen=True)
class _Scan:
    """The three streams over the same synthetic notes: all training patients, as many words of them, the held-out."""

    seen: _Side
    other: _Side
    matched: _Side
    lengths: Ints
    detail: dict[str, Any]
    rng: Generator

    def longest(self) -> Iterator[Finding]:
        """The longest run: of all training notes, and of as many words as were held out."""
        ends = np.concatenate([[0], np.cumsum(self.lengths + 1)[:-1]])
        by_note = np.maximum.reduceat(self.seen.runs, ends)
        matched, other = float(self.matched.runs.max()), float(self.other.runs.max())
        more = {**self.detail, "why": "a maximum has no interval here"}
        n, own = int(self.lengths.sum()), {"median_of_notes": float(np.median(by_note)), "held_out": other}
        longest, detail = float(self.seen.runs.max()), {**more, **own, "matched": matched}
        yield Finding("attack.copies_longest", longest, n, "lower", source=SOURCE, detail=detail, unit="words")
        yield Finding(
            "attack.copies_longest_matched",
            matched,
            n,
            "lower",
            source=SOURCE,
            detail={**more, **self._few()},
            unit="words",
            **_held_out(other),
        )

    def text(self, span: int) -> Iterator[Finding]:
        """The share of synthetic words in runs of `span`: the same two."""
        sides = (self.seen, self.matched, self.other)
        seen, matched, other = (_by_note(in_runs(side.runs, span), self.lengths) for side in sides)
        detail = {**self.detail, "span": span}
        own = {"held_out": ratio(other), "matched": ratio(matched)}
        yield self._share("attack.copies", seen, {**detail, **own})
        yield self._share("attack.copies_matched", matched, {**detail, **self._few()}, **_held_out(ratio(other)))

    def _few(self) -> dict[str, str]:
        return {"warning": FEW} if self.detail["training_words"] < self.detail["held_out_words"] else {}

    def _share(self, measure: str, counts: Ints, detail: dict[str, Any], **control: Any) -> Finding:
        return Finding(
            measure,
            ratio(counts),
            int(counts[:, 1].sum()),
            "lower",
            *share_by_patient(counts),
            source=SOURCE,
            detail=detail,
            unit="synthetic words",
            count=int(counts[:, 0].sum()),
            method=share_method(counts, "synthetic notes"),
            **control,
        )

    def patients(self, place: int, span: int) -> Finding:
        """The share of training patients' words that was copied, less that of the held-out ones; column `place`."""
        seen, other = (side.shared[:, [place, -1]] for side in (self.seen, self.other))
        value, (low, high), p = _difference(seen, other, self.rng)
        detail = {**self.detail, "span": span, "patients": len(seen), "held_out_patients": len(other)}
        return Finding(
            "attack.copies_of_patients",
            value,
            len(seen) + len(other),
            "lower",
            low,
            high,
            0.0,
            source=SOURCE,
            detail=detail | {"training_share": ratio(seen), "held_out_share": ratio(other)},
            unit="patients",
            p=p,
            p_is="patients dealt out anew, one-sided",
            method=_difference_method(seen, other),
            chance_is="training patients copied as much as held-out ones",
        )

    def own(self, spans: Sequence[int]) -> Iterator[Finding]:
        """Patients of whom words of their own were copied: in runs of each span, and in whole notes."""
        for span in spans:
            # A phrase shorter than the run asked for can be stock too.
            own = own_copies(self.seen.notes, self.other.notes, min(PIECE, span))
            yield runs_finding(*own, span, self.detail)
        yield whole_finding(*own_copies(self.seen.notes, self.other.notes), self.detail)


def _held_out(value: float) -> dict[str, Any]:
    return {"control": value, "control_is": MATCHED, "control_kind": "negative"}


def _difference(seen: Ints, other: Ints, rng: Generator) -> tuple[float, Interval, float]:
    """Share of the seen less that of the others: the number, its interval, and P with patients permuted."""
    both = np.concatenate([seen, other])
    member = np.arange(len(both)) < len(seen)
    marked = np.column_stack([both, member])

    def gap(rows: Ints) -> float:
        return ratio(rows[rows[:, 2] == 1]) - ratio(rows[rows[:, 2] == 0])

    dealt = np.array([rng.permutation(member) @ both for _ in range(PERMUTATIONS)])
    draws = _shares(dealt) - _shares(both.sum(axis=0) - dealt)
    ends = _outer_ends(seen, other, rng) if _alike(seen, other) else bootstrap_clusters(marked, gap, rng)
    return gap(marked), ends, permutation_p(gap(marked), draws)


def _alike(seen: Ints, other: Ints) -> bool:
    """Whether both shares are 0 or 1: a bootstrap of their difference would shrink to a point."""
    return ratio(seen) in (0.0, 1.0) and ratio(other) in (0.0, 1.0)


def _outer_ends(seen: Ints, other: Ints, rng: Generator) -> Interval:
    """From the exact intervals of both: of shares of 0 or 1 only one end of each is in doubt, 2.5 % apiece."""
    (low, high), (least, most) = (share_by_patient(side) for side in (seen, other))
    return Interval(low - most, high - least)


def _difference_method(seen: Ints, other: Ints) -> str:
    if _alike(seen, other):
        return "exact where both shares are 0 or 1, for as many patients (Clopper-Pearson), 95 %"
    return "bootstrap over patients, 95 %"


def _shares(counts: Ints) -> Doubles:
    """(n,) first column over the second; NaN where there is nothing, as `ratio`."""
    return np.divide(counts[:, 0], counts[:, 1], out=np.full(len(counts), np.nan), where=counts[:, 1] > 0)
