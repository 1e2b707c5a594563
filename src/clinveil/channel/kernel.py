"""The compiled token loop: UTF-8 bytes of notes to UTF-8 bytes of released notes in one pass.

For each token it looks up the word's row, draws with a keyed pseudo-random function of note and
position, and writes the output. The slow reference implementation is
`tests/channel/channel_reference.py`. Token boundaries are those of `core/tokenizer.py`; all
functions assume valid UTF-8.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, ChannelTables, NoteArrays, Options, Words64
from clinveil.core import Ints, SmallInts, helper, kernel

# Of a word: its start, its end, whether it is ASCII, its table hash.
Token = tuple[int, int, bool, np.uint64]

# Values of `core.tokens.Kind` (a test compares them); numba's cache detects changes in this file
# only.
_WORD = 1
_NUMBER = 2
_SPACE = 3
_PUNCT = 4
_IGNORABLE = 5
# Indices of counters: the fields of `TokenTally` from `words` to `released`, in order.
WORDS, KNOWN, UNKNOWN, NUMBERS, PUNCT, OTHER, REPLACED, DROPPED, SELF, KEPT, MASKED, COPIED = range(
    12
)
RELEASED = 12
COUNTERS = 13
# State of the loop: token counts, then bytes written, non-ASCII words read.
WRITTEN, NON_ASCII, _STATE = range(COUNTERS, COUNTERS + 3)
# XORed with the input of background draws.
_COIN = np.uint64(0x9E3779B97F4A7C15)
_MIXED = np.uint64(0xC2B2AE3D27D4EB4F)
_MASK_SIGN = np.uint8(0x23)
_SPACE_SIGN = np.uint8(0x20)
_LINE_SIGN = np.uint8(0x0A)
_STOP_SIGN = np.uint8(0x2E)
_EXCLAMATION_SIGN = np.uint8(0x21)
_QUESTION_SIGN = np.uint8(0x3F)
_NOTHING = 0  # kind before the first token
# white space since the last token; the maximum counts
_BLANK = 1
_LINE = 2
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_8 = np.uint64(8)
_11 = np.uint64(11)
_13 = np.uint64(13)
_16 = np.uint64(16)
_17 = np.uint64(17)
_21 = np.uint64(21)
_32 = np.uint64(32)
_56 = np.uint64(56)
_64 = np.uint64(64)
_UNIT = 2.0**-53
_LOW = np.uint64(0xFFFFFFFF)
_V0 = np.uint64(0x736F6D6570736575)
_V1 = np.uint64(0x646F72616E646F6D)
_V2 = np.uint64(0x6C7967656E657261)
_V3 = np.uint64(0x7465646279746573)


@helper
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (_64 - bits))


@helper
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> tuple[np.uint64, ...]:
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, _13) ^ v0
    v3 = _rotate(v3, _16) ^ v2
    v0 = _rotate(v0, _32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, _17) ^ v2
    v3 = _rotate(v3, _21) ^ v0
    v2 = _rotate(v2, _32)
    return v0, v1, v2, v3


@helper
def _absorb(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64
) -> tuple[np.uint64, ...]:
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@helper
def _finish(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, last: np.uint64
) -> np.uint64:
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@helper
def siphash_word(k0: np.uint64, k1: np.uint64, word: np.uint64) -> np.uint64:
    """Return SipHash-2-4 of one 64-bit word (eight little-endian bytes) under the key (k0, k1);
    compiled.

    Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (INDOCRYPT 2012).
    """
    v0, v1, v2, v3 = _absorb(k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3, word)
    return _finish(v0, v1, v2, v3, np.uint64(8) << _56)


@helper
def siphash(
    k0: np.uint64, k1: np.uint64, data: Bytes, start: int, end: int, letters: Bytes
) -> np.uint64:
    """Return SipHash-2-4 of letters[data[start:end]]; `letters`, (256,), is the identity or folds
    case; compiled.
    """
    v0 = k0 ^ _V0
    v1 = k1 ^ _V1
    v2 = k0 ^ _V2
    v3 = k1 ^ _V3
    word = np.uint64(0)
    shift = np.uint64(0)
    for i in range(start, end):
        word |= np.uint64(letters[data[i]]) << shift
        shift += _8
        if shift == _64:
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
            word = np.uint64(0)
            shift = np.uint64(0)
    return _finish(v0, v1, v2, v3, word | np.uint64(end - start) << _56)


@kernel
def hash_strings(
    k0: np.uint64, k1: np.uint64, data: Bytes, offsets: Ints, letters: Bytes
) -> Words64:
    """Return the SipHash of each string, (n_strings,); compiled."""
    hashes = np.empty(offsets.size - 1, dtype=np.uint64)
    for i in range(hashes.size):
        hashes[i] = siphash(k0, k1, data, offsets[i], offsets[i + 1], letters)
    return hashes


@helper
def _code_point(text: Bytes, i: int) -> tuple[int, int]:
    """Return the code point at byte i and its width in bytes."""
    first = np.int64(text[i])
    if first < 0x80:
        return int(first), 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | text[i + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (text[i + 1] & 0x3F) << 6 | text[i + 2] & 0x3F, 3
    return (first & 7) << 18 | (text[i + 1] & 0x3F) << 12 | (text[i + 2] & 0x3F) << 6 | text[
        i + 3
    ] & 0x3F, 4


@helper
def _breaks_line(code: int) -> bool:
    """Return whether a code point ends a line, as in `str.splitlines`."""
    return (
        0x0A <= code <= 0x0D
        or 0x1C <= code <= 0x1E
        or code == 0x85
        or code == 0x2028
        or code == 0x2029
    )


@helper
def _word_end(
    text: Bytes, i: int, end: int, kinds: Bytes, lower: Bytes
) -> tuple[int, int, bool, np.uint64]:
    """Return the word at byte i: end, number of code points, whether it is ASCII, and its table
    hash if so.
    """
    start = i
    beyond = 0
    value = _FNV_START
    while i < end:
        letter = lower[text[i]]
        if letter:
            value = (value ^ np.uint64(letter)) * _FNV_PRIME
            i += 1
            continue
        if text[i] < 0x80:
            break
        code, width = _code_point(text, i)
        if kinds[code] != _WORD and kinds[code] != _IGNORABLE:
            break
        i += width
        beyond += width - 1
    return i, i - start - beyond, beyond == 0, value


@helper
def _run_end(text: Bytes, i: int, end: int, kinds: Bytes, kind: np.int64) -> tuple[int, int, bool]:
    """Return the run of one kind at byte i: end, number of code points, whether it breaks a
    line.
    """
    points = 0
    breaks = False
    while i < end:
        code, width = _code_point(text, i)
        if kinds[code] != kind:
            break
        breaks |= _breaks_line(code)
        i += width
        points += 1
    return i, points, breaks


@helper
def _slot(value: np.uint64, slots: SmallInts) -> np.int64:
    return np.int64((value ^ (value >> _32)) & np.uint64(slots.size - 1))


@helper
def _find(tables: ChannelTables, text: Bytes, start: int, end: int, value: np.uint64) -> int:
    """Return the row of the ASCII word text[start:end] with table hash `value`; -1 if unknown."""
    slot = _slot(value, tables.slots)
    while tables.slots[slot] != 0:
        row = tables.slots[slot] - 1
        first = tables.offsets[row]
        length = end - start
        if tables.offsets[row + 1] - first == length:
            i = 0
            while i < length and tables.data[first + i] == tables.lower[text[start + i]]:
                i += 1
            if i == length:
                return int(row)
        slot = (slot + 1) & (tables.slots.size - 1)
    return -1


@helper
def _look_up(notes: NoteArrays, tables: ChannelTables, token: Token, state: Ints) -> int:
    """Return a word's row, -1 if unknown."""
    start, end, is_ascii, value = token
    if is_ascii:
        return _find(tables, notes.data, start, end, value)
    state[NON_ASCII] += 1
    return int(notes.rows[state[NON_ASCII] - 1])


