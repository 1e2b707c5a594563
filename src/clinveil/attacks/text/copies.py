"""Copy scan: what synthetic notes repeat of the training notes, word for word, and what of other patients' notes.

Three views, all exact. From the synthetic side: the share of its words that stand in runs of at least 10, 20 or 50
words which some training note holds. From the patients' side: the share of a patient's words that stand in such runs of
the synthetic text, for patients trained on and for held-out patients alike; the difference is the copying that training
did, whatever the sizes of the sets. Stock phrases are in both. And of how many patients words of their own, in no stock
phrase, were copied (`own_findings`): what the gates of a synthetic release judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, in_runs, separated
from clinveil.attacks.text._own_copies import Notes, own_findings
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints, Mask, SmallInts
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows
from clinveil.stats import Interval, bootstrap_clusters, permutation_p, ratio, share_by_patient
from clinveil.stats.findings import clustered_share

UNKNOWN = "<unk>"
SPANS = (10, 20, 50)
PERMUTATIONS = 9_999
_TOKENS, _NUMBERS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
MATCHED = "held-out patients; matched: about as many words of training patients as were held out"
FEW = "fewer training than held-out words: all of them are taken, and the control had the better chance"
ALIKE = "exact where both shares are 0 or 1, for as many patients (Clopper-Pearson), 95 %"
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
        of held-out ones, P over patients. `attack.copies_own` by span and `attack.copies_whole`: `own_findings`.

    Raises:
        InputError: no words on one of the three sides, or a patient both trained on and held out.
    """
    spans = tuple(sorted(spans))
    _refuse_shared(training, held_out)
    scan = _scan(synthetic, training, held_out, rng)
    found = list(scan.longest())
    for span in spans:
        found += [*scan.text(span), scan.patients(span, rng)]
    return [*found, *own_findings(scan.seen, scan.other, spans, scan.detail)]


def _refuse_shared(training: Corpus, held_out: Corpus) -> None:
    """Raise InputError where a patient stands on both sides; before the scan, which takes longer."""
    seen, kept = ({note.patient_id for note in rows(side)} for side in (training, held_out))
    if both := len(seen & kept):
        raise InputError(f"{both} patients stand on both sides", hint="split by patient before training")


def _scan(synthetic: Corpus, training: Corpus, held_out: Corpus, rng: Generator) -> _Scan:
    vocabulary, notes, written, floor = Vocabulary(), list[SmallInts](), set[int](), False
    for _, _, text in rows(synthetic):
        notes.append(vocabulary.add(words(text)))
        written.add(_key(text))
        floor = floor or UNKNOWN in text
    lengths = np.array([note.size for note in notes])
    if not lengths.sum():
        raise InputError("the synthetic notes hold no word", hint="make some first: clinveil release --as synthetic")
    number = vocabulary.add
    if floor:
        vocabulary.unk, number = int(vocabulary.ids(words(UNKNOWN))[0]), vocabulary.ids
    automaton = SuffixAutomaton(separated(notes))
    seen, other = (_side(automaton.fresh(), number, written, side) for side in (training, held_out))
    for side, name in ((seen, "training"), (other, "held-out")):
        if not side.ids.size:
            raise InputError(f"the {name} notes hold no word")
    chosen = _as_many(seen, other, rng)[seen.owners]
    matched = automaton.fresh()
    for ids in compress(np.split(seen.ids, np.cumsum(seen.lengths)[:-1]), chosen):
        matched.stream(ids)
    detail: dict[str, Any] = {"synthetic_notes": len(notes), "training_words": seen.ids.size}
    detail |= {"held_out_words": other.ids.size, "matched_words": int(seen.lengths[chosen].sum())}
    return _Scan(seen, other, matched.runs(), lengths, detail)


def _key(text: str) -> int:
    """A hash of the note's words and numbers, 64 bits: of what is written between them it knows nothing."""
    return int.from_bytes(blake2b(" ".join(_TOKENS.findall(text.lower())).encode(), digest_size=8).digest(), "little")


def _side(
    automaton: SuffixAutomaton,
    number: Callable[[Sequence[str]], SmallInts],
    written: AbstractSet[int],
    corpus: Corpus,
) -> Notes:
    """One side, streamed through the automaton of the synthetic notes."""
    places: dict[str, int] = {}
    ids, matches, about = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)], list[tuple[int, ...]]()
    for _, patient, text in rows(corpus):
        place, key = places.setdefault(patient, len(places)), _key(text)
        ids.append(number(words(text)))
        matches.append(automaton.stream(ids[-1]))
        about.append((ids[-1].size, place, len(_NUMBERS.findall(text)), key in written, key))
    columns = np.array(about, dtype=np.uint64).reshape(-1, 5).T
    lengths, owners, numbers, same = columns[:4].astype(np.int64)
    streamed = (np.concatenate(ids), np.concatenate(matches), automaton.runs())
    return Notes(*streamed, lengths, owners, columns[4], numbers, same > 0, len(places))


