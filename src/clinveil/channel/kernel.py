"""The hot loop: UTF-8 bytes of notes in, UTF-8 bytes of released notes out, compiled, without the interpreter's lock.

It reads tokens, finds each word's row, draws with a keyed pseudo-random function of (note or patient, position or
word), and writes. The original is never consulted once the row is known. `reference.py` says the same, slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.block import (
    ALIGNED,
    FIELDS,
    LAST,
    STATE,
    TOKENS,
    WRITTEN,
    Block,
    Released,
    State,
    draw_block,
    fetch_block,
    look_up_block,
    read_block,
    write_block,
)
from clinveil.channel.compiled import compiled
from clinveil.channel.draws import Draws
from clinveil.channel.foreign import Foreign
from clinveil.channel.scan import Alphabet
from clinveil.channel.vocabulary import Vocabulary


class Notes(NamedTuple):
    """A batch of texts: uint8 bytes, (n + 1,) int64 offsets, and the (n, 2) uint64 key of each note's scope."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    scopes: NDArray[np.uint64]


class Tables(NamedTuple):
    """What the loop looks things up in."""

    letters: Alphabet
    words: Vocabulary
    draws: Draws


class Options(NamedTuple):
    """What to do: keep the layout, mask numbers, draw by word instead of position, align; and the form key."""

    keep_layout: bool
    mask_numbers: bool
    by_word: bool
    align: bool
    form_key: tuple[np.uint64, np.uint64]


def run(notes: Notes, foreign: Foreign, tables: Tables, options: Options) -> tuple[Released, State]:
    """Obfuscate a batch of valid UTF-8, with more room whenever the loop asks for it; what was written, and counts."""
    n_notes, n_bytes = notes.scopes.shape[0], int(notes.offsets[-1] - notes.offsets[0])
    out = _room(n_notes, n_bytes, align=options.align)
    state, before = np.zeros(STATE, dtype=np.int64), np.zeros(STATE, dtype=np.int64)
    block, done = np.zeros((FIELDS, TOKENS), dtype=np.int64), 0
    while done < n_notes:
        done = _obfuscate(notes, foreign, tables, options, out, block, state, before, done)
        if done < n_notes:
            out = out._replace(data=np.concatenate([out.data, np.empty(out.data.size, dtype=np.uint8)]))
    return out, state


def _room(n_notes: int, n_bytes: int, *, align: bool) -> Released:
    """Room for what a batch usually becomes."""
    # Two words never touch, so a batch has no more of them than every second byte, and one a note.
    n_words = (n_bytes + n_notes) // 2 if align else 0
    return Released(
        np.empty(n_bytes + n_bytes // 4 + 4096, dtype=np.uint8),
        np.zeros(n_notes + 1, dtype=np.int64),
        np.empty(n_words, dtype=np.int32),
        np.empty(n_words, dtype=np.int32),
        np.zeros(n_notes + 1, dtype=np.int64),
    )


@compiled
def _obfuscate(
    notes: Notes,
    foreign: Foreign,
    tables: Tables,
    options: Options,
    out: Released,
    block: Block,
    state: State,
    before: State,
    first: int,
) -> int:
    """Obfuscate the notes from `first` on, and return how many are done.

    It stops early, with the state of the last whole note, when `out.data` is full.
    """
    letters, words, draws = tables
    keep, mask, by_word, align, form_key = options
    data = notes.data
    for note in range(first, notes.offsets.size - 1):
        for s in range(STATE):
            before[s] = state[s]
            state[s] = 0 if s >= LAST else state[s]
        i, end = notes.offsets[note], notes.offsets[note + 1]
        k0, k1 = notes.scopes[note, 0], notes.scopes[note, 1]
        while i < end:
            i, n = read_block(data, i, end, letters, keep, mask, block, state)
            fetch_block(block, n, words)
            look_up_block(data, block, n, letters.lower, words, foreign, by_word, form_key, state)
            if state[WRITTEN] + draw_block(block, n, words, draws, k0, k1, state) > out.data.size:
                for s in range(STATE):
                    state[s] = before[s]
                return note
            write_block(data, block, n, words, keep, align, out, state)
        out.offsets[note + 1], out.aligned[note + 1] = state[WRITTEN], state[ALIGNED]
    return notes.offsets.size - 1
