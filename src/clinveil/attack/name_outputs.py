"""What a channel makes of names: another name, or a word that is spelled almost alike? Exact, from the channel's rows.

Paper A hopes that a name is rarely replaced by a misspelling of itself, and takes for granted that names come out as
something else. Both are numbers here, by how frequent the name is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.finding import Finding
from clinveil.tokens import words

BANDS = ((1, 1), (2, 4), (5, 19), (20, 99), (100, None))
LETTERS = 2
SOURCE = "paper A, discussion of names; facts on its gaps; exact from the channel"


def name_outputs(channel: Channel, names: Iterable[str], counts: NDArray[np.int64]) -> list[Finding]:
    """How name tokens come out: as themselves, as another name, as a word within two letters of themselves.

    Args:
        names: full names or parts of them. counts: (n_words,) occurrences of the channel's words.

    Returns:
        `attack.name_unchanged`, `attack.name_to_name` and `attack.name_near` (edit distance 1 or 2), each over all name
        tokens and by how often the name occurs. Chance: a random output as frequent as it comes out of the channel.
    """
    known = {form for name in names for form in words(name)} & channel.ids.keys()
    rows = np.array(sorted(channel.ids[form] for form in known), dtype=np.int64)
    rows = rows[counts[rows] > 0]
    if not rows.size:
        why = {"why": "no name is a word of the notes", "unit": "name tokens"}
        return [Finding("attack.name_to_name", None, 0, "lower", source=SOURCE, detail=why)]
    is_name = np.zeros(len(channel.words), dtype=np.bool_)
    is_name[[channel.ids[form] for form in known]] = True
    usual, spelling = _usual_outputs(channel, counts), _Spelling(channel.words)
    table = np.array([_shares(channel, row, is_name, usual, spelling.near(row)) for row in rows.tolist()])
    found = []
    for label, part in _bands(counts[rows]):
        for place, measure in enumerate(("name_unchanged", "name_to_name", "name_near")):
            found.append(_finding(measure, label, table[part, place], table[part, place + 3], counts[rows][part]))
    return found


def _bands(counts: NDArray[np.int64]) -> list[tuple[str, NDArray[np.bool_]]]:
    """All names, and those of each band of occurrences that holds one."""
    bands = [("all names", np.ones(counts.size, dtype=np.bool_))]
    for low, high in BANDS:
        inside = (counts >= low) & (counts <= (high or counts.max()))
        label = f"{low} occurrences" if low == high else f"{low}-{high} occurrences" if high else f"{low} or more"
        if inside.any():
            bands.append((label, inside))
    return bands


def _usual_outputs(channel: Channel, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_words,) how often each word comes out, over all tokens."""
    shares = counts / max(int(counts.sum()), 1)
    return np.asarray(channel.matrix()[:-1].T @ shares, dtype=np.float64).ravel()


def _shares(
    channel: Channel,
    row: int,
    is_name: NDArray[np.bool_],
    usual: NDArray[np.float64],
    near: NDArray[np.bool_],
) -> list[float]:
    """P(unchanged), P(another name), P(near) of the row's outputs, and of a usual output."""
    outputs, chances = channel.row(row)
    own = outputs == row
    real = [chances[own].sum(), chances[is_name[outputs] & ~own].sum(), chances[near[outputs]].sum()]
    total = usual.sum() or 1.0
    by_chance = [usual[row], usual[is_name].sum() - usual[row], usual[near].sum()]
    return [float(x) for x in real] + [float(x / total) for x in by_chance]


class _Spelling:
    """The letters of all words, end to end."""

    def __init__(self, words: Sequence[str]) -> None:
        self._codes = np.array([ord(letter) for word in words for letter in word], dtype=np.int32)
        self._starts = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)

    def near(self, row: int) -> NDArray[np.bool_]:
        """(n_words,) which other words are spelled almost like one."""
        near = _all_near(self._codes[self._starts[row] : self._starts[row + 1]], self._codes, self._starts)
        near[row] = False
        return np.asarray(near)


@njit(nogil=True)
def _all_near(word: NDArray[np.int32], codes: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    near = np.zeros(starts.size - 1, dtype=np.bool_)
    for i in range(starts.size - 1):
        if abs(starts[i + 1] - starts[i] - word.size) <= LETTERS:
            near[i] = within(word, codes[starts[i] : starts[i + 1]]) <= LETTERS
    return near


@njit(nogil=True)
def within(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Edit distance of two words (insert, delete, change one letter), or LETTERS + 1 where it is more.

    Source: Levenshtein 1966; in a band as by Ukkonen 1985.
    """
    if abs(one.size - other.size) > LETTERS:
        return LETTERS + 1
    row = np.arange(other.size + 1)
    for i in range(1, one.size + 1):
        corner, row[0] = row[0], i
        best = row[0]
        for j in range(1, other.size + 1):
            changed = corner + (0 if one[i - 1] == other[j - 1] else 1)
            corner = row[j]
            row[j] = min(changed, row[j] + 1, row[j - 1] + 1)
            best = min(best, row[j])
        if best > LETTERS:
            return LETTERS + 1
    return int(min(row[other.size], LETTERS + 1))


def _finding(
    measure: str, label: str, shares: NDArray[np.float64], chance: NDArray[np.float64], counts: NDArray[np.int64]
) -> Finding:
    detail: dict[str, Any] = {"label": label, "names": int(shares.size), "unit": "name tokens"}
    detail |= {"by_name": float(shares.mean()), "why": "exact for this channel: no interval"}
    return Finding(
        f"attack.{measure}",
        float(np.average(shares, weights=counts)),
        int(counts.sum()),
        "lower",
        chance=float(np.average(chance, weights=counts)),
        source=SOURCE,
        detail=detail,
    )
