"""The ledger of releases: prevents that the same notes are released twice under two keys by
accident.

The ledger is a private folder of the user, or the folder of `CLINVEIL_LEDGER` or of the setting
`ledger`, with one file per key, named by the commitment of the key. The file contains salted hashes
of the source notes and their ids. The vault has a copy, which can be copied into another ledger. A
note is identified by its letters, so new ids, dates or line breaks do not make it a new note.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
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
from clinveil.corpus import Hashes
from clinveil.releases.earlier.note_hashes import NoteHashes, salted
from clinveil.report import SMALL, SPACE, share

APPLICATION = "clinveil"
NAME = "ledger"
IN_VAULT = "ledger.parquet"
SCHEMA = "clinveil.ledger/2"
FIRST_SCHEMA = "clinveil.ledger/1"  # without the column "specific" and without withdrawals
VAULT = "vault"
VARIABLE = "CLINVEIL_LEDGER"
# seconds
LOCK = ".lock"
WAIT = 60.0
SALT = 32  # bytes
COLUMNS = ("note", "id", "text", "drawn")
SPECIFIC = "specific"
DRAWN = "obfuscated"
READABLE = "deidentified"
"""The kind in which each released word is a random draw for a word of the source, and the kind that
can be read.
"""
SAME = 0.01  # share of the smaller release; a few texts are common to all ("did not attend")


@dataclass(frozen=True)
class Withdrawal:
    """When a release was withdrawn, as an ISO date, and why."""

    date: str
    reason: str

    @property
    def description(self) -> str:
        """Date and reason as text."""
        return f"withdrawn on {self.date} ({self.reason})"


@dataclass(frozen=True)
class Entry:
    """The ledger entry of one key.

    Attributes:
        run: name of the latest release under the key. runs: number of releases under it.
        commitment: of the key. vault: location of the latest vault. kind: of the releases.
        salt: of the hashes.
        rows: (n, 5) distinct salted hashes of letters, id, text and drawn text of the notes, and
            whether a note is evidence (1) or a template (0), see `NoteHashes.specific`.
        spent: deviation of the noise of each differentially private release of them, by keyed
            digest.
        withdrawn: name of the run -> withdrawal, of the releases that were withdrawn.
    """

    run: str
    commitment: str
    vault: Path
    kind: str
    salt: bytes = field(repr=False)
    rows: NDArray[np.uint64] = field(repr=False)
    runs: int = 1
    spent: Mapping[str, float] = field(default_factory=dict, repr=False)
    withdrawn: Mapping[str, Withdrawal] = field(default_factory=dict)

    @property
    def is_withdrawn(self) -> bool:
        """Whether all releases under the key were withdrawn."""
        return len(self.withdrawn) >= self.runs

    @property
    def file(self) -> str:
        """Its file name in a ledger."""
        return f"{self.commitment[:16]}.parquet"

    @cached_property
    def notes(self) -> Hashes:
        """Sorted salted hashes of its distinct texts, by their letters, without templates."""
        specific = self.rows[:, -1] == 1
        return np.setdiff1d(self.rows[specific, 0], self.rows[~specific, 0])

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
        repeated = {self.run} if self.vault == vault.resolve() else set()
        return replace(
            self,
            run=run,
            runs=self.number(vault),
            vault=vault.resolve(),
            rows=_distinct(np.concatenate([self.rows, _salted_rows(notes, self.salt)])),
            withdrawn={
                name: one for name, one in self.withdrawn.items() if name not in {run, *repeated}
            },
        )

    def without(self, run: str, withdrawal: Withdrawal) -> Entry:
        """Return the entry with one of its releases withdrawn; what it spent stays spent."""
        return replace(self, withdrawn={**self.withdrawn, run: withdrawal})

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
        renamed = rows[:, 0][~known & notes.specific & np.isin(rows[:, 0], self.notes)]
        all_specific = rows[:, 0][notes.specific]
        shared = Earlier(self, np.unique(renamed).size, np.unique(all_specific).size)
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
            "withdrawn": {run: asdict(one) for run, one in self.withdrawn.items()},
        }
        fields = [(name, pa.uint64()) for name in (*COLUMNS, SPECIFIC)]
        schema = pa.schema(fields, metadata={"clinveil": json.dumps(metadata)})
        columns = [pa.array(column) for column in self.rows.T]
        with atomic(path, force=True) as part:
            pq.write_table(pa.table(columns, schema=schema), part, compression="zstd")


def entry(notes: NoteHashes, run: str, commitment: str, vault: Path, kind: str) -> Entry:
    """Return a new entry for a release of these notes."""
    salt = token_bytes(SALT)
    rows = _distinct(_salted_rows(notes, salt))
    return Entry(run, commitment, vault.resolve(), kind, salt, rows)


def _salted_rows(notes: NoteHashes, salt: bytes) -> NDArray[np.uint64]:
    drawn = np.zeros_like(notes.ids) if notes.drawn is None else notes.drawn
    columns = (notes.letters, notes.ids, notes.texts, drawn)
    hashed = [salted(column, salt) for column in columns]
    return np.stack([*hashed, notes.specific.astype(np.uint64)], axis=1)


def _distinct(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return distinct rows; a note that was a template in one release of it stays one."""
    rows = np.unique(rows, axis=0)
    is_first = np.ones(len(rows), dtype=np.bool_)
    is_first[1:] = (rows[1:, :-1] != rows[:-1, :-1]).any(axis=1)
    return rows[is_first]