@helper
def _draw(tables: ChannelTables, row: int, bits: np.uint64) -> int:
    """Draw an output from a row with 64 random bits; -1 if the row is empty."""
    first = tables.indptr[row]
    size = np.uint64(tables.indptr[row + 1] - tables.indptr[row])
    if size == 0:
        return -1
    # bits * size in 128 bits: the high half selects the entry, the low half decides between its two
    # outputs.
    low = (bits & _LOW) * size
    middle = (bits >> _32) * size + (low >> _32)
    entry = first + np.int64(middle >> _32)
    is_own = (middle << _32 | low & _LOW) < tables.limits[entry]
    return tables.indices[entry] if is_own else tables.others[entry]


@helper
def _draw_mixed(
    tables: ChannelTables, row: int, share: float, k0: np.uint64, k1: np.uint64, position: np.uint64
) -> int:
    """Draw an output for a word: with probability `share` from the pool, unless that is the word
    itself.
    """
    known = (
        row < tables.offsets.size - 1
        and tables.indptr[row + 1] > tables.indptr[row]
        and not tables.kept[row]
    )
    if (
        known
        and share > 0
        and np.float64(siphash_word(k0, k1, position ^ _COIN) >> _11) * _UNIT < share
    ):
        drawn = _draw(tables, tables.offsets.size - 1, siphash_word(k0, k1, position ^ _MIXED))
        if drawn >= 0 and drawn != row:
            return drawn
    return _draw(tables, row, siphash_word(k0, k1, position))


