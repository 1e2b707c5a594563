"""Crosswalk: the original text of every replaced identifier, encrypted with the key of the run.

The file contains every identifier of every patient. It is therefore written only on request, and
the key that decrypts it (the vault's `key.bin`) should be stored elsewhere. Encryption:
AES-256-GCM, one chunk per batch, with a key derived by HKDF-SHA256 from the run's key and name. The
associated data of a chunk contain its number and whether it is the last one, so a truncated or
reordered file, or one assembled from two, cannot be decrypted.
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

from clinveil.core import InputError, Key, Span

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from clinveil.corpus import Note
    from clinveil.phi.treatment.policy import TreatedSpan
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from clinveil.corpus import NOTE_ID, PATIENT_ID


class NewIds:
    """Assigns pseudo-random ids to notes and patients.

    An id is 80 bits of a keyed pseudo-random function: it does not depend on row order, and ids
    collide with probability n²/2^81. Each release has a new key, so two releases of the same notes
    share no id.

    Attributes:
        note, patient: return the new id of a source id.

    Args:
        patients: whether the source has patient ids; otherwise the note id is used for both.
    """

    def __init__(self, key: Key, *, patients: bool) -> None:
        self.note = _namer(key, "note id")
        self.patient = _namer(key, "patient id") if patients else self.note

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with new ids in its first columns, note id and patient id."""
        columns = ((self.note, batch.column(NOTE_ID)), (self.patient, batch.column(PATIENT_ID)))
        new = [
            pa.array([None if old is None else name(old) for old in ids.to_pylist()], pa.string())
            for name, ids in columns
        ]
        return pa.record_batch([*new, *batch.columns[2:]], schema=batch.schema)


def _namer(key: Key, purpose: str) -> Callable[[str], str]:
    @lru_cache(maxsize=1 << 16)
    def name(source: str) -> str:
        stream = key.stream(purpose, source)
        return f"{stream.uint64():016x}{stream.below(1 << 16):04x}"

    return name


def part_name(key: Key, source: str, suffix: str) -> str:
    """Return the new name of a part file; the order of the new names says nothing about the order
    of the parts.
    """
    stream = key.stream("part name", source)
    return f"part-{stream.uint64():016x}{suffix}"


SCHEMA = "clinveil.crosswalk/1"
_NONCE = 12
_SIZE = 4
_LARGEST = 1 << 30


class Replacement(NamedTuple):
    """One replaced identifier; `start` is the offset of the replacement in the treated note."""

    start: int
    label: str
    original: str
    replacement: str


class CrosswalkRow(NamedTuple):
    """The replacements in one note.

    Attributes:
        digest: of the treated text; a note modified later cannot be restored.
        shift: days by which the patient's dates were shifted, or None if the note has no shifted
            date.
        new_note_id, new_patient_id: ids in the treated notes; "" if the source ids were kept.
    """

    note_id: str
    patient_id: str
    digest: str
    shift: int | None
    replacements: tuple[Replacement, ...]
    new_note_id: str = ""
    new_patient_id: str = ""

    def restored(self, text: str) -> str:
        """Return the original text of the note. Raises InputError if its treated text has
        changed.
        """
        if digest(text) != self.digest:
            raise InputError("the note was changed after it was written")
        pieces = []
        position = 0
        for item in self.replacements:
            pieces += [text[position : item.start], item.original]
            position = item.start + len(item.replacement)
        return "".join([*pieces, text[position:]])


def digest(text: str) -> str:
    """Return the digest of a treated text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def row(
    note: Note, out: str, spans: Sequence[Span], treated: Sequence[TreatedSpan], shift: int | None
) -> CrosswalkRow:
    """Return the row of a note with treated text `out`; `spans` in code points of the source
    text.
    """
    replacements = []
    moved = 0
    for span, item in zip(spans, treated, strict=True):
        original = note.text[span.start : span.end]
        replacements.append(Replacement(span.start + moved, span.label, original, item.text))
        moved += len(item.text) - (span.end - span.start)
    return CrosswalkRow(note.note_id, note.patient_id, digest(out), shift, tuple(replacements))


class CrosswalkWriter:
    """Writes a crosswalk, chunk by chunk; the file can be read only after `close`."""

    def __init__(self, file: BinaryIO, key: Key, run: str) -> None:
        head = {"schema": SCHEMA, "run": run, "key_commitment": key.commitment}
        self._file = file
        self._head = json.dumps(head).encode() + b"\n"
        self._chunks = 0
        self._cipher = _cipher(key, run)
        file.write(self._head)

    def write(self, rows: Sequence[CrosswalkRow], *, last: bool = False) -> None:
        """Write one chunk."""
        plain = zlib.compress(
            json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass"), 1
        )
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(
            nonce, plain, _associated_data(self._head, self._chunks, last=last)
        )
        self._file.write(len(sealed).to_bytes(_SIZE, "big") + nonce + sealed)
        self._chunks += 1

    def close(self) -> None:
        """Write the final chunk, which marks the file as complete."""
        self.write([], last=True)


def _cipher(key: Key, run: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), 32, salt=run.encode(), info=b"clinveil crosswalk").derive(
        key.subkey("crosswalk")
    )
    return AESGCM(derived)


def _associated_data(head: bytes, chunk: int, *, last: bool) -> bytes:
    return head + chunk.to_bytes(8, "big") + bytes([last])


def read_crosswalk(path: Path, key: Key) -> Iterator[CrosswalkRow]:
    """Yield the rows of a crosswalk.

    Raises InputError: not a crosswalk, written under another key, damaged or truncated.
    """
    with path.open("rb") as file:
        head = file.readline(4096)
        fields = _head(head, path)
        if fields["key_commitment"] != key.commitment:
            raise InputError(
                "was written under another key",
                where=path.name,
                hint="pass the key of that run with --key",
            )
        cipher = _cipher(key, fields["run"])
        chunk = 0
        last = False
        while not last:
            plain, last = _chunk(file, cipher, head, chunk, path)
            for note_id, patient_id, text, shift, items, *new_ids in json.loads(
                plain.decode("utf-8", "surrogatepass")
            ):
                yield CrosswalkRow(
                    note_id,
                    patient_id,
                    text,
                    shift,
                    tuple(Replacement(*item) for item in items),
                    *new_ids,
                )
            chunk += 1


def _head(line: bytes, path: Path) -> dict[str, Any]:
    with suppress(ValueError):
        fields = json.loads(line)
        if (
            isinstance(fields, dict)
            and fields.get("schema") == SCHEMA
            and {"run", "key_commitment"} <= fields.keys()
        ):
            return fields
    raise InputError(
        "is not a clinveil crosswalk", where=path.name, hint="pass the vault of clinveil deidentify"
    )


def _chunk(
    file: BinaryIO, cipher: AESGCM, head: bytes, chunk: int, path: Path
) -> tuple[bytes, bool]:
    from cryptography.exceptions import InvalidTag

    size = int.from_bytes(file.read(_SIZE), "big")
    nonce = file.read(_NONCE)
    sealed = file.read(min(size, _LARGEST))
    for last in (False, True):
        with suppress(InvalidTag, ValueError):
            return zlib.decompress(
                cipher.decrypt(nonce, sealed, _associated_data(head, chunk, last=last))
            ), last
    raise InputError(
        "is damaged or truncated", where=path.name, hint="restore it from a backup of the vault"
    ) from None
