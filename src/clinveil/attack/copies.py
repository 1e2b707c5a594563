"""Copy scan: what synthetic notes repeat of the training notes, word for word, and what of other patients' notes.

Two views, both exact. From the synthetic side: the share of its words that stand in runs of at least 10, 20 or 50 words
which some training note holds. From the patients' side: the share of a patient's words that stand in such runs of the
synthetic text, for patients trained on and for held-out patients alike; the difference is the copying that training
did, whatever the sizes of the sets. Stock phrases are in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attack.common_runs import BREAK, Automaton, Ids, Numbering
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus
from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.stats import bootstrap_clusters, permutation_p, ratio, share_by_patient
from clinveil.tokens import words

UNKNOWN = "<unk>"
SPANS = (10, 20, 50)
PERMUTATIONS = 9_999
SOURCE = "copy scan: longest common runs, exact (suffix automaton), against held-out patients"


@dataclass(frozen=True)
class _Side:
    """One set of patients: the run that ends at each synthetic word, and what each patient has in the synthetic text.

    Attributes:
        runs: (n_synthetic_words,). shared: (n_patients, n_spans + 1), words in long runs, and all words.
    """

    runs: Ids
    shared: NDArray[np.int64]


def copies(
    synthetic: Corpus, training: Corpus, held_out: Corpus, rng: Generator, *, spans: Sequence[int] = SPANS
) -> list[Finding]:
    """The copy scan of synthetic notes, by both sides, for each length of run.

    Where the synthetic notes write `<unk>` for rare words, words that they never use count as `<unk>` on all sides: a
    copy stays one with its rarest words blotted out.

    Args:
        synthetic: the notes to share; all are held in memory, about 130 bytes a word.
        training, held_out: the patients the model saw, and others like them; streamed.
        spans: lengths of run that count as copied, in words.

    Returns:
        `attack.copies` (share of synthetic words; control: the same against held-out patients, with as many words of
        training patients beside it in the detail), `attack.copies_longest` and `attack.copies_of_patients` (share of
        training patients' words; control: of held-out patients; difference, its interval and permutation P over
        patients in the detail).

    Raises:
        InputError: no words on one of the three sides.
    """
    spans = tuple(sorted(spans))
    numbers, notes, floor = Numbering(), [], False
    for _, _, text in _notes(synthetic):
        notes.append(numbers.learn(words(text)))
        floor = floor or UNKNOWN in text
    if not sum(note.size for note in notes):
        raise InputError("the synthetic notes hold no word", remedy="synthesize some first")
    if floor:
        numbers.other = int(numbers.ids(words(UNKNOWN))[0])
    stop = np.array([BREAK], dtype=np.int32)
    text_of_all = np.concatenate([piece for note in notes for piece in (note, stop)]).astype(np.int32)
    automaton = Automaton(text_of_all)
    seen = _side(automaton.anew(), numbers, training, spans)
    other = _side(automaton.anew(), numbers, held_out, spans)
    for side, name in ((seen, "training"), (other, "held-out")):
        if not side.shared[:, -1].sum():
            raise InputError(f"the {name} notes hold no word")
    matched = _side(automaton.anew(), numbers, training, spans, _as_many(seen, other, rng))
    lengths = np.array([note.size for note in notes])
    detail: dict[str, Any] = {"synthetic_notes": len(notes), "training_words": int(seen.shared[:, -1].sum())}
    detail |= {"held_out_words": int(other.shared[:, -1].sum()), "matched_words": int(matched.shared[:, -1].sum())}
    found = [_longest(seen, other, matched, lengths, detail)]
    for place, span in enumerate(spans):
        ours, theirs, as_many = (_by_note(in_runs(side.runs, span), lengths) for side in (seen, other, matched))
        found.append(_of_text(ours, theirs, as_many, {**detail, "span": span}, rng))
        found.append(_of_patients(span, seen.shared[:, [place, -1]], other.shared[:, [place, -1]], detail, rng))
    return found


def in_runs(runs: Ids, span: int) -> NDArray[np.bool_]:
    """(n,) whether each position stands in a run of at least `span`, from the run that ends at each position."""
    ends = np.flatnonzero(runs >= span)
    change = np.zeros(runs.size + 1, dtype=np.int64)
    np.add.at(change, ends - runs[ends] + 1, 1)
    np.add.at(change, ends + 1, -1)
    return np.cumsum(change[:-1]) > 0


def _notes(corpus: Corpus) -> Iterator[tuple[str, str, str]]:
    for batch in corpus.batches():
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
        for note, patient, text in zip(*columns, strict=True):
            if text is not None:
                yield note, patient if patient is not None else note, text


def _side(
    automaton: Automaton,
    numbers: Numbering,
    corpus: Corpus,
    spans: tuple[int, ...],
    only: NDArray[np.bool_] | None = None,
) -> _Side:
    places: dict[str, int] = {}
    shared: list[NDArray[np.int64]] = []
    for _, patient, text in _notes(corpus):
        place = places.setdefault(patient, len(places))
        if place == len(shared):
            shared.append(np.zeros(len(spans) + 1, dtype=np.int64))
        if only is not None and not only[place]:
            continue
        ids = numbers.ids(words(text))
        automaton.stream(ids)
        runs = automaton.matches(ids)
        shared[place] += [*(int(in_runs(runs, span).sum()) for span in spans), ids.size]
    return _Side(automaton.runs(), np.array(shared, dtype=np.int64).reshape(-1, len(spans) + 1))


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


def _longest(seen: _Side, other: _Side, matched: _Side, lengths: NDArray[np.int64], detail: dict[str, Any]) -> Finding:
    ends = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
    by_note = np.maximum.reduceat(seen.runs, ends)
    more: dict[str, Any] = {
        "unit": "words",
        "median_of_notes": float(np.median(by_note)),
        "control_is": "held-out patients",
    }
    more |= {"matched": int(matched.runs.max()), "why": "a maximum has no interval here"}
    return Finding(
        "attack.copies_longest",
        float(seen.runs.max()),
        int(lengths.sum()),
        "lower",
        control=float(other.runs.max()),
        source=SOURCE,
        detail={**detail, **more},
    )


def _of_text(
    seen: NDArray[np.int64],
    other: NDArray[np.int64],
    matched: NDArray[np.int64],
    detail: dict[str, Any],
    rng: Generator,
) -> Finding:
    low, high = share_by_patient(seen, rng)
    more: dict[str, Any] = {"unit": "synthetic words", "interval": "bootstrap over synthetic notes, 95 %"}
    more |= {"control_is": "held-out patients", "matched": ratio(matched)}
    return Finding(
        "attack.copies",
        ratio(seen),
        int(seen[:, 1].sum()),
        "lower",
        low,
        high,
        None,
        ratio(other),
        SOURCE,
        detail | more,
    )


def _of_patients(
    span: int, seen: NDArray[np.int64], other: NDArray[np.int64], detail: dict[str, Any], rng: Generator
) -> Finding:
    low, high = share_by_patient(seen, rng)
    difference, bounds, p = _difference(seen, other, rng)
    more: dict[str, Any] = {
        "span": span,
        "unit": "words of training patients",
        "interval": "bootstrap over patients, 95 %",
    }
    more |= {"control_is": "held-out patients", "patients": len(seen), "held_out_patients": len(other)}
    more |= {"difference": difference, "difference_low": bounds[0], "difference_high": bounds[1], "p": p}
    return Finding(
        "attack.copies_of_patients",
        ratio(seen),
        int(seen[:, 1].sum()),
        "lower",
        low,
        high,
        ratio(other),
        ratio(other),
        SOURCE,
        detail | more,
    )


def _difference(
    seen: NDArray[np.int64], other: NDArray[np.int64], rng: Generator
) -> tuple[float, tuple[float, float], float]:
    """Share of the seen less that of the others: the number, its interval, and P with patients dealt out anew."""
    both = np.concatenate([seen, other])
    member = np.arange(len(both)) < len(seen)
    marked = np.column_stack([both, member])

    def gap(rows: NDArray[np.int64]) -> float:
        return ratio(rows[rows[:, 2] == 1]) - ratio(rows[rows[:, 2] == 0])

    dealt = np.array([rng.permutation(member) @ both for _ in range(PERMUTATIONS)])
    draws = _shares(dealt) - _shares(both.sum(axis=0) - dealt)
    low, high = bootstrap_clusters(marked, gap, rng)
    return gap(marked), (low, high), permutation_p(gap(marked), draws)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) first column over the second; NaN where there is nothing, as `ratio`."""
    return np.divide(counts[:, 0], counts[:, 1], out=np.full(len(counts), np.nan), where=counts[:, 1] > 0)
