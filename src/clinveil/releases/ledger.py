"""The ledger of releases: the same notes do not leave twice, under two keys, without somebody knowing.

A folder for its owner only, beside OUT or where `--ledger` says, that outlives every OUT: one file a release, named
after the commitment of its key, with hashes of the source notes under a salt of its own. The vault keeps a copy; put
into another ledger, it tells that one of the release too. A note is what it says, its letters: new ids, dates or line
breaks make no new note of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core.atomic import atomic
from clinveil.core.errors import ClinveilError, DiskError, InputError, UsageError
from clinveil.core.files import private_folder, refuse_nameless
from clinveil.report.numerals import SMALL, SPACE, share

Hashes = NDArray[np.uint64]
NAME, IN_VAULT, SCHEMA = "clinveil-ledger", "ledger.parquet", "clinveil.ledger/1"
SALT = 32  # bytes
SAME = 0.01  # of the notes of the smaller of two releases; a few texts are everybody's ("did not attend")
_LOWER = bytes(range(256)).lower()
_OTHER = bytes(code for code in range(128) if not chr(code).isalpha())
NO_HASHES: Hashes = np.zeros(0, dtype=np.uint64)


def text_hashes(texts: Sequence[str | None]) -> Hashes:
    """64-bit hashes of what notes say, (n_notes,), unsalted: never to be stored. Notes without a letter have none."""
    said = (text.encode("utf-8", "surrogatepass").translate(_LOWER, _OTHER) for text in texts if text)
    made = [blake2b(letters, digest_size=8).digest() for letters in said if letters]
    return np.frombuffer(b"".join(made), dtype="<u8").astype(np.uint64)


def salted(hashes: Hashes, salt: bytes) -> Hashes:
    """What an entry holds in the place of `text_hashes`: shape (n,), in the same order."""
    made = (blake2b(one, digest_size=8, key=salt).digest() for one in hashes.astype("<u8").view("V8").tolist())
    return np.frombuffer(b"".join(made), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True)
class Entry:
    """One release.

    Attributes:
        run: its name. commitment: of its key. vault: where its vault lay.
        salt: of the hashes. notes: (n_notes,) salted hashes of its different notes, in order.
    """

    run: str
    commitment: str
    vault: Path
    salt: bytes = field(repr=False)
    notes: Hashes = field(repr=False)

    @property
    def file(self) -> str:
        """The name of its file in a ledger."""
        return f"{self.commitment[:16]}.parquet"

    def holds(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which of these `text_hashes` are of its notes, (n,)."""
        return np.isin(salted(hashes, self.salt), self.notes)

    def grown(self, hashes: Hashes, run: str, vault: Path) -> Entry:
        """What left under the same key after one more release, of notes with these `text_hashes`."""
        more = salted(np.unique(hashes), self.salt)
        return replace(self, run=run, vault=vault.resolve(), notes=np.union1d(self.notes, more))

    def write(self, path: Path) -> None:
        """Write it, whole or not at all, for its owner only. Raises OSError where the disk does not let it."""
        told = {"schema": SCHEMA, "run": self.run, "commitment": self.commitment, "vault": str(self.vault)}
        told["salt"] = self.salt.hex()
        schema = pa.schema([("note", pa.uint64())], metadata={"clinveil": json.dumps(told)})
        with atomic(path, force=True) as part:
            pq.write_table(pa.table([pa.array(self.notes)], schema=schema), part, compression="zstd")


def _may_be_ours(path: Path) -> bool:
    return path.suffix == ".parquet" or path.name.startswith(".")  # what a killed run leaves of an entry is hidden


def entry(hashes: Hashes, run: str, commitment: str, vault: Path) -> Entry:
    """The entry of a release of notes with these `text_hashes`."""
    salt = token_bytes(SALT)
    return Entry(run, commitment, vault.resolve(), salt, np.sort(salted(np.unique(hashes), salt)))


