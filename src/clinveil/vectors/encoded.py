"""Encode the words of notes as numbers, the input of clinveil's own training loops."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.core.files import write_array
from clinveil.corpus.corpus import Corpus, rows
from clinveil.vectors.sentences import Splitter, whole_note

Ids = NDArray[np.int32]
END = -1  # follows each line in an array of word ids
_AT_ONCE = 1 << 20


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
    path = scratch / "words.ids"
    path.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for part in encode(corpus, ids, split):
                write_array(file, part)
        yield IdFile(path, path.stat().st_size // np.dtype(np.int32).itemsize)
    finally:
        path.unlink(missing_ok=True)
