"""Bytes in and out: gzip and zstd by file name, other encodings turned into UTF-8 as they stream.

Of Zstandard's frames (RFC 8878) as much is read as tells whether damage to them can be found out.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError, UsageError
from clinveil.core.remote import RemotePath, failure, is_failure_of_store

CHUNK_BYTES = 8 << 20
# A row longer than this is taken for a quote or a line that never ends; it bounds the memory of a pass.
ROW_BYTES = 256 << 20
LONGER = "a quote or line that never ends? else a larger --max-note-bytes"
_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
# Frames of zstd (RFC 8878), and a block of one byte over and over.
_FRAME, _SKIPPABLE = 0xFD2FB528, 0x184D2A50
_RLE = 1
_BOM = "\ufeff".encode()
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def codec_name(encoding: str) -> str:
    """Python's own name of an encoding. Raises UsageError if there is no such text encoding."""
    try:
        "".encode(encoding)  # refuses unknown names and codecs that are not for text, such as base64
        if not encoding.isprintable() or encoding != encoding.strip():
            raise ValueError  # Python forgives a line break, a log does not
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise UsageError("--encoding: no such text encoding", hint="for example cp1252 or utf-16") from None


def row_limit(note_bytes: int) -> int:
    """The longest row that a note of so many bytes may stand in: quotes and escapes take room, and other columns."""
    return min(ROW_BYTES, 3 * note_bytes + (1 << 20))


def too_long(what: str, limit: int, where: str) -> InputError:
    """The error for a row, line or file of more than `limit` bytes."""
    return InputError(f"{what} of over {limit / 1e6:.0f} MB", where=where, hint=LONGER)


def wrong_encoding(where: str, encoding: str) -> InputError:
    """The error for bytes that are not in the encoding they were said to be in."""
    hint = "--encoding cp1252, or whatever it was written in" if encoding == "utf-8" else "another --encoding"
    return InputError(f"its bytes are not {encoding}", where=where, hint=hint)


class ByteReader:
    """A file as a stream of UTF-8 bytes: decompressed, without byte order mark, transcoded where asked.

    Bytes that are UTF-8 already are passed on unchecked: the parser knows the row of a bad one, this class does not.

    Raises:
        InputError: unreadable, truncated or damaged, or bytes that another encoding does not have.
        UsageError: an unknown encoding.
    """

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self._path, self._name, self._encoding = path, path.name, codec_name(encoding)
        self._start, self._lines = True, 0
        self._decoder = None if self._encoding == "utf-8" else codecs.getincrementaldecoder(self._encoding)()
        self._compressed = path.suffix.lower() in _COMPRESSION
        self._file = self._guard(lambda: _open(path))

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """The next bytes, about `size` of them; none at the end."""
        while True:
            raw = self._guard(lambda: self._file.read(size))
            data = self._decode(raw) if self._decoder else raw
            if self._start and data:
                self._start = False
                if data.startswith(_UTF16_BOMS):
                    raise InputError("it is UTF-16", where=self._name, hint="--encoding utf-16")
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
            what = "the compressed file is truncated or damaged" if self._compressed else "it cannot be read"
            raise InputError(what, where=self._name, hint="copy it again from its source") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def _open(path: Path) -> pa.NativeFile:
    kind = _COMPRESSION.get(path.suffix.lower())
    file = open_input(path)
    return pa.CompressedInputStream(file, kind) if kind else file


def open_input(path: Path) -> pa.NativeFile:
    """A file of this machine or of a store, for reading. Raises OSError."""
    return path.opened() if isinstance(path, RemotePath) else pa.OSFile(str(path))


def create_bytes(path: Path, suffix: str) -> pa.NativeFile:
    """A new file to write bytes to, compressed as the suffix says. It carries no file name and no time of day."""
    kind = next((kind for end, kind in _COMPRESSION.items() if suffix.endswith(end)), None)
    file = pa.OSFile(str(path), "wb")
    return pa.CompressedOutputStream(file, kind) if kind else file


def has_unchecked_frame(path: Path) -> bool:
    """Whether a frame of the file carries no checksum of its content: then a flipped bit in it may pass unseen.

    Reads headers only. A file that is cut off or malformed is left to the reader, which refuses it.
    """
    with path.open("rb") as file:
        while start := file.read(4):
            magic = int.from_bytes(start, "little")
            if magic & 0xFFFFFFF0 == _SKIPPABLE:
                file.seek(_number(file, 4), 1)
            elif magic != _FRAME:
                return False
            elif not _skip_frame(file):
                return True
    return False


def _skip_frame(file: BinaryIO) -> bool:
    """Go to the end of a frame; whether it has a checksum (section 3.1.1)."""
    descriptor = _number(file, 1)
    single, checked = descriptor >> 5 & 1, bool(descriptor >> 2 & 1)
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    file.seek((1 - single) + (0, 1, 2, 4)[descriptor & 3] + content_size, 1)
    last = 0
    while checked and not last:  # of one without, the rest does not matter
        header = file.read(3)
        if len(header) < 3:
            return True
        block = int.from_bytes(header, "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        file.seek(1 if kind == _RLE else size, 1)
    file.seek(4, 1)
    return checked


def _number(file: BinaryIO, size: int) -> int:
    return int.from_bytes(file.read(size), "little")


def refuse_nul(column: pa.Array, suffix: str, rows: int) -> None:
    """Raise InputError if a text holds U+0000, which text files cannot carry."""
    found = pc.index(pc.match_substring(column, "\0"), True).as_py()
    if found >= 0:
        raise InputError("a NUL character", where=f"row {rows + found + 1} of the {suffix} to write", hint="drop it")
