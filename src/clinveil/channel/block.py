"""The four passes of the hot loop over a block of tokens of one note: read, look up, draw, write; compiled.

Each pass is short and its steps do not wait for one another, so the misses of the cache overlap. One loop that did all
four, token by token, would wait for each miss in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel import tally as count
from clinveil.channel.compiled import compiled_helper, store_eight
from clinveil.channel.draws import Draws, part
from clinveil.channel.foreign import Foreign
from clinveil.channel.scan import Alphabet, code_point, run_end, word_end
from clinveil.channel.siphash import siphash_bytes, siphash_word
from clinveil.channel.vocabulary import CELL, FIRST, FORM, KEPT, LENGTH, PATTERN, SECOND, SIZE, START, Vocabulary, find
from clinveil.core.tokens import Kind

_WORD, _NUMBER, _SPACE, _PUNCT = int(Kind.WORD), int(Kind.NUMBER), int(Kind.SPACE), int(Kind.PUNCT)
_MASK_SIGN = ord("#")
_BLANK, _LINE = 1, 2  # of a token's gap; the greater wins
_NOTHING = 0  # KIND of a token that leaves no trace; LAST at the start of a note
_LOW = np.uint64(0xFFFFFFFF)
Block = NDArray[np.int64]  # (FIELDS, TOKENS)
State = NDArray[np.int64]  # (STATE,)

# The loop's state: the counts of tokens, then these. From LAST on it starts anew with each note.
# WRITTEN: bytes. FOREIGN: non-ASCII words met. ALIGNED: words written. LAST: kind of the token written last. GAP: the
# white space since. POSITION: words read. POINT: code points read.
WRITTEN, FOREIGN, ALIGNED, LAST, GAP, POSITION, POINT, STATE = range(count.COUNTERS, count.COUNTERS + 8)
# A token in a block: its kind, the white space before it, its bytes, its code points; for a word, what it is found by
# (its hash, its first and its second eight letters) and then what it is drawn with; whether it is ASCII, then its row,
# and then the row of its output.
TOKENS = 250
_KIND, _GAP, _START, _END, _FIRST, _POINTS, _VALUE, _LETTERS, _MORE, _ROW, _ENTRY, _DRAWN, FIELDS = range(13)


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
            i, points, is_ascii, value, first, second = word_end(data, i, end, kinds, lower)
            block[_ROW, n], block[_VALUE, n] = is_ascii, np.int64(value)
            block[_LETTERS, n], block[_MORE, n] = np.int64(first), np.int64(second)
            leaves_trace = True
        elif kind == _SPACE:
            i, points, breaks = run_end(data, i, end, kinds, kind)
            state[GAP] = max(state[GAP], _LINE if breaks else _BLANK)
        elif kind == _NUMBER:
            i, points, _ = run_end(data, i, end, kinds, kind)
            state[count.NUMBERS] += 1
            leaves_trace = mask
        else:
            i += width
            state[count.PUNCT if kind == _PUNCT else count.OTHER] += 1
            leaves_trace = keep and kind == _PUNCT and code < 0x80
        if leaves_trace:
            block[_KIND, n], block[_GAP, n], block[_START, n], block[_END, n] = kind, state[GAP], start, i
            block[_FIRST, n], block[_POINTS, n] = state[POINT], points
            state[GAP] = 0
            n += 1
        state[POINT] += points
    return i, n


@compiled_helper
def fetch_block(block: Block, n: int, words: Vocabulary) -> None:
    """Touch what the look-up will most likely need: many misses of the cache at once, instead of one by one."""
    slots, cells = words.slots, words.cells
    mask = slots.size - 1
    for t in range(n):
        block[_ENTRY, t] = np.int64(slots[block[_VALUE, t] & mask] & _LOW)
    for t in range(n):
        block[_ENTRY, t] = np.int64(cells[max(block[_ENTRY, t] - 1, 0), FORM])


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
    unknown, cells = words.offsets.size - 1, words.cells
    for t in range(n):
        if block[_KIND, t] != _WORD:
            continue
        form = np.uint64(state[POSITION])
        state[POSITION] += 1
        if block[_ROW, t]:
            start, end, value = block[_START, t], block[_END, t], np.uint64(block[_VALUE, t])
            first, second = np.uint64(block[_LETTERS, t]), np.uint64(block[_MORE, t])
            row = find(words, data, start, end - start, value, first, second, lower)
            if by_word and row >= 0:
                form = cells[row, FORM]
            elif by_word:
                form = siphash_bytes(form_key[0], form_key[1], data, start, end, lower)
        else:
            row = np.int64(foreign.rows[state[FOREIGN]])
            form = foreign.forms[state[FOREIGN]] if by_word else form
            state[FOREIGN] += 1
        state[count.UNKNOWN if row < 0 else count.KNOWN] += 1
        block[_ROW, t] = unknown if row < 0 else row
        block[_VALUE, t] = np.int64(form)


@compiled_helper
def draw_block(
    block: Block, n: int, words: Vocabulary, draws: Draws, k0: np.uint64, k1: np.uint64, state: State
) -> int:
    """Draw each word's output; how many bytes the block will take at most."""
    cells, indices, need = words.cells, draws.indices, CELL
    for t in range(n):
        row = block[_ROW, t]
        if block[_KIND, t] == _WORD and cells[row, SIZE] > 0:
            bits = siphash_word(k0, k1, np.uint64(block[_VALUE, t]))
            entry = part(draws.limits, draws.others, np.int64(cells[row, PATTERN]), cells[row, SIZE], bits)
            block[_ENTRY, t] = np.int64(cells[row, START]) + entry
        elif block[_KIND, t] == _WORD:
            block[_KIND, t] = _NOTHING
            state[count.DROPPED] += 1
    for t in range(n):
        if block[_KIND, t] == _WORD:
            block[_DRAWN, t] = indices[block[_ENTRY, t]]
    for t in range(n):
        need += block[_POINTS, t] + 1  # a mask is as long as its number, a mark is one byte
        if block[_KIND, t] == _WORD:
            drawn = block[_DRAWN, t]
            need += np.int64(cells[drawn, LENGTH])
            is_kept = drawn == block[_ROW, t] and cells[drawn, KEPT] > 0
            state[count.KEPT] += is_kept
            state[count.REPLACED] += not is_kept
            state[count.SELF] += drawn == block[_ROW, t] and not is_kept
    return need


