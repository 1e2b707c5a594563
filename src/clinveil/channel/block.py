"""The four passes of the hot loop over a block of tokens of one note: read, look up, draw, write; compiled.

Each pass is short and its steps do not wait for one another, so the misses of the cache overlap; one loop that does
all four for each token takes four times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel import tally as count
from clinveil.channel.compiled import compiled_helper
from clinveil.channel.draws import Draws, draw
from clinveil.channel.foreign import Foreign
from clinveil.channel.scan import Alphabet, code_point, number_end, space_end, word_end
from clinveil.channel.siphash import siphash_bytes, siphash_word
from clinveil.channel.vocabulary import Vocabulary, find
from clinveil.tokens import Kind

_WORD, _NUMBER, _SPACE, _PUNCT = int(Kind.WORD), int(Kind.NUMBER), int(Kind.SPACE), int(Kind.PUNCT)
_MASK_SIGN = ord("#")
_BLANK, _LINE = 1, 2  # of a token's gap; the greater wins
_NOTHING = 0  # KIND of a token that leaves no trace; LAST at the start of a note
Block = NDArray[np.int64]  # (TOKENS, FIELDS)
State = NDArray[np.int64]  # (STATE,)

# The loop's state: the counts of tokens, then these. From LAST on it starts anew with each note.
# WRITTEN: bytes. FOREIGN: non-ASCII words met. ALIGNED: words written. LAST: kind of the token written last. GAP: the
# white space since. POSITION: words read. POINT: code points read.
WRITTEN, FOREIGN, ALIGNED, LAST, GAP, POSITION, POINT, STATE = range(count.COUNTERS, count.COUNTERS + 8)
# A token in a block: its kind, the white space before it, its bytes, its code points; for a word, what it is found by
# and then what it is drawn with; whether it is ASCII, and then its row. Once drawn, its bytes are those of the output.
TOKENS = 256
_KIND, _GAP, _START, _END, _FIRST, _POINTS, _VALUE, _ROW, FIELDS = range(9)


class Released(NamedTuple):
    """Where the loop writes.

    Attributes:
        data: uint8; offsets: (n + 1,) int64, of the released texts.
        starts, ends: int32 code points of the source word of each released word; empty if not asked for.
        aligned: (n + 1,) int64, the notes' places in these two.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    aligned: NDArray[np.int64]


@compiled_helper
def read_block(
    data: NDArray[np.uint8], i: int, end: int, letters: Alphabet, keep: bool, mask: bool, block: Block, state: State
) -> tuple[int, int]:
    """Read tokens from byte i until the block is full; where it stopped, and how many of them may leave a trace."""
    kinds, lower = letters.kinds, letters.lower
    n = 0
    while i < end and n < TOKENS:
        code, width = code_point(data, i)
        kind = kinds[code]
        start, points, leaves_trace = i, 1, False
        if kind == _WORD:
            i, points, value, is_ascii = word_end(data, i, end, kinds, lower)
            block[n, _VALUE], block[n, _ROW] = np.int64(value), is_ascii
            leaves_trace = True
        elif kind == _SPACE:
            i, points, breaks = space_end(data, i, end, kinds)
            state[GAP] = max(state[GAP], _LINE if breaks else _BLANK)
        elif kind == _NUMBER:
            i, points = number_end(data, i, end, kinds)
            state[count.NUMBERS] += 1
            leaves_trace = mask
        else:
            i += width
            state[count.PUNCT if kind == _PUNCT else count.OTHER] += 1
            leaves_trace = keep and kind == _PUNCT and code < 0x80
        if leaves_trace:
            block[n, _KIND], block[n, _GAP], block[n, _START], block[n, _END] = kind, state[GAP], start, i
            block[n, _FIRST], block[n, _POINTS] = state[POINT], points
            state[GAP] = 0
            n += 1
        state[POINT] += points
    return i, n