@helper
def _draw_word(
    notes: NoteArrays,
    note: int,
    tables: ChannelTables,
    options: Options,
    token: Token,
    position: int,
    state: Ints,
) -> int:
    """Return the output of a word, -1 if not written; update the counts."""
    row = _look_up(notes, tables, token, state)
    state[WORDS] += 1
    state[UNKNOWN if row < 0 else KNOWN] += 1
    row = tables.offsets.size - 1 if row < 0 else row
    k0 = notes.keys[note, 0]
    k1 = notes.keys[note, 1]
    drawn = _draw_mixed(tables, row, options.background, k0, k1, np.uint64(position))
    is_kept = drawn == row and tables.kept[drawn]
    state[DROPPED if drawn < 0 else KEPT if is_kept else REPLACED] += 1
    state[SELF] += drawn == row and not is_kept
    return drawn


@helper
def _read(
    text: Bytes, i: int, end: int, tables: ChannelTables
) -> tuple[np.int64, int, int, bool, np.uint64]:
    """Return the token at byte i: kind, end, number of code points, a flag, and the table hash of
    an ASCII word.

    The flag: for white space, whether it breaks a line; for other tokens, whether it is ASCII.
    """
    code, width = _code_point(text, i)
    kind = np.int64(tables.kinds[code])
    if kind == _WORD:
        i, points, is_ascii, value = _word_end(text, i, end, tables.kinds, tables.lower)
        return kind, i, points, is_ascii, value
    if kind in (_SPACE, _NUMBER):
        i, points, breaks = _run_end(text, i, end, tables.kinds, kind)
        return kind, i, points, breaks, _FNV_START
    return kind, i + width, 1, code < 0x80, _FNV_START


@helper
def _mark(kind: np.int64, is_ascii: bool, options: Options, state: Ints) -> tuple[bool, bool]:
    """Return whether a token that is not a word is masked, and whether it is copied; update the
    counts.
    """
    masked = options.mask_numbers and kind == _NUMBER
    copied = options.keep_layout and kind == _PUNCT and is_ascii
    state[NUMBERS if kind == _NUMBER else PUNCT if kind == _PUNCT else OTHER] += 1
    state[MASKED] += masked
    state[COPIED] += copied
    return masked, copied


