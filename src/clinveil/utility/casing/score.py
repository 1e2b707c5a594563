"""Restored lines by words: precision, recall and F1 of those with a capital, and accuracy; and what costs nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core.types import Doubles, Ints

Counts = Ints
Metric = Literal["f1", "accuracy"]
CORRECT, PROPOSED, GOLD, EXACT, WORDS = range(5)


class Score(NamedTuple):
    """Shares; 0 where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float
    accuracy: float


def count_words(reference: Sequence[str], restored: Sequence[str]) -> Counts:
    """(n_lines, 5) of each line: words with a capital that are right, proposed ones, true ones, all right ones, words.

    A word is what stands between white space; a capital is any character that lowering changes.

    Raises ValueError where a line does not have as many words as its reference.
    Source: word_eval.py of raymondhs/char-rnn-truecase.
    """
    return np.array([_line(*pair) for pair in zip(reference, restored, strict=True)], dtype=np.int64).reshape(-1, 5)


def _line(reference: str, restored: str) -> tuple[int, int, int, int, int]:
    true, guessed = reference.split(), restored.split()
    if len(true) != len(guessed):
        raise ValueError("a restored line has not as many words as its reference")
    gold = [word != word.lower() for word in true]
    right = [one == other for one, other in zip(true, guessed, strict=True)]
    proposed = sum(word != word.lower() for word in guessed)
    return sum(g and r for g, r in zip(gold, right, strict=True)), proposed, sum(gold), sum(right), len(true)


def by_owner(counts: Counts, owners: Sequence[str] | None) -> Counts:
    """(n_owners, 5) the sums of the lines of each owner; the lines themselves where there are no owners."""
    if owners is None:
        return counts
    names, row = np.unique(np.array(owners, dtype=object), return_inverse=True)
    sums = np.zeros((len(names), counts.shape[1]), dtype=np.int64)
    np.add.at(sums, row, counts)
    return sums


def metric_shares(counts: Counts, metric: Metric) -> Doubles:
    """(n_owners, 2) hits and things whose ratio is the metric; for F1 the right, and the mean of proposed and true."""
    if metric == "accuracy":
        return counts[:, [EXACT, WORDS]].astype(np.float64)
    return np.stack([counts[:, CORRECT], (counts[:, PROPOSED] + counts[:, GOLD]) / 2], axis=1)


def score(counts: Counts) -> Score:
    """The score of all lines, from `count_words`."""
    totals = counts.sum(axis=0)
    precision, recall = _share(totals[CORRECT], totals[PROPOSED]), _share(totals[CORRECT], totals[GOLD])
    f1 = _share(2 * precision * recall, precision + recall)
    return Score(precision, recall, f1, _share(totals[EXACT], totals[WORDS]))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def usual_casings(lines: Sequence[str]) -> dict[str, str]:
    """The most frequent casing of each lowered word of the training lines; of equally frequent ones the first seen."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for word in line.split():
            seen[word.lower()][word] += 1
    return {lowered: casings.most_common(1)[0][0] for lowered, casings in seen.items()}


def restore_usual(lowered: Sequence[str], usual: Mapping[str, str]) -> list[str]:
    """Lines with each word in its usual casing; unknown words stay lower case, white space becomes one space."""
    return [" ".join(usual.get(word, word) for word in line.split()) for line in lowered]


def permuted(restored: Sequence[str], rng: Generator) -> list[str]:
    """The same words in lower case with the words' casings (places of capitals) permuted among them (control)."""
    words = [line.split() for line in restored]
    patterns = [tuple(i for i, c in enumerate(w) if c != c.lower()) for line in words for w in line]
    order = iter(rng.permutation(len(patterns)).tolist())
    return [" ".join(_cased(word.lower(), patterns[next(order)]) for word in line) for line in words]


def _cased(word: str, places: Sequence[int]) -> str:
    chosen = set(places)
    cased = (c.upper() if i in chosen and len(c.upper()) == 1 else c for i, c in enumerate(word))
    return "".join(cased)
