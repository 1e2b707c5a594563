"""The ledger of releases: prevents that the same notes are released twice under two keys by
accident.

The ledger is a private folder next to OUT, or at `--ledger`, with one file per key, named by the
commitment of the key. The file contains salted hashes of the source notes and their ids. The vault
has a copy, which can be copied into another ledger. A note is identified by its letters, so new
ids, dates or line breaks do not make it a new note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core import (
    ClinveilError,
    DiskError,
    InputError,
    UsageError,
    atomic,
    locked,
    private_folder,
    refuse_nameless,
)
from clinveil.corpus import NOTE_ID, TEXT, Hashes, hashes, joined
from clinveil.report import SMALL, SPACE, share

NAME = "clinveil-ledger"
IN_VAULT = "ledger.parquet"
SCHEMA = "clinveil.ledger/1"
VAULT = "vault"
VARIABLE = "CLINVEIL_LEDGER"
# seconds
LOCK = ".lock"
WAIT = 60.0
SALT = 32  # bytes
COLUMNS = ("note", "id", "text", "drawn")
DRAWN = "obfuscated"
READABLE = "deidentified"
"""The kind in which each released word is a random draw for a word of the source, and the kind that
can be read.
"""
SAME = 0.01  # share of the smaller release; a few texts are common to all ("did not attend")
_LOWER = bytes(range(256)).lower()
_OTHER = bytes(code for code in range(128) if not chr(code).isalpha())


@dataclass(frozen=True)
class NoteHashes:
    """Unsalted 64-bit hashes of notes; never store them. Notes without letters are left out.

    Attributes:
        letters: (n,) of the letters of each text. ids: (n,) of the ids.
        texts: (n,) of id and exact text together.
        drawn: (n,) of id and treated text together, where each word of it is replaced by a draw
            for its position; 0 for notes without such a text, None in other kinds of release.
    """

    letters: Hashes = field(repr=False)
    ids: Hashes = field(repr=False)
    texts: Hashes = field(repr=False)
    drawn: Hashes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, ids: Sequence[str], texts: Sequence[str | None]) -> NoteHashes:
        """Return the hashes of some notes."""
        letters = list[bytes]()
        known = list[str]()
        exact = list[str]()
        for note, text in zip(ids, texts, strict=True):
            read = (text or "").encode("utf-8", "surrogatepass").translate(_LOWER, _OTHER)
            if read:
                letters.append(blake2b(read, digest_size=8).digest())
                known.append(note)
                exact.append(f"{note}\0{text}")
        return cls(_hashes(letters), hashes(known), hashes(exact))

    @classmethod
    def joined(cls, batches: Sequence[NoteHashes]) -> NoteHashes:
        """Return the hashes of all batches."""
        return cls(
            joined([one.letters for one in batches]),
            joined([one.ids for one in batches]),
            joined([one.texts for one in batches]),
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


def _hashes(digests: Sequence[bytes]) -> Hashes:
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def salted(unsalted: Hashes, salt: bytes) -> Hashes:
    """Return salted hashes of unsalted ones, (n,), in the same order."""
    values = unsalted.astype("<u8").view("V8").tolist()
    return _hashes([blake2b(value, digest_size=8, key=salt).digest() for value in values])


@dataclass(frozen=True)
class Entry:
    """The ledger entry of one key.

    Attributes:
        run: name of the latest release under the key. runs: number of releases under it.
        commitment: of the key. vault: location of the latest vault. kind: of the releases.
        salt: of the hashes.
        rows: (n, 4) distinct salted hashes of the notes, in the order of `NoteHashes`.
        spent: deviation of the noise of each differentially private release of them, by keyed
            digest.
    """

    run: str
    commitment: str
    vault: Path
    kind: str
    salt: bytes = field(repr=False)
    rows: NDArray[np.uint64] = field(repr=False)
    runs: int = 1
    spent: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        """Its file name in a ledger."""
        return f"{self.commitment[:16]}.parquet"

    @cached_property
    def notes(self) -> Hashes:
        """Sorted salted hashes of its distinct texts, by their letters."""
        return np.unique(self.rows[:, 0])

    def holds(self, letters: Hashes) -> NDArray[np.bool_]:
        """Return a mask of the texts that are among its notes, (n,)."""
        return np.isin(salted(letters, self.salt), self.notes)

    def covers(self, other: Entry) -> bool:
        """Return whether it contains all notes of an earlier state of the same entry."""
        return self.salt == other.salt and bool(np.isin(other.rows[:, 2], self.rows[:, 2]).all())

    def number(self, vault: Path) -> int:
        """Return the number of the release of a vault under this key, from 1 on."""
        return self.runs if self.vault == vault.resolve() else self.runs + 1

    def grown(self, notes: NoteHashes, run: str, vault: Path) -> Entry:
        """Return the entry extended by another release under the same key."""
        return replace(
            self,
            run=run,
            runs=self.number(vault),
            vault=vault.resolve(),
            rows=np.unique(np.concatenate([self.rows, _salted_rows(notes, self.salt)]), axis=0),
        )

    def refuse(
        self, notes: NoteHashes, *, again: bool, error: type[ClinveilError] = UsageError
    ) -> None:
        """Raise UsageError, or `error`, for notes that cannot be released under the same key.

        These are notes with an id that was released with another text, source or treated, and,
        unless `again`, texts that were released under other ids.
        """
        rows = _salted_rows(notes, self.salt)
        known = np.isin(rows[:, 1], self.rows[:, 1])
        changed = known & ~np.isin(rows[:, 2], self.rows[:, 2])
        if changed.any():
            what = (
                f"{_some(int(changed.sum()))} have the id of a released note, with another text;"
                f" the first is note {int(np.argmax(changed)) + 1:,} of the input"
            )
            hint = "pass notes with new ids, or release all notes under a new key (--again)"
            raise error(what, where=f"release {self.run}", hint=hint)
        if notes.drawn is not None:
            same = np.isin(rows[:, 3], self.rows[:, 3])
            otherwise = int((known & (notes.drawn != 0) & ~same).sum())
            if otherwise:
                what = (
                    f"{_some(otherwise)} were released before with other identifiers found in"
                    " them, so the same draws would replace other words"
                )
                hint = (
                    "leave out the notes of that release, or release all under a new key (--again)"
                )
                raise error(what, where=f"release {self.run}", hint=hint)
        renamed = rows[:, 0][~known & np.isin(rows[:, 0], self.rows[:, 0])]
        shared = Earlier(self, np.unique(renamed).size, np.unique(rows[:, 0]).size)
        if shared.share > SAME and shared.shared >= SMALL and not again:
            what = f"{shared.description} of these notes were released before under other ids"
            hint = "pass --id COLUMN with their ids, or remove them; --again releases them again"
            raise error(what, where=f"release {self.run}", hint=hint)

    def write(self, path: Path) -> None:
        """Write the entry atomically, readable by its owner only. Raises OSError."""
        metadata = {
            "schema": SCHEMA,
            "run": self.run,
            "runs": self.runs,
            "commitment": self.commitment,
            "vault": str(self.vault),
            "salt": self.salt.hex(),
            "spent": dict(self.spent),
            "kind": self.kind,
        }
        fields = [(name, pa.uint64()) for name in COLUMNS]
        schema = pa.schema(fields, metadata={"clinveil": json.dumps(metadata)})
        columns = [pa.array(column) for column in self.rows.T]
        with atomic(path, force=True) as part:
            pq.write_table(pa.table(columns, schema=schema), part, compression="zstd")


def entry(notes: NoteHashes, run: str, commitment: str, vault: Path, kind: str) -> Entry:
    """Return a new entry for a release of these notes."""
    salt = token_bytes(SALT)
    rows = np.unique(_salted_rows(notes, salt), axis=0)
    return Entry(run, commitment, vault.resolve(), kind, salt, rows)


def _salted_rows(notes: NoteHashes, salt: bytes) -> NDArray[np.uint64]:
    drawn = np.zeros_like(notes.ids) if notes.drawn is None else notes.drawn
    columns = (notes.letters, notes.ids, notes.texts, drawn)
    return np.stack([salted(column, salt) for column in columns], axis=1)


def _some(notes: int) -> str:
    return f"fewer than {SMALL} notes" if notes < SMALL else f"{notes:,} notes"


def read_entry(path: Path) -> Entry:
    """Read an entry. Raises InputError if it is damaged or not an entry."""
    try:
        table = pq.read_table(path)
        stored = json.loads(table.schema.metadata[b"clinveil"])
        columns = [table[name].to_numpy().astype(np.uint64, casting="safe") for name in COLUMNS]
        salt = bytes.fromhex(stored["salt"])
        spent = {str(of): float(sigma) for of, sigma in stored["spent"].items()}
        made = Entry(
            run=str(stored["run"]),
            commitment=str(stored["commitment"]),
            vault=Path(stored["vault"]),
            kind=str(stored["kind"]),
            salt=salt,
            rows=np.stack(columns, axis=1),
            runs=int(stored["runs"]),
            spent=spent,
        )
        known = stored["schema"] == SCHEMA and len(salt) == SALT
        known = known and bool(made.run and made.commitment and made.kind)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        known = False
    if not known:
        hint = (
            "restore the copy in that release's vault, or move the file away if it is not an entry"
        )
        raise InputError(
            f"{path.name} is damaged or not a ledger entry",
            where=str(path.parent.absolute()),
            hint=hint,
        )
    return made


@dataclass(frozen=True)
class Earlier:
    """A release under another key; `shared` of the `of` distinct notes in the smaller release are
    in both.
    """

    entry: Entry
    shared: int
    of: int

    @property
    def share(self) -> float:
        """Share of the smaller release that is in both."""
        return self.shared / self.of if self.of else 0.0

    @property
    def description(self) -> str:
        """The share as text; small counts are hidden, as the external report contains it."""
        return (
            f"fewer than {SMALL}" if self.shared < SMALL else share(self.share).replace(SPACE, " ")
        )

    def disclosed(self, kind: str) -> str:
        """Return what the holder of both releases learns, as one or two sentences.

        Args:
            kind: of the other release of the same notes.
        """
        pairs = f"fewer than {SMALL}" if self.shared < SMALL else f"{self.shared:,}"
        own = kind == DRAWN
        other = self.entry.kind == DRAWN
        if own and self.entry.kind == READABLE:
            return (
                f"That release is readable: its holder has {pairs} of these notes in both forms, as"
                " known pairs, and reads them there. The figures for up to 200 known pairs are a"
                " lower bound of what they recover here."
            )
        if kind == READABLE and other:
            return (
                f"This release is readable: whoever holds both has {pairs} of the notes in both"
                " forms, as known pairs of that release, and reads them here. The report of that"
                " release does not count with this."
            )
        if kind == READABLE and self.entry.kind == READABLE:
            return (
                "Both are readable: whoever holds both sees which words are surrogates, because"
                " these differ."
            )
        if own and other:
            return (
                "With both, an attacker has two draws of each word: see the figures for several"
                " draws."
            )
        return "What both disclose about the same notes adds up."


@dataclass(frozen=True)
class Ledger:
    """A folder of ledger entries.

    Attributes:
        vaults: folder of runs with copies of entries in their vaults, used if the ledger lacks
            them; None: none.
    """

    folder: Path
    vaults: Path | None = None

    @classmethod
    def at(cls, folder: Path | None, out: Path) -> Ledger:
        """Return the ledger in `folder`, or in that of the environment variable CLINVEIL_LEDGER, or
        next to OUT.

        Raises UsageError for an unusable folder.
        """
        if folder is None and (site := os.environ.get(VARIABLE)):
            folder = Path(site)
        refuse_nameless(out)
        home = os.path.expanduser(folder) if folder else None  # noqa: PTH111  never raises
        place = Path(home) if home else out.with_name(NAME)
        near = next((path for path in (place, *place.absolute().parents) if path.exists()), place)
        usable = near.is_dir() and os.access(near, os.W_OK | os.X_OK | os.R_OK)
        names = [path.name for path in near.iterdir()] if usable and near == place else []
        # Of a stopped run.
        foreign = not all(name.endswith(".parquet") or name.startswith(".") for name in names)
        if not usable or foreign or (place.is_symlink() and not place.exists()):
            hint = "pass another folder with --set ledger=FOLDER"
            raise UsageError(
                "cannot be used as a ledger folder", where=str(near.absolute()), hint=hint
            )
        if place.exists():
            private_folder(place)  # now, because the entry is written only after hours
        return cls(place, out.parent)

    @property
    def description(self) -> str:
        """Which ledger is used, and how many releases it lists."""
        number = sum(1 for _ in self.folder.glob("*.parquet"))
        releases = f"{number:,} release{'s' * (number > 1)}" if number else "new, empty"
        return f"ledger {self.folder.absolute()}: {releases}"

    def entries(self) -> list[Entry]:
        """Return all entries, and those of vaults next to OUT that the ledger lacks: of one key,
        the largest.

        Raises InputError for a file in the ledger that is not an entry.
        """
        listed = [read_entry(path) for path in sorted(self.folder.glob("*.parquet"))]
        known = {made.commitment for made in listed}
        lost = dict[str, Entry]()
        copies = sorted(self.vaults.glob(f"*/{VAULT}/{IN_VAULT}")) if self.vaults else ()
        for path in copies:
            with suppress(InputError):  # another file of this name
                made = read_entry(path)
                if made.commitment not in known:
                    other = lost.setdefault(made.commitment, made)
                    lost[made.commitment] = max(other, made, key=lambda one: len(one.rows))
        return [*listed, *lost.values()]

    def alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other run reads and enters; a second run waits."""
        return locked(private_folder(self.folder) / LOCK, wait=WAIT)

    def of(self, commitment: str) -> Entry | None:
        """Return the entry of a key, or None. Raises InputError for a file that is not an entry."""
        path = self.folder / f"{commitment[:16]}.parquet"
        made = read_entry(path) if path.exists() else None
        return made if made is not None and made.commitment == commitment else None

    def earlier(self, letters: Hashes, commitment: str = "") -> list[Earlier]:
        """Return releases under other keys that share more than 1 % of these notes, largest overlap
        first.

        Args:
            letters: of `NoteHashes` of the notes. commitment: of this release's key, whose entry
                is ignored.
        """
        mine = np.unique(letters)
        earlier = []
        for made in self.entries():
            if made.commitment != commitment:
                shared = np.intersect1d(
                    salted(mine, made.salt), made.notes, assume_unique=True
                ).size
                earlier.append(Earlier(made, int(shared), min(mine.size, made.notes.size)))
        return sorted(
            (other for other in earlier if other.share > SAME), key=lambda other: -other.shared
        )

    def refuse(self, earlier: Sequence[Earlier], error: type[ClinveilError] = UsageError) -> None:
        """Raise UsageError, or `error`, if there are earlier releases of the same notes."""
        if not earlier:
            return
        first = earlier[0]
        more = f" and {len(earlier) - 1} more" if len(earlier) > 1 else ""
        release = f"release {first.entry.run}{more}"
        what = (
            f"{first.description} of these notes were released before under another key: {release}"
        )
        never = f"if that release never left, delete {first.entry.file} in the ledger and its OUT"
        hint = f"--again releases them again, and the report states what both disclose; {never}"
        raise error(what, where=str(self.folder.absolute()), hint=hint)

    def enter(self, made: Entry, vault: Path) -> None:
        """Write an entry into the ledger and the vault. Raises DiskError if the ledger cannot be
        written.
        """
        try:
            made.write(vault / IN_VAULT)
            made.write(private_folder(self.folder) / made.file)
        except OSError:
            what = "the ledger of releases cannot be written"
            hint = "make it writable and run the same command again"
            raise DiskError(what, where=str(self.folder.absolute()), hint=hint) from None
