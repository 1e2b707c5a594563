"""Read and write word2vec text and binary files and read GloVe text, with every row validated.

Words end at ASCII spaces and lines at line feeds only, so U+0085, U+2028 or a no-break space may be part of a word.
Imported vectors have no counts.
"""

from __future__ import annotations

import os
from array import array
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.vectors.table import Vectors

_LONGEST_WORD = 1 << 16


def write_text(vectors: Vectors, path: Path) -> None:
    """Write word2vec text with nine digits, enough to restore float32. Raises InputError for an invalid word."""
    line = " ".join(["%.9g"] * vectors.dim)
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(_name(word, row) + b" " + (line % tuple(vectors.matrix[row].tolist())).encode() + b"\n")


def write_binary(vectors: Vectors, path: Path) -> None:
    """Write word2vec binary, little-endian float32. Raises InputError for an invalid word."""
    rows = np.ascontiguousarray(vectors.matrix, dtype="<f4")
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(_name(word, row) + b" " + rows[row].tobytes() + b"\n")


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _name(word: str, row: int) -> bytes:
    if not word or " " in word or "\n" in word:
        raise InputError(f"row {row + 1}: words of a word2vec file cannot be empty or contain a space or line break")
    return word.encode()


class _Rows:
    """Collects rows of words and numbers and validates each."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.words: list[str] = []
        self._seen: set[str] = set()
        self._numbers = array("f")

    def error(self, message: str, row: int) -> InputError:
        """Return the error for a row."""
        return InputError(f"row {row}: {message}", where=self.file)

    def add(self, word: bytes, numbers: NDArray[np.float32], row: int) -> None:
        """Add a row. Raises InputError for an invalid or repeated word, or for numbers that are not finite."""
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error("the word is not UTF-8", row) from None
        if not text:
            raise self.error("the word is empty", row)
        if text in self._seen:
            raise self.error("the word is repeated", row)
        if not np.isfinite(numbers).all():
            raise self.error("NaN, infinity, or a number too large", row)
        self._seen.add(text)
        self.words.append(text)
        self._numbers.frombytes(numbers.tobytes())

    def vectors(self, dim: int, kind: str) -> Vectors:
        """Return all rows as vectors without counts."""
        matrix = np.frombuffer(self._numbers, dtype=np.float32).reshape(-1, dim)
        return Vectors(self.words, matrix, meta={"imported": kind})


def read_text(path: Path) -> Vectors:
    """Read word2vec text, or GloVe text without a header. Raises InputError with file name and row."""
    rows = _Rows(path.name)
    with path.open("rb") as file:
        first = file.readline()
        if not first.strip():
            raise InputError("is empty", where=path.name)
        header = _header(first)
        dim = header[1] if header else first.rstrip(b" \r\n").count(b" ")
        if dim < 1:
            raise rows.error("a word and numbers are expected", 1)
        lines = enumerate(file if header else chain([first], file), start=2 if header else 1)
        for number, line in lines:
            _text_row(rows, line, dim, number)
    if header and len(rows.words) != header[0]:
        raise InputError(f"has {len(rows.words)} words, but its header says {header[0]}", where=path.name)
    return rows.vectors(dim, "word2vec text" if header else "GloVe text")


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _text_row(rows: _Rows, line: bytes, dim: int, number: int) -> None:
    word, *fields = line.rstrip(b" \r\n").split(b" ")
    if len(fields) != dim:
        raise rows.error(f"{len(fields)} numbers where {dim} are expected", number)
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(list(map(float, fields))).astype(np.float32)
    except ValueError:
        raise rows.error("a value is not a number", number) from None
    rows.add(word, numbers, number)


def read_binary(path: Path) -> Vectors:
    """Read word2vec binary. Raises InputError with file name and row."""
    rows = _Rows(path.name)
    with path.open("rb") as file:
        header = _header(file.readline(100))
        if header is None or header[1] < 1:
            raise InputError("does not begin with the number of words and of dimensions", where=path.name)
        n_words, dim = header
        # Each row has at least a letter, a space and its numbers; a wrong header must not exhaust the memory.
        if path.stat().st_size < n_words * (4 * dim + 2):
            raise InputError(f"is too short for {n_words} words of {dim} dimensions (its header)", where=path.name)
        start = file.tell()
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            for row in range(1, n_words + 1):
                space = data.find(b" ", start, start + _LONGEST_WORD)
                if space < 0:
                    raise rows.error("the file ends, or is not a word2vec file", row)
                end = space + 1 + 4 * dim
                if end > len(data):
                    raise rows.error("the file ends inside a vector", row)
                numbers = np.frombuffer(data[space + 1 : end], dtype="<f4").astype(np.float32)
                rows.add(data[start:space].lstrip(b"\n"), numbers, row)
                start = end
            if data[start : start + _LONGEST_WORD].strip(b"\n"):
                raise InputError(f"has more than {n_words} words (its header)", where=path.name)
    return rows.vectors(dim, "word2vec binary")