def read_entry(path: Path) -> Entry:
    """An entry. Raises InputError for what is none, or damaged: a ledger that cannot be read vouches for nothing."""
    try:
        table = pq.read_table(path)
        told = json.loads(table.schema.metadata[b"clinveil"])
        notes = table["note"].to_numpy().astype(np.uint64, casting="safe")
        made = Entry(str(told["run"]), str(told["commitment"]), Path(told["vault"]), bytes.fromhex(told["salt"]), notes)
        known = told["schema"] == SCHEMA and len(made.salt) == SALT
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        known = False
    if not known:
        hint = "put back the copy of that release's vault, or move the file away if it never was an entry"
        raise InputError(f"{path.name} is no entry of a ledger, or damaged", where=path.parent.name, hint=hint)
    return made


@dataclass(frozen=True)
class Earlier:
    """A release under another key, and the different notes that both hold: `shared` of the `of` in the smaller one."""

    entry: Entry
    shared: int
    of: int

    @property
    def share(self) -> float:
        """How much of the smaller release is in both."""
        return self.shared / self.of if self.of else 0.0

    @property
    def said(self) -> str:
        """How much, in words; small counts are not told, for the external report says it too."""
        return f"fewer than {SMALL}" if self.shared < SMALL else share(self.share).replace(SPACE, " ")


@dataclass(frozen=True)
class Ledger:
    """The releases that a folder knows."""

    folder: Path

    @classmethod
    def at(cls, folder: Path | None, out: Path) -> Ledger:
        """The ledger of a release to OUT: in that folder, or beside OUT. Raises UsageError where none can be kept."""
        if folder is None:
            refuse_nameless(out)
        place = folder or out.with_name(NAME)
        near = next((path for path in (place, *place.absolute().parents) if path.exists()), place)
        usable = near.is_dir() and os.access(near, os.W_OK | os.X_OK | os.R_OK)
        if not usable or (near == place and not all(_may_be_ours(path) for path in near.iterdir())):
            hint = "name another folder with --ledger"
            raise UsageError("no ledger of releases can be kept here", where=near.name, hint=hint)
        if place.exists():
            private_folder(place)  # now, not after the hours that come before its entry
        return cls(place)

    def entries(self) -> list[Entry]:
        """All entries. Raises InputError for a file that is none."""
        return [read_entry(path) for path in sorted(self.folder.glob("*.parquet"))]

    def of(self, commitment: str) -> Entry | None:
        """What left under one key; None where that is not known. Raises InputError for a file that is no entry."""
        path = self.folder / f"{commitment[:16]}.parquet"
        made = read_entry(path) if path.exists() else None
        return made if made is not None and made.commitment == commitment else None

    def earlier(self, hashes: Hashes, commitment: str = "") -> list[Earlier]:
        """Releases of more than 1 % of the same notes under another key, the one that shares most first.

        Args:
            hashes: `text_hashes` of the notes. commitment: of the key of this release, which a resumed run has too.
        """
        mine, found = np.unique(hashes), []
        for made in self.entries():
            if made.commitment != commitment:
                shared = np.intersect1d(salted(mine, made.salt), made.notes, assume_unique=True).size
                found.append(Earlier(made, int(shared), min(mine.size, made.notes.size)))
        return sorted((one for one in found if one.share > SAME), key=lambda one: -one.shared)

    def refuse(self, earlier: Sequence[Earlier], error: type[ClinveilError] = UsageError) -> None:
        """Raise UsageError, or another error, if there are earlier releases of the same notes."""
        if not earlier:
            return
        first, more = earlier[0], f" and {len(earlier) - 1} more" if len(earlier) > 1 else ""
        what = f"{first.said} of these notes left before, under another key: release {first.entry.run}{more}"
        never = f"if that one never left, delete its {first.entry.file} there"
        hint = f"--again releases them once more, and the report says what both give away; {never}"
        raise error(what, where=self.folder.name, hint=hint)

    def enter(self, made: Entry, vault: Path) -> None:
        """Write the entry of a release, into its vault too. Raises DiskError where the ledger cannot be written."""
        try:
            made.write(vault / IN_VAULT)
            made.write(private_folder(self.folder) / made.file)
        except OSError:
            what, hint = "the ledger of releases cannot be written", "mend that; the same command goes on from here"
            raise DiskError(what, where=self.folder.name, hint=hint) from None
