"""The longest run of words that two texts share, position by position, by a suffix automaton.

The automaton of a text accepts exactly its substrings, in at most 2n states; streaming other texts through it marks
how much of each substring class they hold, and one sweep over the suffix links gives, for every position of the text,
the longest run ending there that any of the streamed texts holds. Exact; linear in both; the streamed texts are never
kept. Source: Blumer et al. 1985, Theor. Comput. Sci. 40:31; matching statistics: Chang & Lawler 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ids = NDArray[np.int32]
BREAK, ABSENT = -2, -1
_NONE = -1


@njit(nogil=True)
def _slot(state: int, word: int, mask: int) -> int:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(word + 3) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    return int(np.int64(mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask)


@njit(nogil=True)
def _edge(state: int, word: int, table: Ids, edges: Ids) -> int:
    """The edge from a state by a word, or -1."""
    mask = table.size - 1
    place = _slot(state, word, mask)
    while table[place] >= 0:
        edge = table[place]
        if edges[edge, 0] == state and edges[edge, 1] == word:
            return edge
        place = (place + 1) & mask
    return -1


@njit(nogil=True)
def _join(state: int, word: int, target: int, count: int, table: Ids, edges: Ids, head: Ids) -> int:
    """Add an edge, last of `count`; returns the new count. Edges: from, word, to, next edge of the same state."""
    mask = table.size - 1
    place = _slot(state, word, mask)
    while table[place] >= 0:
        place = (place + 1) & mask
    table[place] = count
    edges[count, 0], edges[count, 1], edges[count, 2], edges[count, 3] = state, word, target, head[state]
    head[state] = count
    return count + 1


@njit(nogil=True)
def _build(ids: Ids, table: Ids, edges: Ids, head: Ids, length: Ids, link: Ids, prefix: Ids) -> int:
    """Fill the automaton of `ids`; `prefix` gets the state of each prefix. Returns the number of states."""
    states, count, last = 1, 0, 0
    for position in range(ids.size):
        word = ids[position]
        new = states
        states += 1
        length[new] = length[last] + 1
        at = last
        while at != _NONE and _edge(at, word, table, edges) < 0:
            count = _join(at, word, new, count, table, edges, head)
            at = link[at]
        if at == _NONE:
            link[new] = 0
        else:
            old = edges[_edge(at, word, table, edges), 2]
            if length[at] + 1 == length[old]:
                link[new] = old
            else:
                clone = states
                states += 1
                length[clone], link[clone] = length[at] + 1, link[old]
                edge = head[old]
                while edge >= 0:
                    count = _join(clone, edges[edge, 1], edges[edge, 2], count, table, edges, head)
                    edge = edges[edge, 3]
                while at != _NONE:
                    edge = _edge(at, word, table, edges)
                    if edge < 0 or edges[edge, 2] != old:
                        break
                    edges[edge, 2] = clone
                    at = link[at]
                link[old] = link[new] = clone
        prefix[position] = last = new
    return states


@njit(nogil=True)
def _stream(ids: Ids, table: Ids, edges: Ids, length: Ids, link: Ids, reach: Ids) -> None:
    """Run a text through the automaton; `reach` keeps the longest run of each state that it holds."""
    state, run = 0, 0
    for position in range(ids.size):
        word = ids[position]
        edge = -1
        if word >= 0:
            edge = _edge(state, word, table, edges)
            while edge < 0 and state != 0:
                state = link[state]
                run = length[state]
                edge = _edge(state, word, table, edges)
        if edge < 0:
            state, run = 0, 0
        else:
            state = edges[edge, 2]
            run += 1
            reach[state] = max(reach[state], run)


@njit(nogil=True)
def _matches(ids: Ids, table: Ids, edges: Ids, length: Ids, link: Ids, found: Ids) -> None:
    """Run a text through the automaton; `found` gets the longest run ending at each of its own positions."""
    state, run = 0, 0
    for position in range(ids.size):
        word = ids[position]
        edge = -1
        if word >= 0:
            edge = _edge(state, word, table, edges)
            while edge < 0 and state != 0:
                state = link[state]
                run = length[state]
                edge = _edge(state, word, table, edges)
        if edge < 0:
            state, run = 0, 0
        else:
            state = edges[edge, 2]
            run += 1
        found[position] = run


@njit(nogil=True)
def _runs(prefix: Ids, length: Ids, link: Ids, reach: Ids, order: NDArray[np.int64]) -> Ids:
    """The longest run ending at each position: what a state reached, else what its suffix link reached."""
    for i in range(order.size - 1, 0, -1):
        state = order[i]
        if reach[state] > 0 and link[state] > 0:
            reach[link[state]] = length[link[state]]
    for i in range(1, order.size):
        state = order[i]
        if reach[state] == 0:
            reach[state] = reach[link[state]]
    return reach[prefix]


def in_runs(runs: Ids, span: int) -> NDArray[np.bool_]:
    """(n,) whether each position stands in a run of at least `span`, from the run that ends at each position."""
    ends = np.flatnonzero(runs >= span)
    change = np.zeros(runs.size + 1, dtype=np.int64)
    np.add.at(change, ends - runs[ends] + 1, 1)
    np.add.at(change, ends + 1, -1)
    return np.cumsum(change[:-1]) > 0


class Automaton:
    """All substrings of a text of word ids (BREAK between notes; runs do not cross it).

    Takes about 130 bytes a word.
    """

    def __init__(self, ids: Ids) -> None:
        n = max(ids.size, 1)
        self._edges = np.zeros((3 * n + 2, 4), dtype=np.int32)
        self._table = np.full(1 << int(6 * n + 4).bit_length(), -1, dtype=np.int32)
        self._length, self._link = np.zeros(2 * n + 1, dtype=np.int32), np.zeros(2 * n + 1, dtype=np.int32)
        self._link[0] = _NONE
        self._prefix = np.zeros(ids.size, dtype=np.int32)
        head = np.full(2 * n + 1, -1, dtype=np.int32)
        states = _build(ids, self._table, self._edges, head, self._length, self._link, self._prefix)
        self._length, self._link = self._length[:states].copy(), self._link[:states].copy()
        self._reach = np.zeros(states, dtype=np.int32)

    def stream(self, ids: Ids) -> None:
        """Take in one other text; ids that the automaton's text lacks are ABSENT."""
        _stream(ids, self._table, self._edges, self._length, self._link, self._reach)

    def matches(self, ids: Ids) -> Ids:
        """(n,) the longest run ending at each position of another text that the automaton's text holds; not kept."""
        found = np.zeros(ids.size, dtype=np.int32)
        _matches(ids, self._table, self._edges, self._length, self._link, found)
        return found

    def anew(self) -> Automaton:
        """The same automaton (shared, not copied), with nothing streamed yet."""
        other = copy(self)
        other._reach = np.zeros_like(self._reach)
        return other

    def runs(self) -> Ids:
        """(n,) the longest run of words ending at each position that some streamed text holds."""
        order = np.argsort(self._length, kind="stable")
        return np.asarray(_runs(self._prefix, self._length, self._link, self._reach.copy(), order))


class Numbering:
    """Word ids by first sight.

    Attributes:
        other: the id of words never learnt: ABSENT, which matches nothing, unless set.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self.other = ABSENT

    def learn(self, words: Sequence[str]) -> Ids:
        """Ids of the words, new ones numbered."""
        ids = self._ids
        return np.array([ids.setdefault(w, len(ids)) for w in words], dtype=np.int32)

    def ids(self, words: Sequence[str]) -> Ids:
        """Ids of the words, `other` for those never learnt."""
        return np.array([self._ids.get(w, self.other) for w in words], dtype=np.int32)


def common_runs(text: Ids, others: Iterable[Ids]) -> Ids:
    """(n,) the longest run of words ending at each position of `text` that some other text holds, exactly."""
    automaton = Automaton(text)
    for other in others:
        automaton.stream(other)
    return automaton.runs()
