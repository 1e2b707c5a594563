"""The file of sentences that gensim trains from, laid out so that gensim drops no token.

gensim reads lines until a batch holds more than 10,000 tokens and then cuts the batch at 10,000, in silence; a line
that straddles the limit loses its tail. So lines are broken at every 10,000th token, and a line of fillers, which are
no words of any text, ends the batch just there. Several workers start at byte offsets, off the batches' beat: now and
then a filler line as long as a batch brings them back in step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clinveil.core.tokens import words
from clinveil.corpus.corpus import Corpus, rows

BATCH_TOKENS = 10_000
_BATCH_LINES = 5_000
_FILLER = b"\xff "  # not UTF-8, so it is a token of no text
_STEP = 8


Splitter = Callable[[str], Sequence[list[str]]]  # a note -> lines of words; windows end where a line does


def whole_note(text: str) -> list[list[str]]:
    """The words of a note as one line, in lookup form: what vectors are trained on unless told otherwise."""
    return [words(text)]


def token_lines(text: str) -> list[list[str]]:
    """The tokens of each line as they stand, of a text in MedText's form (paper C's vectors).

    Letter case, numbers, punctuation, `<unk>` and `<deidentified>` are kept, and windows stop at line ends.
    """
    return [row for line in text.split("\n") if (row := line.split())]


@dataclass(frozen=True)
class Sentences:
    """A file of lines, words separated by spaces; a line is a note or what the splitter makes of it.

    Attributes:
        path: the file; it holds the notes' words, so it is secret.
        n_tokens: words of the notes.
        n_fillers: fillers between them.
        batches: for each batch the offset of its end in bytes and the tokens up to there, fillers included.
    """

    path: Path
    n_tokens: int
    n_fillers: int
    batches: list[tuple[int, int]]

    def workers(self, wanted: int) -> int:
        """The workers that the file can feed: each needs some batches of its own."""
        return max(1, min(wanted, len(self.batches) // _STEP))

    def budget(self, workers: int) -> int:
        """The tokens that gensim must be told of, so that every worker reads on to the start of the next one.

        gensim gives worker i the bytes from size * i / workers on and lets it read budget / workers tokens; where
        tokens are shorter than on average, too small a budget would leave the end of its part unread.
        """
        size = self.path.stat().st_size
        starts = [self._tokens_before(int(size / workers * i)) for i in range(workers)]
        ends = [*starts[1:], self.n_tokens + self.n_fillers]
        return workers * (1 + max(end - start for start, end in zip(starts, ends, strict=True)))

    def _tokens_before(self, offset: int) -> int:
        begin, tokens = 0, 0
        for end, total in self.batches:
            if end > offset:
                break
            begin, tokens = end, total
        with self.path.open("rb") as file:
            file.seek(begin)
            return tokens + len(file.read(offset - begin).split())


@contextmanager
def sentence_file(corpus: Corpus, scratch: Path, split: Splitter = whole_note) -> Iterator[Sentences]:
    """Write the words of all notes to a file in `scratch`, readable by its owner only; removed at the end."""
    path = scratch / "sentences.txt"
    path.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            writer = _Writer(file)
            for note in rows(corpus):
                for line in split(note.text):
                    writer.line(line)
            writer.end_batch(last=True)
        yield Sentences(path, writer.n_tokens, writer.n_fillers, writer.batches)
    finally:
        path.unlink(missing_ok=True)


class _Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._filled = self._lines = 0
        self.n_tokens = self.n_fillers = 0
        self.batches: list[tuple[int, int]] = []

    def line(self, forms: list[str]) -> None:
        """Write the words of a line, broken where a batch ends."""
        start = 0
        while start < len(forms):
            line = forms[start : start + BATCH_TOKENS - self._filled]
            self._file.write(" ".join(line).encode() + b"\n")
            start += len(line)
            self._filled += len(line)
            self._lines += 1
            if self._filled == BATCH_TOKENS or self._lines == _BATCH_LINES:
                self.end_batch()

    def end_batch(self, *, last: bool = False) -> None:
        """Write the fillers that make gensim end its batch here; the last one ends with the file."""
        fillers = 0
        if not last:
            in_step = len(self.batches) % _STEP == 0
            fillers = BATCH_TOKENS if in_step else BATCH_TOKENS + 1 - self._filled
            self._file.write(_FILLER * fillers + b"\n")
        self.n_tokens += self._filled
        self.n_fillers += fillers
        self.batches.append((self._file.tell(), self.n_tokens + self.n_fillers))
        self._filled = self._lines = 0
