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
from numpy.typing import NDArray

from clinveil.attacks.text.common_runs import BREAK, Automaton, Ids, Numbering, in_runs
from clinveil.attacks.text.own_copies import PIECE, Notes, own_copies, runs_finding, whole_finding
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus
from clinveil.stats import Interval, bootstrap_clusters, permutation_p, ratio, share_by_patient, share_method

UNKNOWN = "<unk>"
SPANS = (10, 20, 50)
PERMUTATIONS = 9_999
Counts = NDArray[np.int64]
_TOKENS, _NUMBERS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
MATCHED = "held-out patients; matched: about as many words of training patients as were held out"
FEW = "fewer training than held-out words: all of them are taken, and the control had the better chance"
SOURCE = "copy scan: longest common runs, exact (suffix automaton), against held-out patients"


@dataclass(frozen=True)
class _Side:
    """One set of patients: the run that ends at each synthetic word, and what each patient has in the synthetic text.

    Attributes:
        runs: (n_synthetic_words,). shared: (n_patients, n_spans + 1), words in long runs, and all words.
        notes: the words themselves, by id.
    """

    runs: Ids
    shared: NDArray[np.int64]
    notes: Notes = field(repr=False)


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
    numbers, notes, floor, written = Numbering(), [], False, set()
    for _, _, text in _notes(synthetic):
        notes.append(numbers.learn(words(text)))
        written.add(_key(text))
        floor = floor or UNKNOWN in text
    if not sum(note.size for note in notes):
        raise InputError("the synthetic notes hold no word", remedy="synthesize some first")
    number = numbers.learn
    if floor:
        numbers.other, number = int(numbers.ids(words(UNKNOWN))[0]), numbers.ids
    stop = np.array([BREAK], dtype=np.int32)
    text_of_all = np.concatenate([piece for note in notes for piece in (note, stop)]).astype(np.int32)
    automaton = Automaton(text_of_all)
    seen = _side(automaton.anew(), number, written, training, spans)
    other = _side(automaton.anew(), number, written, held_out, spans)
    for side, name in ((seen, "training"), (other, "held-out")):
        if not side.shared[:, -1].sum():
            raise InputError(f"the {name} notes hold no word")
    matched = _side(automaton.anew(), number, written, training, spans, _as_many(seen, other, rng))
    lengths = np.array([note.size for note in notes])
    detail: dict[str, Any] = {"synthetic_notes": len(notes), "training_words": int(seen.shared[:, -1].sum())}
    detail |= {"held_out_words": int(other.shared[:, -1].sum()), "matched_words": int(matched.shared[:, -1].sum())}
    scan = _Scan(seen, other, matched, lengths, detail, rng)
    found = list(scan.longest())
    for place, span in enumerate(spans):
        found += [*scan.text(span), scan.patients(place, span)]
    return [*found, *scan.own(spans)]


def _refuse_shared(training: Corpus, held_out: Corpus) -> None:
    """Raise InputError where a patient stands on both sides; before the scan, which takes longer."""
    seen, kept = ({patient for _, patient, _ in _notes(side)} for side in (training, held_out))
    if both := len(seen & kept):
        raise InputError(f"{both} patients stand on both sides", remedy="split by patient before training")


def _notes(corpus: Corpus) -> Iterator[tuple[str, str, str]]:
    for batch in corpus.batches():
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
        for note, patient, text in zip(*columns, strict=True):
            if text is not None:
                yield note, patient if patient is not None else note, text


def _key(text: str) -> int:
    """A hash of the note's words and numbers, 64 bits: of what is written between them it knows nothing."""
    return int.from_bytes(blake2b(" ".join(_TOKENS.findall(text.lower())).encode(), digest_size=8).digest(), "little")


def _side(
    automaton: Automaton,
    number: Callable[[Sequence[str]], Ids],
    written: AbstractSet[int],
    corpus: Corpus,
    spans: tuple[int, ...],
    only: NDArray[np.bool_] | None = None,
) -> _Side:
    places: dict[str, int] = {}
    shared: list[NDArray[np.int64]] = []
    kept: list[tuple[int, Ids, Ids]] = []
    whole: list[tuple[int, int]] = []
    for _, patient, text in _notes(corpus):
        place = places.setdefault(patient, len(places))
        if place == len(shared):
            shared.append(np.zeros(len(spans) + 1, dtype=np.int64))
        if only is not None and not only[place]:
            continue
        ids = number(words(text))
        automaton.stream(ids)
        runs = automaton.matches(ids)
        shared[place] += [*(int(in_runs(runs, span).sum()) for span in spans), ids.size]
        kept.append((place, ids, runs))
        whole.append((_key(text), len(_NUMBERS.findall(text))))
    table = np.array(shared, dtype=np.int64).reshape(-1, len(spans) + 1)
    return _Side(automaton.runs(), table, _together(kept, whole, written, len(places)))


