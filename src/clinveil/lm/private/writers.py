"""Writers of private notes: from the noisy table and public text only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from clinveil.core import Doubles, Ints, Stream, lookup_form, tokens
from clinveil.lm.models.ngram import train_ngram
from clinveil.lm.notes import encode
from clinveil.lm.private.public_text import SEEN, PublicText
from clinveil.lm.vocabulary import END, LINE_END, UNKNOWN, WordVocabulary

BAG = 150  # words of a note without word order
ORDER = 3
CONTEXTS = 4_096  # kept in memory
# stand for a space and a line break inside pieces
SPACE = "\u2581"
LINE = "\u240a"


class BagWriter:
    """Words drawn independently: the floor, without word order.

    probabilities: (labels, words); rows sum to 1.
    """

    def __init__(self, public: PublicText, probabilities: Doubles) -> None:
        self._words = public.words
        self._sums = np.cumsum(probabilities, axis=1)

    def write(self, label: int, stream: Stream, longest: int) -> str:
        """Return `BAG` words, or `longest` if fewer."""
        sums = self._sums[label]
        uniform = np.array([stream.uniform() for _ in range(min(BAG, longest))])
        return " ".join(self._words[i] for i in _drawn(sums, uniform * sums[-1]))


class SteeredWriter:
    """An n-gram model of the public text, with the label's log ratio added to the score of each
    next word.

    probabilities: (labels, words); rows sum to 1.
    """

    def __init__(self, public: PublicText, probabilities: Doubles) -> None:
        rows = [list(pieces(text)) for text in public.texts]
        counts = Counter(piece for row in rows for piece in row)
        self._vocabulary = WordVocabulary(sorted(piece for piece, n in counts.items() if n >= SEEN))
        self._model = train_ngram(
            encode([" ".join(row) for row in rows], self._vocabulary), self._vocabulary, ORDER
        )
        numbers = [
            public.ids.get(lookup_form(piece.lstrip(SPACE + LINE)), -1)
            for piece in self._vocabulary.words
        ]
        known = np.array(numbers)
        ratio = np.where(known >= 0, (probabilities / public.frequencies)[:, known], 1.0)
        ratio[:, [UNKNOWN, LINE_END]] = 0.0
        self._ratio = ratio
        self._sums = np.cumsum(ratio * self._model.unigram, axis=1)
        self._after = lru_cache(maxsize=CONTEXTS)(self._seen_after)

    def write(self, label: int, stream: Stream, longest: int) -> str:
        """Return one note, truncated after `longest` pieces."""
        row = [END]
        while len(row) <= longest:
            row.append(self._next(row, label, stream.uniform()))
            if row[-1] == END:
                break
        return readable([self._vocabulary.words[i] for i in row if i != END])

    def _next(self, row: Sequence[int], label: int, uniform: float) -> int:
        """Draw a piece by inversion: first among the pieces seen after the context, then among
        all.
        """
        sums = self._sums[label]
        ids, inner, rest = self._after(label, tuple(row[-ORDER + 1 :]))
        seen = float(inner[-1]) if inner.size else 0.0
        point = uniform * (seen + rest * float(sums[-1]))
        if point < seen:
            return int(ids[_drawn(inner, np.array([point]))[0]])
        return int(_drawn(sums, np.array([(point - seen) / rest]))[0])

    def _seen_after(self, label: int, context: tuple[int, ...]) -> tuple[Ints, Doubles, float]:
        """Return the pieces seen after a context, their cumulative weights, and the weight of the
        unigram.
        """
        found, rest = self._model.following(context)
        ids = np.concatenate([UNSEEN, *(ids for ids, _ in found)])
        weights = (
            np.concatenate([np.zeros(0), *(weights for _, weights in found)])
            * self._ratio[label][ids]
        )
        if context == (END,):
            weights[ids == END] = 0.0  # no empty note
        return ids, np.cumsum(weights), rest


UNSEEN: Ints = np.zeros(0, dtype=np.int64)


def _drawn(sums: Doubles, points: Doubles) -> Ints:
    """Return the first places with a cumulative weight above each point."""
    return np.minimum(np.searchsorted(sums, points, side="right"), sums.size - 1)


def pieces(text: str) -> Iterator[str]:
    """Yield words, numbers and punctuation marks, each with the space before it; the first one with
    a space.
    """
    space = SPACE
    for token in tokens(text.strip()):
        if token.isspace():
            space = LINE if "\n" in token else SPACE
        else:
            yield space + token
            space = ""


def readable(row: Sequence[str]) -> str:
    """Return the text of pieces, with a space between two words that were not neighbours in the
    public text.
    """
    parts: list[str] = []
    for piece in row:
        joins = parts and parts[-1][-1].isalpha() and piece[0].isalpha()
        parts.append(f" {piece}" if joins else piece)
    return "".join(parts).replace(LINE, "\n").replace(SPACE, " ").strip()
