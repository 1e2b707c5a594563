"""Read and write vectors: clinveil's folder (Arrow, npy, JSON) and word2vec text and binary files;
never pickle.
"""

from __future__ import annotations

import json
import os
from array import array
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import InputError, Maker, atomic, private_folder, save_array
from clinveil.vectors.table import Subwords, Vectors

_LONGEST_WORD = 1 << 16


def write_text(vectors: Vectors, path: Path) -> None:
    """Write word2vec text with nine digits, enough to restore float32. Raises InputError for an
    invalid word.
    """
    line = " ".join(["%.9g"] * vectors.dim)
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(
                _encoded(word, row)
                + b" "
                + (line % tuple(vectors.matrix[row].tolist())).encode()
                + b"\n"
            )


def write_binary(vectors: Vectors, path: Path) -> None:
    """Write word2vec binary, little-endian float32. Raises InputError for an invalid word."""
    rows = np.ascontiguousarray(vectors.matrix, dtype="<f4")
    with _private(path) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for row, word in enumerate(vectors.words):
            file.write(_encoded(word, row) + b" " + rows[row].tobytes() + b"\n")


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _encoded(word: str, row: int) -> bytes:
    if not word or " " in word or "\n" in word:
        raise InputError(
            f"row {row + 1}: words of a word2vec file cannot be empty or contain a space or line"
            " break"
        )
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
        """Add a row. Raises InputError for an invalid or repeated word, or for numbers that are not
        finite.
        """
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
    """Read word2vec text, or GloVe text without a header. Raises InputError with file name and
    row.
    """
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
        raise InputError(
            f"has {len(rows.words)} words, but its header says {header[0]}", where=path.name
        )
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
            raise InputError(
                "does not begin with the number of words and of dimensions", where=path.name
            )
        n_words, dim = header
        # Each row has at least a letter, a space and its numbers; a wrong header must not exhaust
        # the memory.
        if path.stat().st_size < n_words * (4 * dim + 2):
            raise InputError(
                f"is too short for {n_words} words of {dim} dimensions (its header)",
                where=path.name,
            )
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


TEXT_SUFFIXES = (".vec", ".txt")
BINARY_SUFFIX = ".bin"
SCHEMA = "clinveil.vectors/1"
_SUBWORDS = ("n_buckets", "shortest", "longest")


def save_vectors(
    vectors: Vectors, path: str | Path, *, force: bool = False, maker: Maker | None = None
) -> None:
    """Write vectors atomically, readable by their owner only.

    `.vec` and `.txt` are word2vec text and `.bin` is word2vec binary, both without counts. Any
    other name is a folder:
    words.arrow (word, count, patients), matrix.npy, meta.json, and for fastText subwords.npy and
    buckets.npy.

    Raises:
        UsageError: the path exists, and `force` is false or it is not a folder that `maker` wrote.
        InputError: a word that a word2vec file cannot contain (empty, or with a space or line
            break).
    """
    path = Path(path)
    with atomic(path, force=force, maker=maker) as part:
        if path.suffix in TEXT_SUFFIXES:
            write_text(vectors, part)
        elif path.suffix == BINARY_SUFFIX:
            write_binary(vectors, part)
        else:
            _write_folder(vectors, private_folder(part))


def load_vectors(path: str | Path) -> Vectors:
    """Read vectors: a folder of clinveil, word2vec text (`.vec`, `.txt`; with or without header) or
    binary (`.bin`).

    Words of a file are not changed; `channel.usable` returns which of them are lookup forms.

    Raises:
        InputError: missing or malformed; one line with the name of the file and the row.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError("no vectors at this path", where=path.name)
    if path.suffix == BINARY_SUFFIX:
        return read_binary(path)
    if path.suffix in TEXT_SUFFIXES:
        return read_text(path)
    raise InputError(
        "unknown format of vectors",
        where=path.name,
        hint="pass a folder of clinveil embed, a .vec, .txt or .bin file",
    )


def _write_folder(vectors: Vectors, folder: Path) -> None:
    import pyarrow as pa

    columns = {
        "word": pa.array(vectors.words, pa.large_string()),
        "count": _column(vectors.counts, len(vectors)),
        "patients": _column(vectors.patients, len(vectors)),
    }
    table = pa.table(columns)
    with (
        pa.OSFile(str(folder / "words.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    save_array(folder / "matrix.npy", vectors.matrix)
    meta = {
        "schema": SCHEMA,
        "secret": True,
        "n_patients": vectors.n_patients,
        "meta": dict(vectors.meta),
    }
    if vectors.subwords is not None:
        save_array(folder / "subwords.npy", vectors.subwords.matrix)
        save_array(folder / "buckets.npy", vectors.subwords.buckets)
        meta["subwords"] = {name: getattr(vectors.subwords, name) for name in _SUBWORDS}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def _column(figures: NDArray[np.int64] | None, n_words: int) -> Any:
    import pyarrow as pa

    return pa.nulls(n_words, pa.int64()) if figures is None else pa.array(figures, pa.int64())


def _read_folder(folder: Path) -> Vectors:
    meta = _read_meta(folder / "meta.json")
    words, counts, patients = _read_words(folder / "words.arrow")
    matrix = read_array(folder / "matrix.npy", np.float32)
    try:
        subwords = _read_subwords(folder, meta.get("subwords"))
        return Vectors(words, matrix, counts, patients, meta["n_patients"], meta["meta"], subwords)
    except InputError as error:
        raise InputError(error.problem, where=error.where or folder.name) from None


def read_array(file: Path, kind: type) -> NDArray[Any]:
    """Read an array of one or two dimensions. Raises InputError for any other file."""
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InputError("cannot be read as an array", where=_name(file)) from None
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim not in (1, 2):
        raise InputError(f"is not a {np.dtype(kind)} array", where=_name(file))
    return array


def _read_subwords(folder: Path, description: Any) -> Subwords | None:
    if description is None:
        return None
    try:
        n_buckets, shortest, longest = (int(description[name]) for name in _SUBWORDS)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "lacks the description of its subwords", where=_name(folder / "meta.json")
        ) from None
    matrix = read_array(folder / "subwords.npy", np.float32)
    buckets = read_array(folder / "buckets.npy", np.int64)
    return Subwords(buckets, matrix, n_buckets, shortest, longest)


def _read_meta(file: Path) -> dict[str, Any]:
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("cannot be read as JSON", where=_name(file)) from None
    if not isinstance(meta, dict) or meta.get("schema") != SCHEMA:
        raise InputError(f"does not have the schema {SCHEMA}", where=_name(file))
    if not isinstance(meta.get("meta"), dict) or not isinstance(meta.get("n_patients"), int | None):
        raise InputError("lacks n_patients or meta", where=_name(file))
    return meta


def _read_words(file: Path) -> tuple[list[str], NDArray[np.int64] | None, NDArray[np.int64] | None]:
    import pyarrow as pa

    try:
        with pa.OSFile(str(file), "rb") as source:
            table = pa.ipc.open_file(source).read_all()
        words = table.column("word").to_pylist()
        counts = _figures(table.column("count"))
        patients = _figures(table.column("patients"))
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise InputError("cannot be read as the words of vectors", where=_name(file)) from None
    if not all(isinstance(word, str) for word in words):
        raise InputError("contains a value that is not a word", where=_name(file))
    return words, counts, patients


def _figures(column: Any) -> NDArray[np.int64] | None:
    return None if column.null_count else np.asarray(column.to_numpy(), dtype=np.int64)


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"
