"""Longest runs of words that two texts share, for each position, by a suffix automaton.

The automaton of a text accepts exactly its substrings, in at most 2n states. Other texts are
streamed through it, which marks how much of each substring class they contain. One sweep over the
suffix links then gives, for every position of the text, the longest run ending there that occurs in
a streamed text. Exact and linear in both; streamed texts are not stored. Source: Blumer et al.
1985, Theor. Comput. Sci. 40:31; matching statistics: Chang & Lawler 1994.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from clinveil.core import Ints, Mask, SmallInts, helper, kernel

BREAK = -2
ABSENT = -1
_NONE = -1


class _Graph(NamedTuple):
    """The automaton.

    `table` is a hash table of `edges` (from, word, to, next edge of the same state); `head` is the
    last edge of each state, `length` and `link` are the length and suffix link of each state,
    `prefix` the state of each prefix of the text.
    """

    table: SmallInts
    edges: SmallInts
    head: SmallInts
    length: SmallInts
    link: SmallInts
    prefix: SmallInts


@helper
def _slot(state: int, word: int, mask: int) -> int:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(word + 3) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    mixed ^= mixed >> np.uint64(29)
    return int(np.int64(mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask)


@helper
def _edge(state: int, word: int, graph: _Graph) -> int:
    """Return the edge from a state by a word, or -1."""
    mask = graph.table.size - 1
    place = _slot(state, word, mask)
    while graph.table[place] >= 0:
        edge = graph.table[place]
        if graph.edges[edge, 0] == state and graph.edges[edge, 1] == word:
            return edge
        place = (place + 1) & mask
    return -1


@helper
def _join(state: int, word: int, target: int, count: int, graph: _Graph) -> int:
    """Add an edge and return the new number of edges."""
    mask = graph.table.size - 1
    edges = graph.edges
    place = _slot(state, word, mask)
    while graph.table[place] >= 0:
        place = (place + 1) & mask
    graph.table[place] = count
    edges[count, 0] = state
    edges[count, 1] = word
    edges[count, 2] = target
    edges[count, 3] = graph.head[state]
    graph.head[state] = count
    return count + 1


@kernel
def _build(ids: SmallInts, graph: _Graph) -> int:
    """Build the automaton of `ids` and return the number of states."""
    edges = graph.edges
    length = graph.length
    link = graph.link
    states = 1
    count = 0
    last = 0
    for position in range(ids.size):
        word = ids[position]
        new = states
        states += 1
        length[new] = length[last] + 1
        at = last
        while at != _NONE and _edge(at, word, graph) < 0:
            count = _join(at, word, new, count, graph)
            at = link[at]
        if at == _NONE:
            link[new] = 0
        else:
            old = edges[_edge(at, word, graph), 2]
            if length[at] + 1 == length[old]:
                link[new] = old
            else:
                clone = states
                states += 1
                length[clone] = length[at] + 1
                link[clone] = link[old]
                edge = graph.head[old]
                while edge >= 0:
                    count = _join(clone, edges[edge, 1], edges[edge, 2], count, graph)
                    edge = edges[edge, 3]
                while at != _NONE:
                    edge = _edge(at, word, graph)
                    if edge < 0 or edges[edge, 2] != old:
                        break
                    edges[edge, 2] = clone
                    at = link[at]
                link[old] = link[new] = clone
        graph.prefix[position] = last = new
    return states


@kernel
def _stream(ids: SmallInts, graph: _Graph, reach: SmallInts, runs: SmallInts) -> None:
    """Run a text through the automaton.

    `runs` receives the longest run ending at each of its positions; `reach` keeps the longest run
    of each state.
    """
    state = 0
    run = 0
    for position in range(ids.size):
        word = ids[position]
        edge = -1
        if word >= 0:
            edge = _edge(state, word, graph)
            while edge < 0 and state != 0:
                state = graph.link[state]
                run = graph.length[state]
                edge = _edge(state, word, graph)
        if edge < 0:
            state = 0
            run = 0
        else:
            state = graph.edges[edge, 2]
            run += 1
            reach[state] = max(reach[state], run)
        runs[position] = run


@kernel
def _spread(graph: _Graph, reach: SmallInts, order: Ints) -> None:
    """Propagate reached lengths along suffix links; `order`: shortest states first."""
    length = graph.length
    link = graph.link
    for i in range(order.size - 1, 0, -1):
        state = order[i]
        if reach[state] > 0 and link[state] > 0:
            reach[link[state]] = length[link[state]]
    for i in range(1, order.size):
        state = order[i]
        if reach[state] == 0:
            reach[state] = reach[link[state]]


def in_runs(runs: SmallInts, span: int) -> Mask:
    """Return whether each position is in a run of at least `span`, (n,), from the run that ends at
    each position.
    """
    ends = np.flatnonzero(runs >= span)
    change = np.zeros(runs.size + 1, dtype=np.int64)
    np.add.at(change, ends - runs[ends] + 1, 1)
    np.add.at(change, ends + 1, -1)
    return np.cumsum(change[:-1]) > 0


class SuffixAutomaton:
    """All substrings of a text of word ids (BREAK between notes; runs do not cross it).

    Uses about 130 bytes a word.
    """

    def __init__(self, ids: SmallInts) -> None:
        n = max(ids.size, 1)
        table = np.full(1 << int(6 * n + 4).bit_length(), -1, dtype=np.int32)
        edges = np.zeros((3 * n + 2, 4), dtype=np.int32)
        prefix = np.zeros(ids.size, dtype=np.int32)
        head = np.full(2 * n + 1, -1, dtype=np.int32)
        length = np.full(2 * n + 1, 0, dtype=np.int32)
        link = np.full(2 * n + 1, 0, dtype=np.int32)
        link[0] = _NONE
        states = _build(ids, _Graph(table, edges, head, length, link, prefix))
        self._graph = _Graph(
            table, edges, head[:0], length[:states].copy(), link[:states].copy(), prefix
        )
        self._reach = np.zeros(states, dtype=np.int32)

    def stream(self, ids: SmallInts) -> SmallInts:
        """Stream another text; ids that do not occur in the automaton's text are ABSENT.

        Returns:
            (n,) the longest run ending at each position of that text that occurs in the automaton's
            text.
        """
        runs = np.zeros(ids.size, dtype=np.int32)
        _stream(ids, self._graph, self._reach, runs)
        return runs

    def fresh(self) -> SuffixAutomaton:
        """Return the same automaton (shared, not copied) without streamed texts."""
        other = copy(self)
        other._reach = np.zeros_like(self._reach)
        return other

    def runs(self) -> SmallInts:
        """Return the longest run of words ending at each position that occurs in a streamed text,
        (n,).
        """
        reach = self._reach.copy()
        _spread(self._graph, reach, np.argsort(self._graph.length, kind="stable"))
        return reach[self._graph.prefix]


class Vocabulary:
    """Word ids in order of first appearance.

    Attributes:
        unk: the id of words that were never added: ABSENT, which matches nothing, unless set.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self.unk = ABSENT

    def add(self, words: Sequence[str]) -> SmallInts:
        """Return the ids of the words; new words get new ids."""
        ids = self._ids
        return np.array([ids.setdefault(w, len(ids)) for w in words], dtype=np.int32)

    def ids(self, words: Sequence[str]) -> SmallInts:
        """Return the ids of the words; `unk` for words never added."""
        return np.array([self._ids.get(w, self.unk) for w in words], dtype=np.int32)


def separated(notes: Sequence[SmallInts]) -> SmallInts:
    """Concatenate notes, with BREAK after each."""
    stop = np.array([BREAK], dtype=np.int32)
    return np.concatenate([piece for note in notes for piece in (note, stop)]).astype(np.int32)
