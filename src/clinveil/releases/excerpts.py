"""A few pieces of released text, so that whoever reads the report sees what leaves."""

from __future__ import annotations

from heapq import nsmallest

from clinveil.core.keys import Key
from clinveil.corpus.corpus import Corpus, rows

EXCERPTS, WORDS = 3, 25


def excerpts(released: Corpus, key: Key) -> list[str]:
    """About 25 words each of three released notes, which the key chooses; longer notes are cut at a sentence."""
    drawn = ((key.digest("excerpt", note.note_id), note.text) for note in rows(released) if note.text.strip())
    return [_piece(text, rank) for rank, text in nsmallest(EXCERPTS, drawn)]


def _piece(text: str, rank: int) -> str:
    """A run of words that begins a sentence, where the note has sentences."""
    words = text.split()
    starts = [0, *(at for at, word in enumerate(words, 1) if word.endswith(".") and at + WORDS <= len(words))]
    if len(starts) == 1 and len(words) > WORDS:  # no sentences
        starts = [*range(len(words) - WORDS)]
    begin = starts[rank % len(starts)]
    piece = " ".join(words[begin : begin + WORDS])
    return piece + (" …" if begin + WORDS < len(words) else "")
