"""Where matches of many patterns can begin, for all of them in one compiled pass over a note.

What a match must hold (`required.py`) says where to look, and its automaton (`automaton.py`) which of these places are
worth a try: nearly all fall away here, and what is left is tried by `re` itself, which alone decides.
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
"""ASCII characters, and all others as one more."""
OTHER = CLASSES - 1
_FAR = 32  # so many characters of a match are looked at
_ZERO, _NINE = 48, 57


class Automata(NamedTuple):
    """Many automata, one after the other.

    Attributes:
        first_of: of each automaton where its first positions begin in `first`; one more, where the last ones end.
        begins: the number of the first position of each automaton. before, heads: the rows of `chars` for what stands
            before it, and for what it begins with.
        takes: the row of `chars` of each position. ends: whether a match may end there.
        follow_of, follow: as `first_of` and `first`, of each position.
        chars: rows of classes of characters.
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


class Ways(NamedTuple):
    """How each pattern is tried, by its number.

    Attributes:
        lead: how many characters before a spot it may begin; -1 where it is tried all over a stretch.
        behind, ahead: rows of `chars` over which a stretch goes. most_behind, most_ahead: how far. reads_on: past it.
    """

    lead: Ints
    behind: Ints
    most_behind: Ints
    ahead: Ints
    most_ahead: Ints
    reads_on: Ints


class Triggers(NamedTuple):
    """What makes a spot of which pattern.

    Attributes:
        sign_of, sign: by class of character, the patterns of which it is a spot.
        digits, least: patterns, and how many digits in a row are a spot of each.
        run_of, run: by class of character, runs that may begin with it. run_automaton, run_pattern: of each run.
    """

    sign_of: Ints
    sign: Ints
    digits: Ints
    least: Ints
    run_of: Ints
    run: Ints
    run_automaton: Ints
    run_pattern: Ints


class Held(NamedTuple):
    """What words hold: by row, the patterns, and the first and last place in the word where a match's string stands."""

    row_of: Ints
    pattern: Ints
    first: Ints
    last: Ints


