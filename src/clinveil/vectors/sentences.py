"""Inputs of training: words of notes as numbers for our own loops, and as a file of sentences for gensim.

gensim reads lines until a batch has more than 10,000 tokens and then silently cuts it at 10,000, so a line across the
limit loses its end. Lines are therefore broken at every 10,000th token, and a line of fillers (not words of any text)
ends the batch there. Workers start at byte offsets that do not match the batches; every eighth filler line is as long
as a batch and realigns them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import at_most_cores
from clinveil.core.files import write_array
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Corpus, rows

BATCH_TOKENS = 10_000
_BATCH_LINES = 5_000
_FILLER = b"\xff "  # not UTF-8, so it is a token of no text
_STEP = 8
Ids = NDArray[np.int32]
END = -1  # follows each line in an array of word ids
_AT_ONCE = 1 << 20

Splitter = Callable[[str], Sequence[list[str]]]  # a note -> lines of words; context windows do not cross lines


def whole_note(text: str) -> list[list[str]]:
    """Return the words of a note as one line, in lookup form (the default of training)."""
    return [words(text)]


def token_lines(text: str) -> list[list[str]]:
    """Return the unchanged tokens of each line of a text in MedText's form (paper C's vectors).

    Letter case, numbers, punctuation, `<unk>` and `<deidentified>` are kept, and windows do not cross lines.
    """
    return [row for line in text.split("\n") if (row := line.split())]


def encode(corpus: Corpus, ids: Mapping[str, int], split: Splitter = whole_note) -> Iterator[Ids]:
    """Yield the word ids of each batch of notes, `END` after each line, without null texts and unknown words."""
    for batch in corpus.batches():
        row: list[int] = []
        for note in rows([batch]):
            for line in split(note.text):
                row += [ids[word] for word in line if word in ids]
                row.append(END)
        yield np.array(row, dtype=np.int32)


@dataclass(frozen=True)
class IdFile:
    """Word ids in a file; slices are read on demand, so memory does not grow with the file."""

    path: Path
    size: int

    def __getitem__(self, part: slice) -> Ids:
        start, stop, _ = part.indices(self.size)
        return np.fromfile(self.path, np.int32, max(0, stop - start), offset=start * np.dtype(np.int32).itemsize)


def words_in(ids: Ids | IdFile) -> int:
    """Return the number of words, without the `END` marks."""
    return sum(int(np.count_nonzero(ids[first : first + _AT_ONCE] != END)) for first in range(0, ids.size, _AT_ONCE))


@contextmanager
def encoded_file(corpus: Corpus, ids: Mapping[str, int], split: Splitter, scratch: Path) -> Iterator[IdFile]:
    """Write the ids of `encode` to an owner-only file in `scratch`, which is removed at the end."""
    with _scratch_file(scratch / "words.ids") as path:
        with path.open("wb") as file:
            for part in encode(corpus, ids, split):
                write_array(file, part)
        yield IdFile(path, path.stat().st_size // np.dtype(np.int32).itemsize)


@contextmanager
def _scratch_file(path: Path) -> Iterator[Path]:
    """Create an empty owner-only file, and remove it at the end."""
    path.unlink(missing_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield path
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Sentences:
    """A file of lines with words separated by spaces.

    Attributes:
        path: the file; it contains the words of the notes, so it is secret.
        n_tokens: words of the notes.
        n_fillers: fillers between them.
        batches: for each batch the byte offset of its end and the tokens up to there, with fillers.
    """

    path: Path
    n_tokens: int
    n_fillers: int
    batches: list[tuple[int, int]]

    def workers(self, wanted: int) -> int:
        """Return the number of workers for this file: each needs several batches."""
        return max(1, min(at_most_cores(wanted), len(self.batches) // _STEP))

    def budget(self, workers: int) -> int:
        """Return the token count to pass to gensim, so that every worker reads up to the start of the next one.

        gensim gives worker i the bytes from size * i / workers on and lets it read budget / workers tokens. If tokens
        are shorter than average, a smaller budget would leave the end of the worker's part unread.
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
    """Write the words of all notes to an owner-only file in `scratch`, which is removed at the end."""
    with _scratch_file(scratch / "sentences.txt") as path:
        with path.open("wb") as file:
            writer = _Writer(file)
            for note in rows(corpus):
                for line in split(note.text):
                    writer.line(line)
            writer.end_batch(last=True)
        yield Sentences(path, writer.n_tokens, writer.n_fillers, writer.batches)


class _Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._filled = self._lines = 0
        self.n_tokens = self.n_fillers = 0
        self.batches: list[tuple[int, int]] = []

    def line(self, forms: list[str]) -> None:
        """Write the words of a line, broken at the end of a batch."""
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
        """Write the fillers that make gensim end its batch here; the last batch ends with the file."""
        fillers = 0
        if not last:
            realign = len(self.batches) % _STEP == 0
            fillers = BATCH_TOKENS if realign else BATCH_TOKENS + 1 - self._filled
            self._file.write(_FILLER * fillers + b"\n")
        self.n_tokens += self._filled
        self.n_fillers += fillers
        self.batches.append((self._file.tell(), self.n_tokens + self.n_fillers))
        self._filled = self._lines = 0
