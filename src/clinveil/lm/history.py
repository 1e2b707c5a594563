"""What notes contain so far: their last tokens, their sections, and the place in the section and
the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clinveil.core import Ints
from clinveil.lm.layout import BLANK, COMMA, END, ENDS, HEADING, LINE, SHORT, LayoutVocabulary
from clinveil.lm.vocabulary import Ids, Vocabulary

NONE = -1
SECTIONS = 3
MOST = 12  # lines and sentences that are counted
ODD = 0x9E3779B97F4A7C15  # of hashes modulo 2^64


def hashed(*parts: Ints) -> Ints:
    """Return a 64-bit hash of several numbers of each place; it depends on their order."""
    code = np.zeros(parts[0].shape, dtype=np.uint64)
    for place, part in enumerate(parts, 1):
        code += (part.astype(np.uint64) + np.uint64(2)) * np.uint64(pow(ODD, place, 2**64))
    return code.astype(np.int64)


def marks_of(vocabulary: Vocabulary, *, plain: bool) -> Ints:
    """Return the marks of the pieces, and the piece that stands for each in contexts, (2, size);
    see `layout`.

    `plain`: without sections, and each piece stands for itself: an attacker's model tells numbers
    of one shape apart.
    """
    if isinstance(vocabulary, LayoutVocabulary) and not plain:
        return np.stack([vocabulary.marks, vocabulary.shapes])
    return np.stack([np.zeros(vocabulary.size, dtype=np.int64), np.arange(vocabulary.size)])


class History:
    """The histories of several notes.

    Attributes:
        window: (longest, lanes) last tokens, the last one first; END before the first token and
            NONE before that.
        sections: (3, lanes) last headings, the last one first; END for none. lines: begun since the
            last heading.
        sentences: ended in this line. place: words of this sentence. opening: hash of its first two
            words.
        earlier: hash of the first two words of the sentence before, or number of the heading.
    """

    def __init__(self, lanes: int, longest: int, marks: Ints) -> None:
        self._marks, self._shapes = marks
        self.window = np.full((longest, lanes), NONE, dtype=np.int64)
        self.sections = np.full((SECTIONS, lanes), END, dtype=np.int64)
        self._counts = np.zeros((5, lanes), dtype=np.int64)
        self.lines, self.sentences, self.place, self.opening, self.earlier = self._counts
        self.reset(np.arange(lanes))

    @property
    def parts(self) -> tuple[Ints, Ints, Ints]:
        """All values, (…, lanes)."""
        return self.window, self.sections, self._counts

    def reset(self, lanes: Ints) -> None:
        """Start new notes in these lanes."""
        self.window[:, lanes] = NONE
        self.sections[:, lanes] = END
        self._counts[:, lanes] = 0
        self.window[0, lanes] = END

    def push(self, ids: Ints) -> None:
        """Append one token to each of the first lanes."""
        window, sections, counts = (part[..., : len(ids)] for part in self.parts)
        lines, sentences, place, opening, earlier = counts
        mark = self._marks[ids]
        before = self._marks[window[0]]
        first = place == 0
        ids = self._shapes[ids]
        heading = mark == HEADING
        sentence = (mark == ENDS) & (before != SHORT)
        # MTSamples has a comma in place of a line break.
        line = (mark == LINE) | ((mark == COMMA) & first & (before == ENDS))
        stops = heading | sentence | (mark == LINE)
        over = stops & ~first
        lines[:] = np.where(heading, 0, np.minimum(lines + line, MOST))
        sentences[:] = np.where(heading | line, 0, np.minimum(sentences + over, MOST))
        earlier[:] = np.where(heading, ids, np.where(over, opening, earlier))
        words = ~stops & (mark != BLANK) & ~(first & (mark > BLANK))
        begun = np.where(first, hashed(ids), np.where(place == 1, hashed(opening, ids), opening))
        opening[:] = np.where(words, begun, np.where(stops, 0, opening))
        place[:] = np.where(stops, 0, place + words)
        sections[1:] = np.where(heading, sections[:-1], sections[1:])
        sections[0] = np.where(heading, ids, sections[0])
        window[1:] = window[:-1].copy()
        window[0] = ids


def histories(notes: Sequence[Ids], longest: int, marks: Ints) -> History:
    """Return the history before each token of some notes, joined."""
    sizes = np.array([note.size for note in notes])
    order = np.argsort(-sizes, kind="stable")
    starts = (np.cumsum(sizes) - sizes)[order]
    ids = np.concatenate(notes)
    notes_so_far, every = (History(n, longest, marks) for n in (len(notes), ids.size))
    for step in range(int(sizes.max(initial=0))):
        at = starts[: np.count_nonzero(sizes > step)] + step
        for own, joined in zip(notes_so_far.parts, every.parts, strict=True):
            joined[..., at] = own[..., : at.size]
        notes_so_far.push(ids[at])
    return every