def _some(notes: int) -> str:
    return f"fewer than {SMALL} notes" if notes < SMALL else f"{notes:,} notes"


def read_entry(path: Path) -> Entry:
    """Read an entry. Raises InputError if it is damaged or not an entry."""
    try:
        table = pq.read_table(path)
        stored = json.loads(table.schema.metadata[b"clinveil"])
        columns = [table[name].to_numpy().astype(np.uint64, casting="safe") for name in COLUMNS]
        if stored["schema"] == FIRST_SCHEMA:
            columns.append(np.ones(len(table), dtype=np.uint64))
            stored["withdrawn"] = {}
        else:
            columns.append(table[SPECIFIC].to_numpy().astype(np.uint64, casting="safe"))
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
            withdrawn={
                str(run): Withdrawal(str(one["date"]), str(one["reason"]))
                for run, one in stored["withdrawn"].items()
            },
        )
        known = stored["schema"] in (FIRST_SCHEMA, SCHEMA) and len(salt) == SALT
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


def user_folder() -> Path:
    """Return the default ledger: a folder for data of the user, on this machine.

    Raises UsageError if the user has no home folder.
    """
    if sys.platform == "win32":
        variable = "LOCALAPPDATA"
        usual = "~/AppData/Local"
    elif sys.platform == "darwin":
        variable = ""
        usual = "~/Library/Application Support"
    else:
        variable = "XDG_DATA_HOME"
        usual = "~/.local/share"
    named = os.environ.get(variable, "")
    # The XDG specification ignores relative paths.
    data = named if os.path.isabs(named) else os.path.expanduser(usual)  # noqa: PTH111, PTH117
    if not os.path.isabs(data):  # noqa: PTH117
        raise UsageError(
            "no home folder for the ledger of releases",
            hint=f"name a private folder in {VARIABLE}",
        )
    return Path(data) / APPLICATION / NAME


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
        that of the user.

        Raises UsageError for an unusable folder.
        """
        refuse_nameless(out)
        named = str(folder or os.environ.get(VARIABLE) or user_folder())
        place = Path(os.path.expanduser(named))  # noqa: PTH111  never raises
        near = next((path for path in (place, *place.absolute().parents) if path.exists()), place)
        usable = near.is_dir() and os.access(near, os.W_OK | os.X_OK | os.R_OK)
        names = [path.name for path in near.iterdir()] if usable and near == place else []
        # Of a stopped run.
        foreign = not all(name.endswith(".parquet") or name.startswith(".") for name in names)
        if not usable or foreign or (place.is_symlink() and not place.exists()):
            hint = f"name a private folder in {VARIABLE} or with --set ledger=FOLDER"
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

    def overlapping(self, notes: NoteHashes, commitment: str = "") -> list[Earlier]:
        """Return releases under other keys that share more than 1 % of these notes, largest overlap
        first, withdrawn ones included.

        Args:
            commitment: of this release's key; its entry is ignored.
        """
        mine = np.unique(notes.letters[notes.specific])
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

    def earlier(self, notes: NoteHashes, commitment: str = "") -> list[Earlier]:
        """Return what `overlapping` returns, without withdrawn releases."""
        return [one for one in self.overlapping(notes, commitment) if not one.entry.is_withdrawn]

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
        out = shlex.quote(str(first.entry.vault.parent))
        never = (
            f"if that release did not leave: clinveil withdraw {out} --reason TEXT"
            if first.entry.vault.is_dir()
            else f"if that release never left, delete {first.entry.file} in the ledger"
        )
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
