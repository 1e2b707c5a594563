"""Compiled token loops: `read_words` looks up the words of notes, `write_texts` writes the drawn
ones.

Both read UTF-8 bytes; between them a mechanism draws the words (`draws.py`).
The slow reference implementation is `tests/channel/channel_reference.py`. Token boundaries are
those of `core/tokenizer.py`; all functions assume valid UTF-8.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, ChannelTables, NoteArrays, NoteWords, Options
from clinveil.core import Ints, Mask, SmallInts, helper, kernel

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
# State of the writing loop: token counts, then bytes written.
WRITTEN, _STATE = range(COUNTERS, COUNTERS + 2)
# State of the reading loop: words read, non-ASCII words read.
_READ, _NON_ASCII = range(2)
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
_32 = np.uint64(32)


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
def _ends_at(
    text: Bytes, kind: np.int64, start: int, end: int, at_stop: bool, options: Options
) -> bool:
    """Return whether a token is, or makes, a written sentence end: a mark, or white space after
    one.
    """
    if options.keep_layout:
        return kind == _PUNCT and text[start] in (_STOP_SIGN, _EXCLAMATION_SIGN, _QUESTION_SIGN)
    if not options.end_sentences or kind != _SPACE:
        return False
    lines = 0
    for i in range(start, end):
        lines += text[i] == _LINE_SIGN
    return at_stop or lines > 1


@helper
def _read_note(
    notes: NoteArrays,
    note: int,
    tables: ChannelTables,
    options: Options,
    rows: SmallInts,
    stops: Mask,
    state: Ints,
) -> None:
    """Write the rows of one note's words, and before which of them a sentence end is written."""
    text = notes.data
    i = notes.offsets[note]
    end = notes.offsets[note + 1]
    at_stop = False
    is_open = False
    pending = False
    while i < end:
        start = i
        kind, i, _, flag, value = _read(text, i, end, tables)
        if is_open and _ends_at(text, kind, start, i, at_stop, options):
            pending = True
            is_open = False
        at_stop = kind == _PUNCT and text[start] in (
            _STOP_SIGN,
            _EXCLAMATION_SIGN,
            _QUESTION_SIGN,
        )
        if kind != _WORD:
            continue
        if flag:
            row = _find(tables, text, start, i, value)
        else:
            row = notes.rows[state[_NON_ASCII]]
            state[_NON_ASCII] += 1
        row = tables.offsets.size - 1 if row < 0 else row
        is_written = tables.indptr[row + 1] > tables.indptr[row]
        rows[state[_READ]] = row
        stops[state[_READ]] = pending and is_written
        state[_READ] += 1
        if is_written:
            pending = False
            is_open = True


@kernel
def read_words(
    notes: NoteArrays, tables: ChannelTables, options: Options
) -> tuple[SmallInts, Mask, Ints]:
    """Return the arrays of `NoteWords`: rows and sentence ends of all words, offsets of the
    notes.
    """
    n_notes = notes.offsets.size - 1
    most = (notes.offsets[n_notes] - notes.offsets[0] + n_notes) // 2 + 1
    rows = np.empty(most, dtype=np.int32)
    stops = np.zeros(most, dtype=np.bool_)
    offsets = np.zeros(n_notes + 1, dtype=np.int64)
    state = np.zeros(2, dtype=np.int64)
    for note in range(n_notes):
        _read_note(notes, note, tables, options, rows, stops, state)
        offsets[note + 1] = state[_READ]
    return rows[: state[_READ]], stops[: state[_READ]], offsets


@helper
def _count_word(row: int, drawn: int, tables: ChannelTables, state: Ints) -> None:
    """Update the counts for a word and its output."""
    state[WORDS] += 1
    state[KNOWN if row < tables.offsets.size - 1 else UNKNOWN] += 1
    is_kept = drawn == row and tables.kept[drawn]
    state[DROPPED if drawn < 0 else KEPT if is_kept else REPLACED] += 1
    state[SELF] += drawn == row and not is_kept


@helper
def _write_note(
    notes: NoteArrays,
    note: int,
    words: NoteWords,
    tables: ChannelTables,
    options: Options,
    data: Bytes,
    state: Ints,
) -> bool:
    """Write one note into `data` from `state[WRITTEN]` on; return whether it fits."""
    i = notes.offsets[note]
    end = notes.offsets[note + 1]
    written = state[WRITTEN]
    last = np.int64(_NOTHING)
    gap = 0
    position = words.offsets[note]
    at_stop = False
    is_open = False
    while i < end:
        start = i
        drawn = np.int32(-1)
        masked = False
        copied = False
        kind, i, points, flag, _ = _read(notes.data, i, end, tables)
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
            drawn = words.drawn[position]
            _count_word(words.rows[position], drawn, tables, state)
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
def write_texts(
    notes: NoteArrays, words: NoteWords, tables: ChannelTables, options: Options
) -> tuple[Bytes, Ints, Ints]:
    """Return the texts with the drawn words, their offsets, and the counts."""
    n_notes = notes.offsets.size - 1
    n_bytes = notes.offsets[n_notes] - notes.offsets[0]
    data = np.empty(n_bytes + n_bytes // 4 + 4096, dtype=np.uint8)
    offsets = np.zeros(n_notes + 1, dtype=np.int64)
    state = np.zeros(_STATE, dtype=np.int64)
    before = np.zeros(_STATE, dtype=np.int64)
    for note in range(n_notes):
        before[:] = state
        while not _write_note(notes, note, words, tables, options, data, state):
            data = np.append(data, np.empty_like(data))
            state[:] = before
        offsets[note + 1] = state[WRITTEN]
    return data[: state[WRITTEN]], offsets, state[:COUNTERS]
