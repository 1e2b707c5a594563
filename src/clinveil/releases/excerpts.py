"""Choose excerpts of released text for the report."""

from __future__ import annotations

from heapq import nsmallest

from clinveil.core.keys import Key
from clinveil.corpus.corpus import Corpus, rows

EXCERPTS, WORDS = 3, 25


def excerpts(released: Corpus, key: Key) -> list[str]:
    """Return about 25 words each of three released notes, chosen by the key; long notes are cut at sentences."""
    drawn = ((key.digest("excerpt", note.note_id), note.text) for note in rows(released) if note.text.strip())
    return [_piece(text, rank) for rank, text in nsmallest(EXCERPTS, drawn)]


def _piece(text: str, rank: int) -> str:
    """Return a run of words that starts at a sentence, if the note has sentences."""
    words = text.split()
    starts = [0, *(i for i, word in enumerate(words, 1) if word.endswith(".") and i + WORDS <= len(words))]
    if len(starts) == 1 and len(words) > WORDS:  # no sentences
        starts = [*range(len(words) - WORDS)]
    begin = starts[rank % len(starts)]
    piece = " ".join(words[begin : begin + WORDS])
    return piece + (" …" if begin + WORDS < len(words) else "")
