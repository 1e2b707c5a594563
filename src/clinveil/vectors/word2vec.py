"""word2vec's files, text and binary, and GloVe's text; read with every doubt, row by row.

Words are split off at ASCII spaces and lines at line feeds only, so that U+0085, U+2028 or a no-break space inside a
word survive. Imported vectors carry no counts.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.vectors.table import Vectors

_LONGEST_WORD = 1 << 16
_READ_AT_ONCE = 1 << 20


def write_text(vectors: Vectors, path: Path) -> None:
    """Write word2vec text; nine digits give the same float32 back. Raises InputError for a word it cannot hold."""
    line = " ".join(["%.9g"] * vectors.dim)
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(_name(word, row) + b" " + (line % tuple(vectors.matrix[row].tolist())).encode() + b"\n")


def write_binary(vectors: Vectors, path: Path) -> None:
    """Write word2vec binary, little-endian float32. Raises InputError for a word it cannot hold."""
    rows = np.ascontiguousarray(vectors.matrix, dtype="<f4")
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(_name(word, row) + b" " + rows[row].tobytes() + b"\n")


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _name(word: str, row: int) -> bytes:
    if not word or " " in word or "\n" in word:
        raise InputError(f"row {row + 1}: a word2vec file cannot hold an empty word, or a space or line break in one")
    return word.encode()


class _Rows:
    """Words and numbers as they come in, each row checked."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.words: list[str] = []
        self._seen: set[str] = set()
        self._numbers = array("f")

    def refuse(self, what: str, row: int) -> InputError:
        """The error for a row, to be raised."""
        return InputError(f"row {row}: {what}", where=self.file)

    def add(self, word: bytes, numbers: NDArray[np.float32], row: int) -> None:
        """Take in a row; raises InputError for a bad or repeated word and for numbers that are not finite."""
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            raise self.refuse("the word is not UTF-8", row) from None
        if not text:
            raise self.refuse("there is no word", row)
        if text in self._seen:
            raise self.refuse("its word stood there before", row)
        if not np.isfinite(numbers).all():
            raise self.refuse("NaN, infinity, or a number too large", row)
        self._seen.add(text)
        self.words.append(text)
        self._numbers.frombytes(numbers.tobytes())

    def vectors(self, dim: int, kind: str) -> Vectors:
        """All rows as vectors without counts."""
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
            raise rows.refuse("a word and numbers are expected", 1)
        lines = enumerate(file if header else _chained(first, file), start=2 if header else 1)
        for number, line in lines:
            _text_row(rows, line, dim, number)
    if header and len(rows.words) != header[0]:
        raise InputError(f"promises {header[0]} words and holds {len(rows.words)}", where=path.name)
    return rows.vectors(dim, "word2vec text" if header else "GloVe text")


def _chained(first: bytes, rest: IO[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _text_row(rows: _Rows, line: bytes, dim: int, number: int) -> None:
    word, *fields = line.rstrip(b" \r\n").split(b" ")
    if len(fields) != dim:
        raise rows.refuse(f"{len(fields)} numbers where {dim} are expected", number)
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(list(map(float, fields))).astype(np.float32)
    except ValueError:
        raise rows.refuse("something that is no number", number) from None
    rows.add(word, numbers, number)


def read_binary(path: Path) -> Vectors:
    """Read word2vec binary. Raises InputError with file name and row."""
    rows = _Rows(path.name)
    with path.open("rb") as file:
        header = _header(file.readline(100))
        if header is None or header[1] < 1:
            raise InputError("does not begin with the number of words and of dimensions", where=path.name)
        n_words, dim = header
        # Each row is at least a letter, a space and its numbers; a header that lies must not fill the memory.
        if path.stat().st_size < n_words * (4 * dim + 2):
            raise InputError(f"is too short for the {n_words} words of {dim} that it promises", where=path.name)
        stream = _Stream(file)
        for row in range(1, n_words + 1):
            word = stream.until_space(rows, row)
            numbers = stream.exactly(4 * dim, rows, row)
            rows.add(word.lstrip(b"\n"), np.frombuffer(numbers, dtype="<f4").astype(np.float32), row)
        if stream.rest().strip(b"\n"):
            raise InputError(f"goes on after the {n_words} words that it promises", where=path.name)
    return rows.vectors(dim, "word2vec binary")


class _Stream:
    """Bytes by separator and by number, with little read ahead."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._data, self._at = file, b"", 0

    def _more(self) -> bool:
        data = self._file.read(_READ_AT_ONCE)
        self._data, self._at = self._data[self._at :] + data, 0
        return bool(data)

    def until_space(self, rows: _Rows, row: int) -> bytes:
        """The bytes up to the next space, which is passed over."""
        while (end := self._data.find(b" ", self._at)) < 0:
            if len(self._data) - self._at > _LONGEST_WORD or not self._more():
                raise rows.refuse("the file ends, or is no word2vec file", row)
        word, self._at = self._data[self._at : end], end + 1
        return word

    def exactly(self, size: int, rows: _Rows, row: int) -> bytes:
        """The next `size` bytes."""
        while len(self._data) - self._at < size:
            if not self._more():
                raise rows.refuse("the file ends inside a vector", row)
        taken, self._at = self._data[self._at : self._at + size], self._at + size
        return taken

    def rest(self) -> bytes:
        """Some of what is left."""
        return self._data[self._at :] + self._file.read(_READ_AT_ONCE)
