"""Inputs of training: words of notes as numbers for our own loops, and as a file of sentences for
gensim.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.core import words, write_array
from clinveil.corpus import Corpus, rows

Ids = NDArray[np.int32]
END = -1  # follows each line in an array of word ids
_AT_ONCE = 1 << 20

# A note -> lines of words; context windows do not cross lines.
Splitter = Callable[[str], Sequence[list[str]]]


def whole_note(text: str) -> list[list[str]]:
    """Return the words of a note as one line, in lookup form (the default of training)."""
    return [words(text)]


def token_lines(text: str) -> list[list[str]]:
    """Return the unchanged tokens of each line of a text in MedText's form (paper C's vectors).

    Letter case, numbers, punctuation, `<unk>` and `<deidentified>` are kept, and windows do not
    cross lines.
    """
    return [row for line in text.split("\n") if (row := line.split())]


def encode(corpus: Corpus, ids: Mapping[str, int], split: Splitter = whole_note) -> Iterator[Ids]:
    """Yield the word ids of each batch of notes, `END` after each line, without null texts and
    unknown words.
    """
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
        return np.fromfile(
            self.path, np.int32, max(0, stop - start), offset=start * np.dtype(np.int32).itemsize
        )


def words_in(ids: Ids | IdFile) -> int:
    """Return the number of words, without the `END` marks."""
    return sum(
        int(np.count_nonzero(ids[first : first + _AT_ONCE] != END))
        for first in range(0, ids.size, _AT_ONCE)
    )


@contextmanager
def encoded_file(
    corpus: Corpus, ids: Mapping[str, int], split: Splitter, scratch: Path
) -> Iterator[IdFile]:
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


@contextmanager
def sentence_file(
    corpus: Corpus, scratch: Path, split: Splitter = whole_note
) -> Iterator[tuple[Path, int]]:
    """Write the lines of all notes, with spaces between words, to an owner-only file in `scratch`;
    removed at the end.

    Yields the file and its number of words.
    """
    n_words = 0
    with _scratch_file(scratch / "sentences.txt") as path:
        with path.open("wb") as file:
            for note in rows(corpus):
                for line in split(note.text):
                    file.write(" ".join(line).encode() + b"\n")
                    n_words += len(line)
        yield path, n_words