def _as_many(seen: Notes, other: Notes, rng: Generator) -> Mask:
    """(n_patients,) training patients, at random, with about as many words as the held-out ones have."""
    order = rng.permutation(seen.patients)
    reached = np.cumsum(np.bincount(seen.owners, weights=seen.lengths)[order])
    chosen = np.zeros(seen.patients, dtype=np.bool_)
    chosen[order[: int(np.searchsorted(reached, other.ids.size)) + 1]] = True
    return chosen


@dataclass(frozen=True)
class _Scan:
    """Both sides over the same synthetic notes, and the runs of as many words of training patients as were held out."""

    seen: Notes
    other: Notes
    matched: SmallInts  # (n_synthetic_words,)
    lengths: Ints  # words of each synthetic note
    detail: dict[str, Any]

    def longest(self) -> Iterator[Finding]:
        """The longest run: of all training notes, and of as many words as were held out."""
        by_note = np.maximum.reduceat(self.seen.runs, np.cumsum(self.lengths + 1) - self.lengths - 1)
        longest, matched, other = (float(runs.max()) for runs in (self.seen.runs, self.matched, self.other.runs))
        name, n = "attack.copies_longest", int(self.lengths.sum())
        about: dict[str, Any] = {"source": SOURCE, "unit": "words"}
        more = {**self.detail, "why": "a maximum has no interval here"}
        own = {"median_of_notes": float(np.median(by_note)), "held_out": other, "matched": matched}
        yield Finding(name, longest, n, "lower", detail={**more, **own}, **about)
        few = {**more, **self._few()}
        yield Finding(f"{name}_matched", matched, n, "lower", detail=few, **about, **_held_out(other))

    def text(self, span: int) -> Iterator[Finding]:
        """The share of synthetic words in runs of `span`: the same two."""
        seen, matched, other = (
            self._by_note(in_runs(runs, span)) for runs in (self.seen.runs, self.matched, self.other.runs)
        )
        detail = {**self.detail, "span": span}
        about = {"over": "synthetic notes", "unit": "synthetic words", "source": SOURCE}
        both = {"held_out": ratio(other), "matched": ratio(matched)}
        yield clustered_share("attack.copies", seen, detail={**detail, **both}, **about)
        few, control = {**detail, **self._few()}, _held_out(ratio(other))
        yield clustered_share("attack.copies_matched", matched, detail=few, **about, **control)

    def _few(self) -> dict[str, str]:
        return {"warning": FEW} if self.seen.ids.size < self.other.ids.size else {}

    def _by_note(self, covered: Mask) -> Ints:
        """(n_notes, 2): the words of each synthetic note that are covered, and all."""
        starts = np.concatenate([[0], np.cumsum(self.lengths + 1)])
        before = np.concatenate([[0], np.cumsum(covered)])
        return np.stack([before[starts[1:]] - before[starts[:-1]], self.lengths], axis=1)

    def patients(self, span: int, rng: Generator) -> Finding:
        """The share of training patients' words that was copied, less that of the held-out ones."""
        seen, other = self.seen.shared(span), self.other.shared(span)
        value, ends, p = _difference(seen, other, rng)
        detail = {**self.detail, "span": span, "patients": len(seen), "held_out_patients": len(other)}
        detail |= {"training_share": ratio(seen), "held_out_share": ratio(other)}
        return Finding(
            *("attack.copies_of_patients", value, len(seen) + len(other), "lower", *ends, 0.0, None, SOURCE, detail),
            unit="patients",
            p=p,
            p_is="patients dealt out anew, one-sided",
            method=ALIKE if _alike(seen, other) else "bootstrap over patients, 95 %",
            chance_is="training patients copied as much as held-out ones",
        )


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
    if _alike(seen, other):
        # From the exact intervals of both: of shares of 0 or 1 only one end of each is in doubt, 2.5 % apiece.
        (low, high), (least, most) = share_by_patient(seen), share_by_patient(other)
        ends = Interval(low - most, high - least)
    else:
        ends = bootstrap_clusters(marked, gap, rng)
    return gap(marked), ends, permutation_p(gap(marked), draws)


def _alike(seen: Ints, other: Ints) -> bool:
    """Whether both shares are 0 or 1: a bootstrap of their difference would shrink to a point."""
    return ratio(seen) in (0.0, 1.0) and ratio(other) in (0.0, 1.0)


def _shares(counts: Ints) -> Doubles:
    """(n,) first column over the second; NaN where there is nothing, as `ratio`."""
    return np.divide(counts[:, 0], counts[:, 1], out=np.full(len(counts), np.nan), where=counts[:, 1] > 0)