@compiled_helper
def _write_word(words: Vocabulary, row: int, buffer: NDArray[np.uint8], written: int) -> int:
    """Write one word, and return its length; what a short word's cell holds beyond it is written over by the next."""
    cells, length = words.cells, np.int64(words.cells[row, LENGTH])
    if length > CELL:
        start = words.offsets[row]
        for i in range(length):
            buffer[written + i] = words.data[start + i]
        return int(length)
    store_eight(buffer, written, cells[row, FIRST])
    store_eight(buffer, written + 8, cells[row, SECOND])
    return int(length)


@compiled_helper
def write_block(
    data: NDArray[np.uint8],
    block: Block,
    n: int,
    words: Vocabulary,
    keep: bool,
    align: bool,
    out: Released,
    state: State,
) -> None:
    """Write the block's tokens, what stands between them, and where they came from."""
    buffer, written, last, gap = out.data, state[WRITTEN], state[LAST], 0
    for t in range(n):
        kind, start, gap = block[_KIND, t], block[_START, t], max(gap, block[_GAP, t])
        if kind == _NOTHING:
            continue
        if not keep or (gap == 0 and last == kind and kind != _PUNCT):
            gap = _BLANK  # two words or two masks would else become one
        if last != _NOTHING and gap > 0:
            buffer[written] = 0x20 if gap == _BLANK else 0x0A
            written += 1
        length = 1
        if kind == _WORD:
            length = _write_word(words, block[_DRAWN, t], buffer, written)
            if align:
                out.starts[state[ALIGNED]] = block[_FIRST, t]
                out.ends[state[ALIGNED]] = block[_FIRST, t] + block[_POINTS, t]
            state[ALIGNED] += 1
        elif kind == _NUMBER:
            length = block[_POINTS, t]
            for i in range(length):
                buffer[written + i] = _MASK_SIGN
            state[count.MASKED] += 1
        else:
            buffer[written] = data[start]
            state[count.COPIED] += 1
        written += length
        last, gap = kind, 0
        state[count.RELEASED] += kind != _PUNCT
    state[WRITTEN], state[LAST], state[GAP] = written, last, max(gap, state[GAP])