def _together(
    notes: list[tuple[int, Ids, Ids]], whole: list[tuple[int, int]], written: AbstractSet[int], patients: int
) -> Notes:
    none = np.zeros(0, dtype=np.int32)
    ids, matches = (np.concatenate([none, *(note[i] for note in notes)]) for i in (1, 2))
    lengths = np.array([ids.size for _, ids, _ in notes], dtype=np.int64)
    owners = np.array([place for place, _, _ in notes], dtype=np.int64)
    keys = np.array([key for key, _ in whole], dtype=np.uint64)
    numbers = np.array([count for _, count in whole], dtype=np.int64)
    same = np.array([key in written for key, _ in whole], dtype=np.bool_)
    return Notes(ids, matches, lengths, owners, keys, numbers, same, patients)


def _as_many(seen: _Side, other: _Side, rng: Generator) -> NDArray[np.bool_]:
    """Training patients, at random, with about as many words as the held-out ones have."""
    order = rng.permutation(len(seen.shared))
    reached = np.cumsum(seen.shared[order, -1])
    enough = int(np.searchsorted(reached, other.shared[:, -1].sum())) + 1
    chosen = np.zeros(len(seen.shared), dtype=np.bool_)
    chosen[order[:enough]] = True
    return chosen


def _by_note(covered: NDArray[np.bool_], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
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
    lengths: NDArray[np.int64]
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
            control=other,
            source=SOURCE,
            detail={**more, **self._few()},
            unit="words",
            control_is=MATCHED,
            control_kind="negative",
        )

    def text(self, span: int) -> Iterator[Finding]:
        """The share of synthetic words in runs of `span`: the same two."""
        sides = (self.seen, self.matched, self.other)
        seen, matched, other = (_by_note(in_runs(side.runs, span), self.lengths) for side in sides)
        detail = {**self.detail, "span": span}
        own = {"held_out": ratio(other), "matched": ratio(matched)}
        yield self._share("attack.copies", seen, None, {**detail, **own})
        yield self._share("attack.copies_matched", matched, ratio(other), {**detail, **self._few()})

    def _few(self) -> dict[str, str]:
        return {"warning": FEW} if self.detail["training_words"] < self.detail["held_out_words"] else {}

    def _share(self, measure: str, counts: Counts, control: float | None, detail: dict[str, Any]) -> Finding:
        low, high = share_by_patient(counts)
        return Finding(
            measure,
            ratio(counts),
            int(counts[:, 1].sum()),
            "lower",
            low,
            high,
            control=control,
            source=SOURCE,
            detail=detail,
            unit="synthetic words",
            count=int(counts[:, 0].sum()),
            method=share_method(counts, "synthetic notes"),
            control_is="" if control is None else MATCHED,
            control_kind=None if control is None else "negative",
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


def _difference(seen: Counts, other: Counts, rng: Generator) -> tuple[float, Interval, float]:
    """Share of the seen less that of the others: the number, its interval, and P with patients dealt out anew."""
    both = np.concatenate([seen, other])
    member = np.arange(len(both)) < len(seen)
    marked = np.column_stack([both, member])

    def gap(rows: Counts) -> float:
        return ratio(rows[rows[:, 2] == 1]) - ratio(rows[rows[:, 2] == 0])

    dealt = np.array([rng.permutation(member) @ both for _ in range(PERMUTATIONS)])
    draws = _shares(dealt) - _shares(both.sum(axis=0) - dealt)
    ends = _outer_ends(seen, other, rng) if _alike(seen, other) else bootstrap_clusters(marked, gap, rng)
    return gap(marked), ends, permutation_p(gap(marked), draws)


def _alike(seen: Counts, other: Counts) -> bool:
    """Whether both shares are 0 or 1: a bootstrap of their difference would shrink to a point."""
    return ratio(seen) in (0.0, 1.0) and ratio(other) in (0.0, 1.0)


def _outer_ends(seen: Counts, other: Counts, rng: Generator) -> Interval:
    """From the exact intervals of both: of shares of 0 or 1 only one end of each is in doubt, 2.5 % apiece."""
    (low, high), (least, most) = (share_by_patient(side) for side in (seen, other))
    return Interval(low - most, high - least)


def _difference_method(seen: Counts, other: Counts) -> str:
    if _alike(seen, other):
        return "exact where both shares are 0 or 1, for as many patients (Clopper-Pearson), 95 %"
    return "bootstrap over patients, 95 %"


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) first column over the second; NaN where there is nothing, as `ratio`."""
    return np.divide(counts[:, 0], counts[:, 1], out=np.full(len(counts), np.nan), where=counts[:, 1] > 0)
