"""What notes say of names, on disk: memory does not grow with the number of patients.

A store without a place is a database file without a name, the owner's alone, which is gone when the process ends,
whatever ends it; one with a place lies in the scratch folder of a vault, for workers to read. Sets, so that no order,
batch or number of workers changes what comes out.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.phi.name_index import NameIndex, but
from clinveil.phi.name_variants import Name

# Patients in whose notes an unlisted word has no capital: then it is no name; then an include-list lets it through.
USUAL, COMMON = 3, 4
_AT_ONCE = 500  # values of one question
_TABLES = """
CREATE TABLE IF NOT EXISTS names (patient TEXT, name TEXT, PRIMARY KEY (patient, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS staff (form TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lower (word TEXT, patient TEXT, PRIMARY KEY (word, patient)) WITHOUT ROWID;
"""
# A store is scratch: after a crash it is made anew, so nothing is journalled. 16 MiB of it are held in memory.
_HOW = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16384", "temp_store=FILE")


class NameIndexStore:
    """Takes what batches say, and gives it all back, of some patients at a time.

    Args:
        place: a file in a private folder, made if it is not there; without one, a file that has no name.

    Raises:
        OSError: no space is left.
    """

    def __init__(self, place: Path | None = None) -> None:
        self._file = _opened(str(place or ""))
        self._full: set[str] = set()  # words of `COMMON` patients: no more of them need be known
        with _told():
            for said in _HOW:
                self._file.execute(f"PRAGMA {said}")
            self._file.executescript(_TABLES)
            self._file.execute("BEGIN")

    def add(self, heard: NameIndex, lower: Mapping[str, Iterable[str]]) -> None:
        """What a batch says; `lower`: unlisted words in lower case, and some of the patients in whose notes they are.

        Patients stand in it as they are in `heard`.
        """
        names = ((patient, " ".join(name)) for patient, found in heard.patients.items() for name in found)
        words = [word for word in lower if word not in self._full]
        with _told():
            self._file.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", names)
            self._file.executemany("INSERT OR IGNORE INTO staff VALUES (?)", ((form,) for form in heard.staff))
            pairs = ((word, patient) for word in words for patient in lower[word])
            self._file.executemany("INSERT OR IGNORE INTO lower VALUES (?, ?)", pairs)
            for at in range(0, len(words), _AT_ONCE):
                self._full.update(self._common(words[at : at + _AT_ONCE]))

    def _common(self, words: list[str]) -> Iterator[str]:
        some = ",".join("?" * len(words))
        asked = f"SELECT word FROM lower WHERE word IN ({some}) GROUP BY word HAVING count(*) >= {COMMON}"
        return (word for (word,) in self._file.execute(asked, words))

    def merge(self, place: Path) -> None:
        """What another store holds, as well."""
        with _told():
            self._file.execute("COMMIT")
            self._file.execute("ATTACH ? AS other", (str(place),))
            for table in ("names", "staff", "lower"):
                self._file.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table}")
            self._file.execute("DETACH other")
            self._file.execute("BEGIN")

    def close(self) -> None:
        """Write what is not written, so that other processes can read it."""
        with _told():
            self._file.execute("COMMIT")
            self._file.close()

    def heard(self) -> NameIndex:
        """What all batches said; the names are looked up as they are asked for, and only now from the disk."""
        return _heard(self._file)


def _opened(place: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, isolation_level=None, check_same_thread=False, uri=uri)


def _heard(file: sqlite3.Connection) -> NameIndex:
    """What a store holds; a word that some patients' notes write in lower case was no unlisted name."""
    words = {count: frozenset(_words(file, count)) for count in (USUAL, COMMON)}
    staff = frozenset(form for (form,) in file.execute("SELECT form FROM staff"))
    told = NameIndex({}, staff, frozenset(map(str.lower, words[COMMON]))).without(words[USUAL])
    return NameIndex(_Names(file, words[USUAL]), told.staff, told.vocabulary)


def _words(file: sqlite3.Connection, count: int) -> Iterator[str]:
    asked = "SELECT word FROM lower GROUP BY word HAVING count(*) >= ?"
    return (word for (word,) in file.execute(asked, (count,)))


class _Names(Mapping[str, frozenset[Name]]):
    """The names of each patient, without some words."""

    def __init__(self, file: sqlite3.Connection, words: frozenset[str]) -> None:
        self._file, self._words = file, words

    def __getitem__(self, patient_id: str) -> frozenset[Name]:
        found = self._file.execute("SELECT name FROM names WHERE patient = ?", (patient_id,))
        names = but(frozenset(tuple(name.split(" ")) for (name,) in found), self._words)
        if not names:
            raise KeyError
        return names

    def __iter__(self) -> Iterator[str]:
        found = (patient for (patient,) in self._file.execute("SELECT DISTINCT patient FROM names"))
        return (patient for patient in found if patient in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@lru_cache(maxsize=2)
def heard_at(place: Path, when: int) -> NameIndex:
    """What a store that is closed holds, opened once a process; `when`: of its last change, in nanoseconds."""
    try:
        return _heard(_opened(f"{place.absolute().as_uri()}?mode=ro&immutable=1", uri=True))
    except sqlite3.Error:
        raise InputError("cannot be read", where=place.name, hint="run the same command again") from None


@contextmanager
def _told() -> Iterator[None]:
    """A full disk is told as one; else an error of the database names no word."""
    try:
        yield
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise OSError(errno.ENOSPC if full else errno.EIO, "a database of scratch cannot be written") from None
