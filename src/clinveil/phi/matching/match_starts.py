"""Offsets at which matches of many patterns can begin, computed in one compiled pass over a note.

The anchors of a pattern (`required.py`) give candidate offsets, and its automaton (`automaton.py`) rejects most of
them. The remaining offsets are tried with `re`, which decides on the match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import helper, kernel

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

CLASSES = 129
"""Number of character classes: one per ASCII character, and one for all others."""
OTHER = CLASSES - 1
_FAR = 32  # number of characters of a match that the automaton reads
_ZERO, _NINE = 48, 57


class Automata(NamedTuple):
    """Concatenated automata.

    Attributes:
        first_of: start of each automaton's first positions in `first`, and the end of the last ones.
        begins: number of the first position of each automaton. before, heads: rows of `chars` for the characters
            before a match and for its first character.
        takes: row of `chars` of each position. ends: whether a match can end at each position.
        follow_of, follow: like `first_of` and `first`, for each position.
        chars: one row of character classes per set.
    """

    first_of: Ints
    first: Ints
    begins: Ints
    before: Ints
    heads: Ints
    takes: Ints
    ends: Bools
    follow_of: Ints
    follow: Ints
    chars: Bools


class Windows(NamedTuple):
    """Search window of each pattern around its anchor, by pattern number.

    Attributes:
        lead: largest distance from the start of a match to the anchor; -1 if the whole window is searched.
        behind, ahead: rows of `chars` that the window can contain before and after the anchor. most_behind, most_ahead:
            its largest widths. reads_on: number of characters that assertions read past it.
    """

    lead: Ints
    behind: Ints
    most_behind: Ints
    ahead: Ints
    most_ahead: Ints
    reads_on: Ints


class Triggers(NamedTuple):
    """Characters and runs that are anchors of patterns.

    Attributes:
        sign_of, sign: by character class, the patterns that have the character as anchor.
        digits, least: patterns that have a run of digits as anchor, and its smallest length.
        run_of, run: by character class, the runs that can begin with it. run_automaton, run_pattern: of each run.
    """

    sign_of: Ints
    sign: Ints
    digits: Ints
    least: Ints
    run_of: Ints
    run: Ints
    run_automaton: Ints
    run_pattern: Ints


class WordAnchors(NamedTuple):
    """Anchors in words: by row, the patterns, and the first and last offset of their strings in the word."""

    row_of: Ints
    pattern: Ints
    first: Ints
    last: Ints


class State(NamedTuple):
    """State of the pass: per pattern, scratch memory of the automata, and the results.

    Attributes:
        tried: end of the offsets already tried. begun, read, on: start and end of the text read for its windows.
        left, right: its pending window; none if `right` is negative. last: offset of the last anchor in the window;
            no match begins after it.
        now, then: current and next positions of an automaton. seen, mark: step in which a position was last added.
        found: pattern, start and end of each candidate.
        total: number of candidates, including those over capacity; characters read for windows; offsets tried.
    """

    tried: Ints
    begun: Ints
    read: Ints
    on: Ints
    left: Ints
    right: Ints
    last: Ints
    now: Ints
    then: Ints
    seen: Ints
    mark: Ints
    found: Ints
    total: NDArray[np.int64]


def state(patterns: int, widest: int, capacity: int) -> State:
    """Return an initial state; `widest`: positions of the largest automaton, `capacity`: candidates that fit."""
    tried, begun, read, left = np.zeros((4, patterns), np.int32)
    on, right, last = np.full((3, patterns), -1, np.int32)
    now, then, seen = np.zeros((3, widest + 1), np.int32)
    mark, found, total = np.zeros(1, np.int32), np.empty((3, capacity), np.int32), np.zeros(3, np.int64)
    return State(tried, begun, read, on, left, right, last, now, then, seen, mark, found, total)


@helper
def _first(text: Bytes, start: int, number: int, automata: Automata, state: State) -> int:
    """Return the number of positions that accept the first character; -1 if one of them can end a match."""
    count = 0
    for index in range(automata.first_of[number], automata.first_of[number + 1]):
        position = automata.first[index]
        if automata.chars[automata.takes[position], text[start]]:
            if automata.ends[position]:
                return -1
            state.now[count] = position
            count += 1
    return count


@helper
def _next(sign: int, count: int, base: int, automata: Automata, state: State) -> int:
    """Return the same for the next character, from the current positions."""
    state.mark[0] += 1
    accepted = 0
    for current in range(count):
        for index in range(automata.follow_of[state.now[current]], automata.follow_of[state.now[current] + 1]):
            position = automata.follow[index]
            if automata.chars[automata.takes[position], sign] and state.seen[position - base] != state.mark[0]:
                if automata.ends[position]:
                    return -1
                state.seen[position - base] = state.mark[0]
                state.then[accepted] = position
                accepted += 1
    for index in range(accepted):
        state.now[index] = state.then[index]
    return accepted


@helper
def _accepts(text: Bytes, start: int, end: int, number: int, automata: Automata, state: State) -> int:
    """Return the end of the shortest match at an offset, or of the text read; -1 if no match can begin there."""
    if automata.first_of[number] == automata.first_of[number + 1]:  # the automaton was too large
        return start + 1
    unrestricted = start == 0 or text[start] == OTHER
    if not (unrestricted or automata.chars[automata.before[number], text[start - 1]]):
        return -1
    count, position = _first(text, start, number, automata, state), start + 1
    while count > 0 and position < end and position < start + _FAR:
        count = _next(text[position], count, automata.begins[number], automata, state)
        position += 1
    return position if count < 0 or (count > 0 and position == start + _FAR) else -1


@helper
def _try(
    text: Bytes, pattern: int, start: int, stop: int, end: int, automata: Automata, state: State
) -> None:  # fmt: skip
    """Record the offsets from `start` to `stop` at which a match that ends before `end` can begin."""
    state.total[2] += max(0, stop - start)
    head = automata.heads[pattern]
    for offset in range(start, stop):
        if automata.chars[head, text[offset]] and _accepts(text, offset, end, pattern, automata, state) >= 0:
            index = state.total[0]
            if index < state.found.shape[1]:
                state.found[0, index], state.found[1, index], state.found[2, index] = pattern, offset, end
            state.total[0] += 1


@helper
def _try_window(text: Bytes, pattern: int, automata: Automata, state: State) -> None:
    right = state.right[pattern]
    _try(text, pattern, state.left[pattern], min(right, state.last[pattern] + 1), right, automata, state)


@helper
def _extend_window(
    text: Bytes, pattern: int, start: int, end: int, last: int, windows: Windows, automata: Automata, state: State
) -> None:  # fmt: skip
    """Add the text that a match around an anchor can reach to the pattern's window, or try it and begin a new one.

    The anchors of a pattern come in increasing order. Text read for one anchor is not read again for the next one, so
    the time is linear in the length of a text with many anchors.
    """
    back, behind, ahead = start, windows.behind[pattern], windows.ahead[pattern]
    while back > state.read[pattern] and automata.chars[behind, text[back - 1]]:
        back -= 1
    state.total[1] += start - back
    if back > state.read[pattern]:
        state.begun[pattern] = back
    state.read[pattern] = start
    on = state.on[pattern]
    if on < end:
        on = end
        while on < text.size and automata.chars[ahead, text[on]]:
            on += 1
        state.total[1] += on - end
        state.on[pattern] = on
    low = max(state.begun[pattern], start - windows.most_behind[pattern])
    high = min(text.size, end + min(windows.most_ahead[pattern], on - end) + windows.reads_on[pattern])
    if low > state.right[pattern]:
        _try_window(text, pattern, automata, state)
        state.left[pattern] = low
    state.right[pattern], state.last[pattern] = max(state.right[pattern], high), last


@helper
def _add_anchor(
    text: Bytes, pattern: int, first: int, last: int, start: int, end: int, windows: Windows, automata: Automata,
    state: State,
) -> None:  # fmt: skip
    """Process an anchor: its first character is in [first, last], its text in [start, end)."""
    lead = windows.lead[pattern]
    if lead < 0:
        _extend_window(text, pattern, start, end, last, windows, automata, state)
    else:
        _try(text, pattern, max(first - lead, state.tried[pattern]), last + 1, text.size, automata, state)
        state.tried[pattern] = max(state.tried[pattern], last + 1)


@helper
def _sign(text: Bytes, offset: int, triggers: Triggers, windows: Windows, automata: Automata, state: State) -> None:
    """Process the anchors at one character: the character itself, and runs that begin with it."""
    sign = text[offset]
    for number in range(triggers.sign_of[sign], triggers.sign_of[sign + 1]):
        _add_anchor(text, triggers.sign[number], offset, offset, offset, offset + 1, windows, automata, state)
    for number in range(triggers.run_of[sign], triggers.run_of[sign + 1]):
        run = triggers.run[number]
        end = _accepts(text, offset, text.size, triggers.run_automaton[run], automata, state)
        if end >= 0:
            _add_anchor(text, triggers.run_pattern[run], offset, offset, offset, end, windows, automata, state)


@helper
def _digits(text: Bytes, offset: int, triggers: Triggers, windows: Windows, automata: Automata, state: State) -> int:
    """Process the anchors at a run of digits; return its end. Non-ASCII characters count as digits."""
    end = offset
    while end < text.size and (_ZERO <= text[end] <= _NINE or text[end] == OTHER):
        end += 1
    for number in range(triggers.digits.size if end > offset else 0):
        if end - offset >= triggers.least[number]:
            _add_anchor(text, triggers.digits[number], offset, end - 1, offset, end, windows, automata, state)
    return max(end, offset + 1)


@kernel
def find_match_starts(
    text: Bytes, word_starts: Ints, word_ends: Ints, rows: Ints, word_anchors: WordAnchors, triggers: Triggers,
    windows: Windows, automata: Automata, state: State,
) -> None:  # fmt: skip
    """Fill `state.found` with the offsets where a match can begin and the ends of its text, sorted per pattern.

    Args:
        text: character classes. rows: row of `word_anchors` of each word.
    """
    for word in range(rows.size):
        begin = word_starts[word]
        for index in range(word_anchors.row_of[rows[word]], word_anchors.row_of[rows[word] + 1]):
            first, last = begin + word_anchors.first[index], begin + word_anchors.last[index]
            pattern = word_anchors.pattern[index]
            _add_anchor(text, pattern, first, last, begin, word_ends[word], windows, automata, state)
    digits = 0
    for offset in range(text.size):
        _sign(text, offset, triggers, windows, automata, state)
        if offset >= digits:
            digits = _digits(text, offset, triggers, windows, automata, state)
    for pattern in range(windows.lead.size):
        _try_window(text, pattern, automata, state)