@helper
def _space(data: Bytes, written: np.int64, gap: int) -> np.int64:
    """Write the white space before a token, if any; return the offset of the token."""
    if gap == 0:
        return written
    data[written] = _SPACE_SIGN if gap == _BLANK else _LINE_SIGN
    return written + 1


@helper
def _stop(
    text: Bytes, start: int, end: int, at_stop: bool, data: Bytes, written: np.int64, state: Ints
) -> np.int64:
    """Write `.` if a sentence ends at the white space text[start:end]: after a stop, an empty line,
    or at the end.
    """
    lines = 0 if start < end else 2
    for i in range(start, end):
        lines += text[i] == _LINE_SIGN
    if not at_stop and lines < 2:
        return written
    data[written] = _STOP_SIGN
    state[COPIED] += at_stop
    return written + 1


@helper
def _obfuscate_note(
    notes: NoteArrays, note: int, tables: ChannelTables, options: Options, data: Bytes, state: Ints
) -> bool:
    """Write one note into `data` from `state[WRITTEN]` on; return whether it fits."""
    i = notes.offsets[note]
    end = notes.offsets[note + 1]
    written = state[WRITTEN]
    last = np.int64(_NOTHING)
    gap = 0
    position = 0
    at_stop = False
    is_open = False
    while i < end:
        start = i
        drawn = -1
        masked = False
        copied = False
        kind, i, points, flag, value = _read(notes.data, i, end, tables)
        if kind == _SPACE:
            gap = max(gap, _LINE if flag else _BLANK)
            if is_open:
                text_end = _stop(notes.data, start, i, at_stop, data, written, state)
                is_open = text_end == written
                written = text_end
            at_stop = False
            continue
        at_stop = kind == _PUNCT and notes.data[start] in (
            _STOP_SIGN,
            _EXCLAMATION_SIGN,
            _QUESTION_SIGN,
        )
        if kind == _WORD:
            token = (start, i, flag, value)
            drawn = _draw_word(notes, note, tables, options, token, position, state)
            position += 1
        else:
            masked, copied = _mark(kind, flag, options, state)
        if drawn < 0 and not masked and not copied:
            continue
        source = notes.data
        first = start
        length = points
        if drawn >= 0:
            source = tables.data
            first = tables.offsets[drawn]
            length = tables.offsets[drawn + 1] - first
        if written + length + 2 > data.size:  # one space before, one stop after
            return False
        if not options.keep_layout or (gap == 0 and last == kind and not copied):
            gap = _BLANK  # otherwise two words or two masks would merge
        written = _space(data, written, gap if last != _NOTHING else 0)
        for j in range(length):
            data[written + j] = _MASK_SIGN if masked else source[first + j]
        is_open = options.end_sentences
        written = written + length
        last = kind
        gap = 0
        state[RELEASED] += not copied
    state[WRITTEN] = (
        _stop(notes.data, end, end, at_stop, data, written, state) if is_open else written
    )
    return True


@kernel
def obfuscate_texts(
    notes: NoteArrays, tables: ChannelTables, options: Options
) -> tuple[Bytes, Ints, Ints]:
    """Return the texts, their offsets, and the counts."""
    n_notes = notes.offsets.size - 1
    n_bytes = notes.offsets[n_notes] - notes.offsets[0]
    data = np.empty(n_bytes + n_bytes // 4 + 4096, dtype=np.uint8)
    offsets = np.zeros(n_notes + 1, dtype=np.int64)
    state = np.zeros(_STATE, dtype=np.int64)
    before = np.zeros(_STATE, dtype=np.int64)
    for note in range(n_notes):
        before[:] = state
        while not _obfuscate_note(notes, note, tables, options, data, state):
            data = np.append(data, np.empty_like(data))
            state[:] = before
        offsets[note + 1] = state[WRITTEN]
    return data[: state[WRITTEN]], offsets, state[:COUNTERS]