class State(NamedTuple):
    """Where the pass stands: of each pattern, scratch of the automata, and what was found.

    Attributes:
        tried: up to where a pattern was tried. begun, read, on: how far back and on was read for its stretches.
        left, right: its stretch that is not tried yet; none where `right` is negative. last: where what a match of it
            must hold stands last, so that none begins behind.
        now, then, seen: positions of an automaton here and one on; `mark` says when one was seen.
        found: pattern, start and end by place.
        total: how many were found, also without room; characters read for stretches; places tried.
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


def state(patterns: int, widest: int, room: int) -> State:
    """A pass that begins; `widest` are the positions of the largest automaton, `room` the places it can report."""
    tried, begun, read, left = np.zeros((4, patterns), np.int32)
    on, right, last = np.full((3, patterns), -1, np.int32)
    now, then, seen = np.zeros((3, widest + 1), np.int32)
    mark, found, total = np.zeros(1, np.int32), np.empty((3, room), np.int32), np.zeros(3, np.int64)
    return State(tried, begun, read, on, left, right, last, now, then, seen, mark, found, total)


@helper
def _first(text: Bytes, start: int, which: int, automata: Automata, state: State) -> int:
    """How many positions may take the first character; -1 where one of them may end a match."""
    count = 0
    for at in range(automata.first_of[which], automata.first_of[which + 1]):
        position = automata.first[at]
        if automata.chars[automata.takes[position], text[start]]:
            if automata.ends[position]:
                return -1
            state.now[count] = position
            count += 1
    return count


@helper
def _next(sign: int, count: int, base: int, automata: Automata, state: State) -> int:
    """The same of the next character, from the positions of the last one."""
    state.mark[0] += 1
    met = 0
    for one in range(count):
        for at in range(automata.follow_of[state.now[one]], automata.follow_of[state.now[one] + 1]):
            position = automata.follow[at]
            if automata.chars[automata.takes[position], sign] and state.seen[position - base] != state.mark[0]:
                if automata.ends[position]:
                    return -1
                state.seen[position - base] = state.mark[0]
                state.then[met] = position
                met += 1
    for one in range(met):
        state.now[one] = state.then[one]
    return met


@helper
def _goes_on(text: Bytes, start: int, end: int, which: int, automata: Automata, state: State) -> int:
    """Where the shortest match at a place would end, or as far as it was looked; -1 where none can begin."""
    if automata.first_of[which] == automata.first_of[which + 1]:  # an automaton that was too large
        return start + 1
    free = start == 0 or text[start] == OTHER
    if not (free or automata.chars[automata.before[which], text[start - 1]]):
        return -1
    count, here = _first(text, start, which, automata, state), start + 1
    while count > 0 and here < end and here < start + _FAR:
        count = _next(text[here], count, automata.begins[which], automata, state)
        here += 1
    return here if count < 0 or (count > 0 and here == start + _FAR) else -1


@helper
def _try(
    text: Bytes, pattern: int, start: int, stop: int, end: int, automata: Automata, state: State
) -> None:  # fmt: skip
    """Report the places from `start` to `stop` where a pattern may begin that ends before `end`."""
    state.total[2] += max(0, stop - start)
    head = automata.heads[pattern]
    for place in range(start, stop):
        if automata.chars[head, text[place]] and _goes_on(text, place, end, pattern, automata, state) >= 0:
            at = state.total[0]
            if at < state.found.shape[1]:
                state.found[0, at], state.found[1, at], state.found[2, at] = pattern, place, end
            state.total[0] += 1


@helper
def _try_stretch(text: Bytes, pattern: int, automata: Automata, state: State) -> None:
    right = state.right[pattern]
    _try(text, pattern, state.left[pattern], min(right, state.last[pattern] + 1), right, automata, state)


@helper
def _stretch(
    text: Bytes, pattern: int, start: int, end: int, last: int, ways: Ways, automata: Automata, state: State
) -> None:  # fmt: skip
    """Join what a match about a spot can reach to the pattern's stretch, or try that and begin a new one.

    The spots of a pattern rise. What was read for one of them is not read again for the next, or a text full of them
    would take the square of its length.
    """
    back, behind, ahead = start, ways.behind[pattern], ways.ahead[pattern]
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
    low = max(state.begun[pattern], start - ways.most_behind[pattern])
    high = min(text.size, end + min(ways.most_ahead[pattern], on - end) + ways.reads_on[pattern])
    if low > state.right[pattern]:
        _try_stretch(text, pattern, automata, state)
        state.left[pattern] = low
    state.right[pattern], state.last[pattern] = max(state.right[pattern], high), last


@helper
def _spot(
    text: Bytes, pattern: int, first: int, last: int, start: int, end: int, ways: Ways, automata: Automata, state: State
) -> None:  # fmt: skip
    """Take in what a match must hold: it begins in [first, last], or about [start, end)."""
    lead = ways.lead[pattern]
    if lead < 0:
        _stretch(text, pattern, start, end, last, ways, automata, state)
    else:
        _try(text, pattern, max(first - lead, state.tried[pattern]), last + 1, text.size, automata, state)
        state.tried[pattern] = max(state.tried[pattern], last + 1)


@helper
def _sign(text: Bytes, at: int, triggers: Triggers, ways: Ways, automata: Automata, state: State) -> None:
    """The spots of one character, and of the runs that begin with it."""
    sign = text[at]
    for number in range(triggers.sign_of[sign], triggers.sign_of[sign + 1]):
        _spot(text, triggers.sign[number], at, at, at, at + 1, ways, automata, state)
    for number in range(triggers.run_of[sign], triggers.run_of[sign + 1]):
        run = triggers.run[number]
        end = _goes_on(text, at, text.size, triggers.run_automaton[run], automata, state)
        if end >= 0:
            _spot(text, triggers.run_pattern[run], at, at, at, end, ways, automata, state)


@helper
def _digits(text: Bytes, at: int, triggers: Triggers, ways: Ways, automata: Automata, state: State) -> int:
    """The spots of a run of digits, and where it ends; characters that are not ASCII count as digits."""
    end = at
    while end < text.size and (_ZERO <= text[end] <= _NINE or text[end] == OTHER):
        end += 1
    for number in range(triggers.digits.size if end > at else 0):
        if end - at >= triggers.least[number]:
            _spot(text, triggers.digits[number], at, end - 1, at, end, ways, automata, state)
    return max(end, at + 1)


@kernel
def find_match_starts(
    text: Bytes, word_starts: Ints, word_ends: Ints, rows: Ints, held: Held, triggers: Triggers, ways: Ways,
    automata: Automata, state: State,
) -> None:  # fmt: skip
    """Leave in `state.found` the places where a match may begin, and how far it may read; they rise for each pattern.

    Args:
        text: the class of each character. rows: of `held`, of each word.
    """
    for word in range(rows.size):
        begin = word_starts[word]
        for at in range(held.row_of[rows[word]], held.row_of[rows[word] + 1]):
            first, last = begin + held.first[at], begin + held.last[at]
            _spot(text, held.pattern[at], first, last, begin, word_ends[word], ways, automata, state)
    digits = 0
    for at in range(text.size):
        _sign(text, at, triggers, ways, automata, state)
        if at >= digits:
            digits = _digits(text, at, triggers, ways, automata, state)
    for pattern in range(ways.lead.size):
        _try_stretch(text, pattern, automata, state)
