"""Hashes by which notes are recognised in a later release, and which of the notes are evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.corpus import NOTE_ID, TEXT, Hashes, hashes, joined

SHORT = 40  # letters; a shorter text, such as "did not attend", can be written of anybody
MOSTLY = 0.9  # share of texts; if more of them are short or shared, no text is left out
_LOWER = bytes(range(256)).lower()
_OTHER = bytes(code for code in range(128) if not chr(code).isalpha())


@dataclass(frozen=True)
class NoteHashes:
    """Unsalted 64-bit hashes of notes; never store them. Notes without letters are left out.

    Attributes:
        letters: (n,) of the letters of each text. ids: (n,) of the ids.
        texts: (n,) of id and exact text together. owners: (n,) of the patients.
        short: (n,) whether the text has few letters.
        drawn: (n,) of id and treated text together, where each word of it is replaced by a draw
            for its position; 0 for notes without such a text, None in other kinds of release.
    """

    letters: Hashes = field(repr=False)
    ids: Hashes = field(repr=False)
    texts: Hashes = field(repr=False)
    owners: Hashes = field(repr=False)
    short: NDArray[np.bool_] = field(repr=False)
    drawn: Hashes | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        texts: Sequence[str | None],
        patients: Sequence[str] | None = None,
    ) -> NoteHashes:
        """Return the hashes of some notes.

        Args:
            patients: the patient of each note; None: each note is of another patient.
        """
        letters = list[bytes]()
        known = list[str]()
        exact = list[str]()
        owners = list[str]()
        short = list[bool]()
        for note, text, owner in zip(ids, texts, patients or ids, strict=True):
            read = (text or "").encode("utf-8", "surrogatepass").translate(_LOWER, _OTHER)
            if read:
                letters.append(blake2b(read, digest_size=8).digest())
                known.append(note)
                exact.append(f"{note}\0{text}")
                owners.append(owner)
                short.append(len(read) < SHORT)
        return cls(
            letters=from_digests(letters),
            ids=hashes(known),
            texts=hashes(exact),
            owners=hashes(owners),
            short=np.array(short, dtype=np.bool_),
        )

    @classmethod
    def joined(cls, batches: Sequence[NoteHashes]) -> NoteHashes:
        """Return the hashes of all batches."""
        return cls(
            letters=joined([one.letters for one in batches]),
            ids=joined([one.ids for one in batches]),
            texts=joined([one.texts for one in batches]),
            owners=joined([one.owners for one in batches]),
            short=np.concatenate([np.zeros(0, dtype=np.bool_), *(one.short for one in batches)]),
        )

    def with_drawn(self, treated: Iterable[pa.RecordBatch]) -> NoteHashes:
        """Return the hashes with those of the treated notes, from which words are drawn."""
        columns = ((batch.column(NOTE_ID), batch.column(TEXT)) for batch in treated)
        batches = [NoteHashes.of(ids.to_pylist(), texts.to_pylist()) for ids, texts in columns]
        entered = NoteHashes.joined(batches)
        order = np.argsort(entered.ids)
        ids = entered.ids[order]
        rows = np.searchsorted(ids, self.ids)
        rows[rows == len(ids)] = 0
        drawn = np.zeros(len(self.ids), dtype=np.uint64)
        if len(ids):
            drawn = np.where(ids[rows] == self.ids, entered.texts[order][rows], drawn)
        return replace(self, drawn=drawn)

    @cached_property
    def specific(self) -> NDArray[np.bool_]:
        """A mask of the notes that are evidence of an earlier release, (n,).

        A short text, and one that several patients have, is a template: an unrelated release can
        have it too. If nearly all texts are such, all notes are evidence.
        """
        texts, text_of = np.unique(self.letters, return_inverse=True)
        order = np.lexsort((self.owners, text_of))
        ordered_texts = text_of[order]
        ordered_owners = self.owners[order]
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (ordered_texts[1:] != ordered_texts[:-1]) | (
            ordered_owners[1:] != ordered_owners[:-1]
        )
        n_owners = np.bincount(ordered_texts[is_new], minlength=len(texts))
        mask = (n_owners[text_of] == 1) & ~self.short
        n_specific = np.unique(text_of[mask]).size
        if n_specific < (1 - MOSTLY) * len(texts):
            return np.ones(len(order), dtype=np.bool_)
        return mask


def from_digests(digests: Sequence[bytes]) -> Hashes:
    """Return 64-bit hashes of digests of 8 bytes: shape (n,)."""
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def salted(unsalted: Hashes, salt: bytes) -> Hashes:
    """Return salted hashes of unsalted ones, (n,), in the same order."""
    values = unsalted.astype("<u8").view("V8").tolist()
    return from_digests([blake2b(value, digest_size=8, key=salt).digest() for value in values])
