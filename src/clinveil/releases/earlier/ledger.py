"""The ledger of releases: prevents that the same notes are released twice under two keys by
accident.

The ledger is a private folder next to OUT, or at `--ledger`, with one file per release, named by
the commitment of its key. The file contains salted hashes of the source notes. The vault has a
copy, which can be copied into another ledger. A note is identified by its letters, so new ids,
dates or line breaks do not make it a new note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core.atomic import atomic
from clinveil.core.errors import ClinveilError, DiskError, InputError, UsageError
from clinveil.core.files import locked, private_folder, refuse_nameless
from clinveil.corpus.uniqueness import Hashes
from clinveil.report.numerals import SMALL, SPACE, share

NAME = "clinveil-ledger"
IN_VAULT = "ledger.parquet"
SCHEMA = "clinveil.ledger/1"
VAULT = "vault"
VARIABLE = "CLINVEIL_LEDGER"
# seconds
LOCK = ".lock"
WAIT = 60.0
SALT = 32  # bytes
DRAWN = "obfuscated"
READABLE = "deidentified"
"""The kind in which each released word is a random draw for a word of the source, and the kind that
can be read.
"""
SAME = 0.01  # share of the smaller release; a few texts are common to all ("did not attend")
_LOWER = bytes(range(256)).lower()
_OTHER = bytes(code for code in range(128) if not chr(code).isalpha())


def text_hashes(texts: Sequence[str | None]) -> Hashes:
    """Return unsalted 64-bit hashes of the letters of notes, (n_notes,); never store them. Skips
    empty notes.
    """
    letters_of = (
        text.encode("utf-8", "surrogatepass").translate(_LOWER, _OTHER) for text in texts if text
    )
    made = [blake2b(letters, digest_size=8).digest() for letters in letters_of if letters]
    return np.frombuffer(b"".join(made), dtype="<u8").astype(np.uint64)


def salted(hashes: Hashes, salt: bytes) -> Hashes:
    """Return salted hashes of `text_hashes`, (n,), in the same order."""
    made = (
        blake2b(value, digest_size=8, key=salt).digest()
        for value in hashes.astype("<u8").view("V8").tolist()
    )
    return np.frombuffer(b"".join(made), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True)
class Entry:
    """The ledger entry of one release.

    Attributes:
        run: its name. commitment: of its key. vault: location of its vault.
        salt: of the hashes. notes: (n_notes,) sorted salted hashes of its distinct notes.
        spent: deviation of the noise of each differentially private release of them, by keyed
            digest.
        kind: of the release; "" in an entry of an older version.
    """

    run: str
    commitment: str
    vault: Path
    salt: bytes = field(repr=False)
    notes: Hashes = field(repr=False)
    spent: Mapping[str, float] = field(default_factory=dict, repr=False)
    kind: str = ""

    @property
    def file(self) -> str:
        """Its file name in a ledger."""
        return f"{self.commitment[:16]}.parquet"

    def holds(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return a mask of the `text_hashes` that are among its notes, (n,)."""
        return np.isin(salted(hashes, self.salt), self.notes)

    def grown(self, hashes: Hashes, run: str, vault: Path) -> Entry:
        """Return the entry extended by another release under the same key, of notes with these
        `text_hashes`.
        """
        more = salted(np.unique(hashes), self.salt)
        return replace(self, run=run, vault=vault.resolve(), notes=np.union1d(self.notes, more))

    def write(self, path: Path) -> None:
        """Write the entry atomically, readable by its owner only. Raises OSError."""
        metadata: dict[str, Any] = {
            "schema": SCHEMA,
            "run": self.run,
            "commitment": self.commitment,
        }
        metadata |= {
            "vault": str(self.vault),
            "salt": self.salt.hex(),
            "spent": dict(self.spent),
            "kind": self.kind,
        }
        schema = pa.schema([("note", pa.uint64())], metadata={"clinveil": json.dumps(metadata)})
        with atomic(path, force=True) as part:
            pq.write_table(
                pa.table([pa.array(self.notes)], schema=schema), part, compression="zstd"
            )


def entry(hashes: Hashes, run: str, commitment: str, vault: Path, kind: str = "") -> Entry:
    """Return a new entry for a release of notes with these `text_hashes`."""
    salt = token_bytes(SALT)
    return Entry(
        run, commitment, vault.resolve(), salt, np.sort(salted(np.unique(hashes), salt)), kind=kind
    )


def read_entry(path: Path) -> Entry:
    """Read an entry. Raises InputError if it is damaged or not an entry."""
    try:
        table = pq.read_table(path)
        stored = json.loads(table.schema.metadata[b"clinveil"])
        notes = table["note"].to_numpy().astype(np.uint64, casting="safe")
        salt = bytes.fromhex(stored["salt"])
        spent = {str(of): float(sigma) for of, sigma in stored.get("spent", {}).items()}
        run, commitment, kind = (
            str(stored.get(name, "")) for name in ("run", "commitment", "kind")
        )
        made = Entry(run, commitment, Path(stored["vault"]), salt, notes, spent, kind)
        known = stored["schema"] == SCHEMA and len(salt) == SALT and bool(run and commitment)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        known = False
    if not known:
        hint = (
            "restore the copy in that release's vault, or move the file away if it is not an entry"
        )
        raise InputError(
            f"{path.name} is damaged or not a ledger entry", where=path.parent.name, hint=hint
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
        if self.entry.kind:
            return "What both disclose about the same notes adds up."
        return (
            "The ledger does not state its kind. If it is readable, its holder has known pairs;"
            " otherwise, what both disclose about the same notes adds up."
        )


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
        place = Path(os.path.expanduser(folder)) if folder else out.with_name(NAME)  # noqa: PTH111  never raises
        near = next((path for path in (place, *place.absolute().parents) if path.exists()), place)
        usable = near.is_dir() and os.access(near, os.W_OK | os.X_OK | os.R_OK)
        names = [path.name for path in near.iterdir()] if usable and near == place else []
        # Of a stopped run.
        foreign = not all(name.endswith(".parquet") or name.startswith(".") for name in names)
        if not usable or foreign or (place.is_symlink() and not place.exists()):
            hint = "pass another folder with --ledger"
            raise UsageError("cannot be used as a ledger folder", where=near.name, hint=hint)
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
                    lost[made.commitment] = max(other, made, key=lambda one: one.notes.size)
        return [*listed, *lost.values()]

    def alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other run reads and enters; a second run waits."""
        return locked(private_folder(self.folder) / LOCK, wait=WAIT)

    def of(self, commitment: str) -> Entry | None:
        """Return the entry of a key, or None. Raises InputError for a file that is not an entry."""
        path = self.folder / f"{commitment[:16]}.parquet"
        made = read_entry(path) if path.exists() else None
        return made if made is not None and made.commitment == commitment else None

    def earlier(self, hashes: Hashes, commitment: str = "") -> list[Earlier]:
        """Return releases under other keys that share more than 1 % of these notes, largest overlap
        first.

        Args:
            hashes: `text_hashes` of the notes. commitment: of this release's key, whose entry is
                ignored.
        """
        mine = np.unique(hashes)
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
        raise error(what, where=self.folder.name, hint=hint)

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
            raise DiskError(what, where=self.folder.name, hint=hint) from None