@compiled_helper
def look_up_block(
    data: NDArray[np.uint8],
    block: Block,
    n: int,
    lower: NDArray[np.uint8],
    words: Vocabulary,
    foreign: Foreign,
    by_word: bool,
    form_key: tuple[np.uint64, np.uint64],
    state: State,
) -> None:
    """Find each word's row, and what to draw it with: its position in the note, or the hash of its lookup form."""
    slots, spellings, places, forms = words.slots, words.data, words.offsets, words.forms
    for t in range(n):
        if block[t, _KIND] != _WORD:
            continue
        form = np.uint64(state[POSITION])
        state[POSITION] += 1
        if block[t, _ROW]:
            start, end = block[t, _START], block[t, _END]
            row = find(slots, spellings, places, data, start, end, np.uint64(block[t, _VALUE]), lower)
            if by_word and row >= 0:
                form = forms[row]
            elif by_word:
                form = siphash_bytes(form_key[0], form_key[1], data, start, end, lower)
        else:
            row = np.int64(foreign.rows[state[FOREIGN]])
            form = foreign.forms[state[FOREIGN]] if by_word else form
            state[FOREIGN] += 1
        state[count.UNKNOWN if row < 0 else count.KNOWN] += 1
        block[t, _ROW] = places.size - 1 if row < 0 else row
        block[t, _VALUE] = np.int64(form)


@compiled_helper
def draw_block(
    block: Block, n: int, words: Vocabulary, draws: Draws, k0: np.uint64, k1: np.uint64, state: State
) -> int:
    """Draw each word's output; how many bytes the block will take at most."""
    places, kept = words.offsets, words.kept
    indptr, indices, limits = draws.indptr, draws.indices, draws.limits
    need = 0
    for t in range(n):
        need += block[t, _POINTS] + 1  # a mask is as long as its number, a mark is one byte
        if block[t, _KIND] != _WORD:
            continue
        row = block[t, _ROW]
        drawn = draw(indptr, indices, limits, row, siphash_word(k0, k1, np.uint64(block[t, _VALUE])))
        if drawn < 0:
            state[count.DROPPED] += 1
            block[t, _KIND] = _NOTHING
            continue
        is_kept = drawn == row and kept[row]
        state[count.KEPT] += is_kept
        state[count.REPLACED] += not is_kept
        state[count.SELF] += drawn == row and not is_kept
        block[t, _START], block[t, _END] = places[drawn], places[drawn + 1]
        need += places[drawn + 1] - places[drawn]
    return need


@compiled_helper
def write_block(
    data: NDArray[np.uint8],
    block: Block,
    n: int,
    spellings: NDArray[np.uint8],
    keep: bool,
    align: bool,
    out: Released,
    state: State,
) -> None:
    """Write the block's tokens, what stands between them, and where they came from."""
    buffer, written, last, gap = out.data, state[WRITTEN], state[LAST], 0
    for t in range(n):
        kind, start, gap = block[t, _KIND], block[t, _START], max(gap, block[t, _GAP])
        if kind == _NOTHING:
            continue
        if not keep or (gap == 0 and last == kind and kind != _PUNCT):
            gap = _BLANK  # two words or two masks would else become one
        if last != _NOTHING and gap > 0:
            buffer[written] = 0x20 if gap == _BLANK else 0x0A
            written += 1
        length = block[t, _END] - start
        if kind == _WORD:
            for i in range(length):
                buffer[written + i] = spellings[start + i]
            if align:
                out.starts[state[ALIGNED]] = block[t, _FIRST]
                out.ends[state[ALIGNED]] = block[t, _FIRST] + block[t, _POINTS]
            state[ALIGNED] += 1
        elif kind == _NUMBER:
            length = block[t, _POINTS]
            for i in range(length):
                buffer[written + i] = _MASK_SIGN
            state[count.MASKED] += 1
        else:
            buffer[written] = data[start]
        written += length
        last, gap = kind, 0
        state[count.RELEASED] += kind != _PUNCT
    state[WRITTEN], state[LAST], state[GAP] = written, last, max(gap, state[GAP])
