"""Byte streams: gzip and zstd by file name, other encodings converted to UTF-8 on the fly."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from clinveil.core import InputError, Location, RemotePath, UsageError, failure, is_failure_of_store


def refuse_other_encoding(path: Path) -> None:
    """Raise InputError for a text file that exists and is not UTF-8."""
    if path.suffix.lower() == ".parquet" or not path.is_file():
        return
    try:
        with path.open(encoding="utf-8") as file:
            while file.read(1 << 20):
                """Only decoded."""
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text", where=path.name, hint="save the list as UTF-8"
        ) from None


CHUNK_BYTES = 8 << 20
# A longer row indicates an unclosed quote or a missing line break; the limit bounds memory.
ROW_BYTES = 256 << 20
LARGER_NOTES = "--set notes.max_note_bytes=100000000"
LONGER = f"check for an unclosed quote or a missing line break, or raise {LARGER_NOTES}"
_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_BOM = "\ufeff".encode()
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def codec_name(encoding: str) -> str:
    """Return Python's name of an encoding. Raises UsageError for an unknown text encoding."""
    try:
        # Rejects unknown names and codecs that are not for text, such as base64.
        "".encode(encoding)
        if not encoding.isprintable() or encoding != encoding.strip():
            raise ValueError  # Python accepts a line break in the name, which would corrupt a log
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        hint = "use for example --set notes.encoding=cp1252"
        raise UsageError("notes.encoding: unknown text encoding", hint=hint) from None


def row_limit(note_bytes: int) -> int:
    """Return the longest row for a note of this many bytes, with space for quotes, escapes and
    other columns.
    """
    return min(ROW_BYTES, 3 * note_bytes + (1 << 20))


def too_long(unit: str, limit: int, where: str) -> InputError:
    """Return the error for a row, line or file of more than `limit` bytes."""
    return InputError(f"{unit} exceeds {limit / 1e6:.0f} MB", where=where, hint=LONGER)


def wrong_encoding(where: str, encoding: str) -> InputError:
    """Return the error for bytes that are invalid in the given encoding."""
    other = "cp1252" if encoding == "utf-8" else "utf-8"
    hint = f"pass the encoding of the file, for example --set notes.encoding={other}"
    return InputError(f"not valid {encoding}", where=where, hint=hint)


class ByteReader:
    """Read a file as a stream of UTF-8 bytes: decompressed, without byte order mark, transcoded if
    requested.

    UTF-8 input is passed on unchecked, because the parser knows the row number of an error and this
    class does not.

    Raises:
        InputError: unreadable, truncated or damaged, or invalid bytes in another encoding.
        UsageError: an unknown encoding.
    """

    def __init__(self, path: Location, encoding: str = "utf-8") -> None:
        self._path = path
        self._name = path.name
        self._encoding = codec_name(encoding)
        self._start = True
        self._lines = 0
        self._decoder = (
            None if self._encoding == "utf-8" else codecs.getincrementaldecoder(self._encoding)()
        )
        self._compressed = path.suffix.lower() in _COMPRESSION
        self._file = self._guard(lambda: _open(path))

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes, about `size` of them; b"" at the end."""
        while True:
            raw = self._guard(lambda: self._file.read(size))
            data = self._decode(raw) if self._decoder else raw
            if self._start and data:
                self._start = False
                if data.startswith(_UTF16_BOMS):
                    raise InputError(
                        "the file is UTF-16",
                        where=self._name,
                        hint="pass --set notes.encoding=utf-16",
                    )
                data = data.removeprefix(_BOM)
            if data or not raw:
                return data

    def _decode(self, raw: bytes) -> bytes:
        assert self._decoder is not None
        try:
            text = self._decoder.decode(raw, final=not raw)
            data = text.encode()
        except UnicodeError as error:
            bad = raw[: error.start] if isinstance(error, UnicodeDecodeError) else b""
            line = self._lines + bad.count(b"\n") + 1
            raise wrong_encoding(f"{self._name}, about line {line}", self._encoding) from None
        self._lines += text.count("\n")
        return data

    def _guard(self, action: Callable[[], pa.NativeFile]) -> pa.NativeFile:
        try:
            return action()
        except (OSError, pa.ArrowException) as error:
            if isinstance(self._path, RemotePath) and is_failure_of_store(error):
                raise failure(error, self._name) from None
            problem = (
                "the compressed file is truncated or damaged"
                if self._compressed
                else "the file cannot be read"
            )
            raise InputError(
                problem, where=self._name, hint="copy it again from its source"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def byte_lines(
    path: Location, encoding: str = "utf-8", row_bytes: int = ROW_BYTES
) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, without line ends. Raises InputError like `ByteReader`,
    and for long ones.
    """
    rest = b""
    with ByteReader(path, encoding) as stream:
        while data := stream.read():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > row_bytes:
                raise too_long("a line", row_bytes, path.name)
    if rest:
        yield rest


def decoded(data: bytes, where: str) -> str:
    """Return the text of bytes in UTF-8. Raises InputError for invalid ones."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise wrong_encoding(where, "utf-8") from None


def _open(path: Location) -> pa.NativeFile:
    kind = _COMPRESSION.get(path.suffix.lower())
    file = open_input(path)
    return pa.CompressedInputStream(file, kind) if kind else file


def open_input(path: Location) -> pa.NativeFile:
    """Open a local or remote file for reading. Raises OSError."""
    return path.opened() if isinstance(path, RemotePath) else pa.OSFile(str(path))


def create_bytes(path: Path, suffix: str) -> pa.NativeFile:
    """Create a file for bytes, compressed according to the suffix, without file name or time in its
    header.
    """
    kind = next((kind for end, kind in _COMPRESSION.items() if suffix.endswith(end)), None)
    file = pa.OSFile(str(path), "wb")
    return pa.CompressedOutputStream(file, kind) if kind else file
