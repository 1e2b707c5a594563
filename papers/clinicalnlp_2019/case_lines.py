"""Lines of text for letter-case restoration: encoding as characters, and scoring by words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Ints, WordIds

# numbers of characters
UNKNOWN = 0
NEWLINE = 1
# columns of the counts of words
CORRECT = 0
PROPOSED = 1
GOLD = 2
WORDS = 3
WordCounts = Ints


@dataclass(frozen=True)
class Lines:
    """Stripped lines without empty ones, in order.

    name: name of the file. lines: (n_lines). owners: (n_lines) patients, for lines of notes.
    """

    name: str
    lines: Sequence[str] = field(repr=False)
    owners: Sequence[str] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, chosen: Ints) -> Lines:
        """Return some of the lines."""
        owners = None if self.owners is None else [self.owners[row] for row in chosen]
        return Lines(self.name, [self.lines[row] for row in chosen], owners)


def upper_of(character: str) -> str | None:
    """Return the upper-case form if it is one character that lowers back; otherwise None (`ß`,
    `7`).
    """
    upper = character.upper()
    return upper if len(upper) == 1 and upper != character and upper.lower() == character else None


def alphabet_of(lines: Iterable[str]) -> WordIds:
    """Return the characters of the training lines: 0 for unknown ones, 1 for the newline, the
    others sorted.
    """
    return WordIds.of(["\n", *sorted(set().union(*lines) - {"\n"})], first=NEWLINE)


def encoded(alphabet: WordIds, text: str) -> Ints:
    """Return the numbers of characters, (n_characters,); characters that are not in training are
    unknown.
    """
    return np.array(alphabet.encode(text, unknown=UNKNOWN), dtype=np.int64)


def stream(alphabet: WordIds, lines: Sequence[str]) -> Ints:
    """Encode lines as one text with a newline after each."""
    return encoded(alphabet, "".join(f"{line}\n" for line in lines))


def candidates(alphabet: WordIds, text: str) -> Ints:
    """Return each character and its upper case, (n_characters, 2); -1 if there is none or it is not
    in training.
    """
    known = {c: alphabet.ids.get(upper_of(c) or "", -1) for c in set(text)}
    return np.stack(
        [encoded(alphabet, text), np.array([known[c] for c in text], dtype=np.int64)], axis=1
    )


class CaseScore(NamedTuple):
    """Scores; 0 where undefined."""

    precision: float
    recall: float
    f1: float


def count_words(reference: Sequence[str], restored: Sequence[str]) -> WordCounts:
    """Return for each line, (n_lines, 4): correct, proposed and true words with capitals, and
    words.

    Words are separated by white space; a capital is a character that lowering changes.

    Raises ValueError if a line has another number of words than its reference.
    Source: the word evaluation of raymondhs/char-rnn-truecase.
    """
    return np.array(
        [_line(*pair) for pair in zip(reference, restored, strict=True)], dtype=np.int64
    ).reshape(-1, 4)


def _line(reference: str, restored: str) -> tuple[int, int, int, int]:
    true = reference.split()
    guessed = restored.split()
    if len(true) != len(guessed):
        raise ValueError("a restored line has another number of words than its reference")
    gold = [word != word.lower() for word in true]
    right = (one == other for one, other in zip(true, guessed, strict=True))
    proposed = sum(word != word.lower() for word in guessed)
    return sum(g and r for g, r in zip(gold, right, strict=True)), proposed, sum(gold), len(true)


def by_owner(counts: WordCounts, owners: Sequence[str] | None) -> WordCounts:
    """Return the sums of the lines of each owner, (n_owners, 4), or the counts of lines without
    owners.
    """
    if owners is None:
        return counts
    names, row = np.unique(np.array(owners, dtype=object), return_inverse=True)
    sums = np.zeros((len(names), counts.shape[1]), dtype=np.int64)
    np.add.at(sums, row, counts)
    return sums


def f1_shares(counts: WordCounts) -> Doubles:
    """Return numerator and denominator of F1, (n_owners, 2): correct words, and the mean of
    proposed and true ones.
    """
    return np.stack([counts[:, CORRECT], (counts[:, PROPOSED] + counts[:, GOLD]) / 2], axis=1)


def score(counts: WordCounts) -> CaseScore:
    """Return the score of all lines, from `count_words`."""
    totals = counts.sum(axis=0)
    precision = _share(totals[CORRECT], totals[PROPOSED])
    recall = _share(totals[CORRECT], totals[GOLD])
    return CaseScore(precision, recall, _share(2 * precision * recall, precision + recall))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def usual_casings(lines: Sequence[str]) -> dict[str, str]:
    """Return the most frequent casing of each lowered word of the training lines; the first one of
    equal counts.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for word in line.split():
            seen[word.lower()][word] += 1
    return {lowered: casings.most_common(1)[0][0] for lowered, casings in seen.items()}


def restore_usual(lowered: Sequence[str], usual: Mapping[str, str]) -> list[str]:
    """Return lines with each word in its usual casing; unknown words stay in lower case."""
    return [" ".join(usual.get(word, word) for word in line.split()) for line in lowered]


def permuted(restored: Sequence[str], rng: Generator) -> list[str]:
    """Return the words with their casings (positions of capitals) permuted among them (control)."""
    words = [line.split() for line in restored]
    capitals = [{i for i, c in enumerate(w) if c != c.lower()} for line in words for w in line]
    order = iter(rng.permutation(len(capitals)).tolist())

    def cased(word: str) -> str:
        chosen = capitals[next(order)]
        return "".join(
            c.upper() if i in chosen and len(c.upper()) == 1 else c
            for i, c in enumerate(word.lower())
        )

    return [" ".join(map(cased, line)) for line in words]
