"""Read and write vectors: clinveil's folder (Arrow, npy, JSON) and word2vec text and binary files; never pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError
from clinveil.core.files import Maker, private_folder, save_array
from clinveil.vectors.table import Subwords, Vectors
from clinveil.vectors.word2vec import read_binary, read_text, write_binary, write_text

TEXT_SUFFIXES, BINARY_SUFFIX = (".vec", ".txt"), ".bin"
SCHEMA = "clinveil.vectors/1"
_SUBWORDS = ("n_buckets", "shortest", "longest")


def save_vectors(vectors: Vectors, path: str | Path, *, force: bool = False, maker: Maker | None = None) -> None:
    """Write vectors atomically, readable by their owner only.

    `.vec` and `.txt` are word2vec text and `.bin` is word2vec binary, both without counts. Any other name is a folder:
    words.arrow (word, count, patients), matrix.npy, meta.json, and for fastText subwords.npy and buckets.npy.

    Raises:
        UsageError: the path exists, and `force` is false or it is not a folder that `maker` wrote.
        InputError: a word that a word2vec file cannot contain (empty, or with a space or line break).
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
    """Read vectors: a folder of clinveil, word2vec text (`.vec`, `.txt`; with or without header) or binary (`.bin`).

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
        "unknown format of vectors", where=path.name, hint="pass a folder of clinveil embed, a .vec, .txt or .bin file"
    )


def _write_folder(vectors: Vectors, folder: Path) -> None:
    import pyarrow as pa

    columns = {
        "word": pa.array(vectors.words, pa.large_string()),
        "count": _column(vectors.counts, len(vectors)),
        "patients": _column(vectors.patients, len(vectors)),
    }
    table = pa.table(columns)
    with pa.OSFile(str(folder / "words.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    save_array(folder / "matrix.npy", vectors.matrix)
    meta = {"schema": SCHEMA, "secret": True, "n_patients": vectors.n_patients, "meta": dict(vectors.meta)}
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
        raise InputError(error.what, where=error.where or folder.name) from None


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
        raise InputError("lacks the description of its subwords", where=_name(folder / "meta.json")) from None
    matrix, buckets = read_array(folder / "subwords.npy", np.float32), read_array(folder / "buckets.npy", np.int64)
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
        counts, patients = _figures(table.column("count")), _figures(table.column("patients"))
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise InputError("cannot be read as the words of vectors", where=_name(file)) from None
    if not all(isinstance(word, str) for word in words):
        raise InputError("contains a value that is not a word", where=_name(file))
    return words, counts, patients


def _figures(column: Any) -> NDArray[np.int64] | None:
    return None if column.null_count else np.asarray(column.to_numpy(), dtype=np.int64)


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"
