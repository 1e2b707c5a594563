"""The crosswalk: what stood in each place of the notes before, encrypted under the key of the run.

It is one file with every identifier of every patient, so it is written on request only, and what can read it (the
vault's `key.bin`) should be kept somewhere else. AES-256-GCM, one chunk a batch, under a key that HKDF-SHA256 derives
from the run's key and the run's name; a chunk knows its place and the last one that it is the last, so that a file that
was cut, reordered or put together from two fails as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.spans import Span

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from clinveil.corpus.corpus import Note
    from clinveil.phi.treating import Treated

SCHEMA = "clinveil.crosswalk/1"
_NONCE, _SIZE = 12, 4
_LARGEST = 1 << 30


class Place(NamedTuple):
    """One identifier: where its replacement begins in the treated note, its label, what stood there, what stands."""

    start: int
    label: str
    original: str
    made: str


class Row(NamedTuple):
    """The places of one note.

    Attributes:
        digest: of the treated text; a note that was changed since cannot be put back.
        shift: days by which the patient's dates moved, or None where none did.
    """

    note_id: str
    patient_id: str
    digest: str
    shift: int | None
    places: tuple[Place, ...]

    def restored(self, text: str) -> str:
        """The note as it was. Raises InputError for another text."""
        if digest(text) != self.digest:
            raise InputError("a note was changed after it was written")
        pieces, position = [], 0
        for place in self.places:
            pieces += [text[position : place.start], place.original]
            position = place.start + len(place.made)
        return "".join([*pieces, text[position:]])


def digest(text: str) -> str:
    """What a treated text is known by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def row(note: Note, out: str, spans: Sequence[Span], treated: Sequence[Treated], shift: int | None) -> Row:
    """The row of a note that became `out`; `spans` are those of the source."""
    places, moved = [], 0
    for span, made in zip(spans, treated, strict=True):
        places.append(Place(span.start + moved, span.label, note.text[span.start : span.end], made.text))
        moved += len(made.text) - (span.end - span.start)
    return Row(note.note_id, note.patient_id, digest(out), shift, tuple(places))


class Writer:
    """Writes a crosswalk, chunk by chunk; use `close` at the end, or it cannot be read."""

    def __init__(self, file: BinaryIO, key: Key, run: str) -> None:
        head = {"schema": SCHEMA, "run": run, "key_commitment": key.commitment}
        self._file, self._head, self._chunks = file, json.dumps(head).encode() + b"\n", 0
        self._cipher = _cipher(key, run)
        file.write(self._head)

    def write(self, rows: Sequence[Row], *, last: bool = False) -> None:
        """One chunk."""
        plain = zlib.compress(json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass"), 1)
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, plain, _place(self._head, self._chunks, last=last))
        self._file.write(len(sealed).to_bytes(_SIZE, "big") + nonce + sealed)
        self._chunks += 1

    def close(self) -> None:
        """The chunk that says that nothing is missing."""
        self.write([], last=True)


def _cipher(key: Key, run: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), 32, salt=run.encode(), info=b"clinveil crosswalk").derive(key.subkey("crosswalk"))
    return AESGCM(derived)


def _place(head: bytes, chunk: int, *, last: bool) -> bytes:
    return head + chunk.to_bytes(8, "big") + bytes([last])


def read_crosswalk(path: Path, key: Key) -> Iterator[Row]:
    """The rows of a crosswalk.

    Raises InputError: no crosswalk, one of another key, or one that is damaged or cut short.
    """
    with path.open("rb") as file:
        head = file.readline(4096)
        said = _head(head, path)
        if said["key_commitment"] != key.commitment:
            raise InputError("was written under another key", where=path.name, hint="--key: the key of that run")
        cipher, chunk, last = _cipher(key, said["run"]), 0, False
        while not last:
            plain, last = _chunk(file, cipher, head, chunk, path)
            for note_id, patient_id, text, shift, places in json.loads(plain.decode("utf-8", "surrogatepass")):
                yield Row(note_id, patient_id, text, shift, tuple(Place(*place) for place in places))
            chunk += 1


def _head(line: bytes, path: Path) -> dict[str, Any]:
    with suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict) and said.get("schema") == SCHEMA and {"run", "key_commitment"} <= said.keys():
            return said
    raise InputError("is no crosswalk of clinveil", where=path.name, hint="name the vault of clinveil deidentify")


def _chunk(file: BinaryIO, cipher: AESGCM, head: bytes, chunk: int, path: Path) -> tuple[bytes, bool]:
    from cryptography.exceptions import InvalidTag

    size = int.from_bytes(file.read(_SIZE), "big")
    nonce, sealed = file.read(_NONCE), file.read(min(size, _LARGEST))
    for last in (False, True):
        with suppress(InvalidTag, ValueError):
            return zlib.decompress(cipher.decrypt(nonce, sealed, _place(head, chunk, last=last))), last
    raise InputError("is damaged, or cut short", where=path.name, hint="take it from a backup of the vault") from None
