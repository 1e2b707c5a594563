"""What a channel replaces names with: other names, or similarly spelled words.

Paper A expects that a name is rarely replaced by a misspelling of itself, and assumes that names
are replaced by other words. Both are measured exactly, from the rows of the channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from clinveil import Channel, Finding
from clinveil.core import Doubles, Ints, Mask, SmallInts, kernel, word_set
from clinveil.stats import MeasureSpec

LETTERS = 2
MEASURES = ("unchanged", "to_name", "near")
ALL_NAMES = "all names"
RANDOM_OUTPUT = "a random output, weighted by its frequency"
EXACT = "exact for this channel: no interval"
SOURCE = "paper A, discussion of names; exact from the channel"


def name_outputs(channel: Channel, names: Iterable[str], counts: Ints) -> list[Finding]:
    """Measure how often name tokens are unchanged, become another name, or a word within two
    letters of themselves.

    Args:
        names: full names or parts of them. counts: (n_words,) occurrences of the channel's words.

    Returns:
        `attack.name_unchanged`, `attack.name_to_name` and `attack.name_near` (edit distance 1 or 2;
        the share at distance 1 is `one_letter`), over all name tokens. Chance: a
        random output, weighted by its frequency.
    """
    known = word_set(names) & channel.ids.keys()
    rows = np.array(sorted(channel.ids[form] for form in known), dtype=np.int64)
    rows = rows[counts[rows] > 0]
    if not rows.size:
        why = "no name is in the vocabulary"
        spec = MeasureSpec(measure="attack.name_to_name", source=SOURCE, unit="name tokens")
        return [spec.missing(why)]
    is_name = np.zeros(len(channel.words), dtype=np.bool_)
    is_name[[channel.ids[form] for form in known]] = True
    random_output = channel.outputs(counts / max(int(counts.sum()), 1))
    spelling = _Spelling(channel.words)
    shares = [
        _shares(channel, row, is_name, random_output, spelling.distances(row))
        for row in rows.tolist()
    ]
    frequencies = counts[rows]
    table = np.array([astuple(share) for share in shares])
    columns = [field.name for field in fields(NameShares)]
    averages = np.average(table, axis=0, weights=frequencies).tolist()
    means = dict(zip(columns, averages, strict=True))
    findings = []
    for measure in MEASURES:
        numbers = {
            "names": rows.size,
            "by_name": float(table[:, columns.index(measure)].mean()),
        }
        if measure == "near":
            numbers["one_letter"] = means["one_letter"]
        finding = Finding(
            f"attack.name_{measure}",
            means[measure],
            int(frequencies.sum()),
            "lower",
            chance=means[f"{measure}_by_chance"],
            labels=(ALL_NAMES,),
            numbers=numbers,
            source=SOURCE,
            unit="name tokens",
            method=EXACT,
            chance_is=RANDOM_OUTPUT,
        )
        findings.append(finding)
    return findings


@dataclass(frozen=True)
class NameShares:
    """Probabilities of the output of one name, and of a random output.

    Attributes:
        unchanged: the name itself. to_name: another name. near: a word within LETTERS letters.
        one_letter: a word that differs in one letter.
    """

    unchanged: float
    to_name: float
    near: float
    unchanged_by_chance: float
    to_name_by_chance: float
    near_by_chance: float
    one_letter: float


def _shares(
    channel: Channel, row: int, is_name: Mask, random_output: Doubles, distances: NDArray[np.int8]
) -> NameShares:
    outputs, chances = channel.row(row)
    itself = outputs == row
    near = (distances > 0) & (distances <= LETTERS)
    total = random_output.sum() or 1.0
    return NameShares(
        unchanged=float(chances[itself].sum()),
        to_name=float(chances[is_name[outputs] & ~itself].sum()),
        near=float(chances[near[outputs]].sum()),
        unchanged_by_chance=float(random_output[row] / total),
        to_name_by_chance=float((random_output[is_name].sum() - random_output[row]) / total),
        near_by_chance=float(random_output[near].sum() / total),
        one_letter=float(chances[distances[outputs] == 1].sum()),
    )


class _Spelling:
    """The letters of all words, concatenated, and for each word the set of its letters in 64
    groups, as bits.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._codes = np.array([ord(letter) for word in words for letter in word], dtype=np.int32)
        self._starts = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(
            np.int64
        )
        self._letters = _letters(self._codes, self._starts)

    def distances(self, row: int) -> NDArray[np.int8]:
        """Return the edit distances of one word to all, (n_words,), up to LETTERS + 1; 0 for the
        word itself.
        """
        return np.asarray(_distances(row, self._codes, self._starts, self._letters))


@kernel
def _letters(codes: SmallInts, starts: Ints) -> NDArray[np.uint64]:
    bits_of = np.zeros(starts.size - 1, dtype=np.uint64)
    for i in range(bits_of.size):
        for code in codes[starts[i] : starts[i + 1]]:
            bits_of[i] |= np.uint64(1) << np.uint64(code & 63)
    return bits_of


@kernel
def _distances(
    row: int, codes: SmallInts, starts: Ints, letters: NDArray[np.uint64]
) -> NDArray[np.int8]:
    """Return all edit distances of one word; as one edit changes at most two bits of `letters`,
    most are skipped.
    """
    word = codes[starts[row] : starts[row + 1]]
    distances = np.full(starts.size - 1, LETTERS + 1, dtype=np.int8)
    for i in range(distances.size):
        differ = letters[i] ^ letters[row]
        bits = 0
        while differ and bits <= 2 * LETTERS:
            differ &= differ - np.uint64(1)
            bits += 1
        if bits <= 2 * LETTERS and abs(starts[i + 1] - starts[i] - word.size) <= LETTERS:
            distances[i] = within(word, codes[starts[i] : starts[i + 1]])
    return distances


@kernel
def within(one: SmallInts, other: SmallInts) -> int:
    """Return the edit distance of two words (insert, delete, change one letter), or LETTERS + 1 if
    larger.

    Source: Levenshtein 1966; banded as by Ukkonen 1985.
    """
    if abs(one.size - other.size) > LETTERS:
        return LETTERS + 1
    row = np.arange(other.size + 1)
    for i in range(1, one.size + 1):
        corner = row[0]
        row[0] = i
        best = row[0]
        for j in range(1, other.size + 1):
            changed = corner + (0 if one[i - 1] == other[j - 1] else 1)
            corner = row[j]
            row[j] = min(changed, row[j] + 1, row[j - 1] + 1)
            best = min(best, row[j])
        if best > LETTERS:
            return LETTERS + 1
    return int(min(row[other.size], LETTERS + 1))
