"""Name index on disk, so that memory does not grow with the number of patients.

A store without a path is an unnamed temporary SQLite file, removed by the system when the process
ends. A store with a path is in the scratch folder of a vault, where workers read it. All contents
are sets, so the result does not depend on order, batch size or number of workers.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from clinveil.core import InputError
from clinveil.phi.name_index import NameIndex, without_words
from clinveil.phi.name_variants import Name

# Number of patients with a lower-case use of an unlisted word from which it is not a name, and from
# which the include-list (`finder.off_list`) accepts it.
USUAL = 3
COMMON = 4
_QUERY_SIZE = 500  # parameters of one query
_TABLES = """
CREATE TABLE IF NOT EXISTS names (
    patient TEXT, name TEXT, PRIMARY KEY (patient, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS staff (form TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lower (
    word TEXT, patient TEXT, PRIMARY KEY (word, patient)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS date_orders (
    patient TEXT, shown INTEGER, PRIMARY KEY (patient, shown)
) WITHOUT ROWID;
"""
# A store is scratch data and is rebuilt after a crash, so it needs no journal. The page cache is 16
# MiB.
_PRAGMAS = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16384", "temp_store=FILE")


class NameIndexStore:
    """Collects the name indexes of batches, and returns their union.

    Args:
        path: a file in a private folder, created if missing; None for an unnamed temporary file.

    Raises:
        OSError: no space is left.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = _opened(str(path or ""))
        self._full: set[str] = set()  # words of `COMMON` patients, which need no further patients
        with _database_errors():
            for pragma in _PRAGMAS:
                self._file.execute(f"PRAGMA {pragma}")
            self._file.executescript(_TABLES)
            self._file.execute("BEGIN")

    def add(self, index: NameIndex, lower: Mapping[str, Iterable[str]]) -> None:
        """Add the names of a batch.

        Args:
            lower: unlisted word in lower case -> ids of patients with a note that contains it (not
                necessarily all).
        """
        names = (
            (patient, " ".join(name))
            for patient, patient_names in index.patients.items()
            for name in patient_names
        )
        words = [word for word in lower if word not in self._full]
        with _database_errors():
            self._file.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", names)
            self._file.executemany(
                "INSERT OR IGNORE INTO staff VALUES (?)", ((form,) for form in index.staff)
            )
            self._file.executemany(
                "INSERT OR IGNORE INTO date_orders VALUES (?, ?)", index.date_orders.items()
            )
            pairs = ((word, patient) for word in words for patient in lower[word])
            self._file.executemany("INSERT OR IGNORE INTO lower VALUES (?, ?)", pairs)
            for start in range(0, len(words), _QUERY_SIZE):
                some = words[start : start + _QUERY_SIZE]
                marks = ",".join("?" * len(some))
                query = (
                    f"SELECT word FROM lower WHERE word IN ({marks}) GROUP BY word HAVING count(*)"
                    f" >= {COMMON}"
                )
                self._full.update(word for (word,) in self._file.execute(query, some))

    def merge(self, path: Path) -> None:
        """Add the contents of another store."""
        with _database_errors():
            self._file.execute("COMMIT")
            self._file.execute("ATTACH ? AS other", (str(path),))
            for table in ("names", "staff", "lower", "date_orders"):
                self._file.execute(
                    f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table}"
                )
            self._file.execute("DETACH other")
            self._file.execute("BEGIN")

    def close(self) -> None:
        """Commit, so that other processes can read the store."""
        with _database_errors():
            self._file.execute("COMMIT")
            self._file.close()

    def index(self) -> NameIndex:
        """Return the index of all batches; the names of a patient are read from disk when they are
        requested.
        """
        return _index(self._file)


def _opened(path: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, uri=uri)


def _index(file: sqlite3.Connection) -> NameIndex:
    """Return the index of a store, without unlisted names that the notes of several patients write
    in lower case.
    """
    query = "SELECT word FROM lower GROUP BY word HAVING count(*) >= ?"
    usual, common = (
        frozenset(word for (word,) in file.execute(query, (count,))) for count in (USUAL, COMMON)
    )
    staff = frozenset(form for (form,) in file.execute("SELECT form FROM staff"))
    index = NameIndex({}, staff, frozenset(map(str.lower, common))).without(usual)
    return NameIndex(_StoredNames(file, usual), index.staff, index.vocabulary, _DateOrders(file))


class _StoredNames(Mapping[str, frozenset[Name]]):
    """Patient id -> names, without some words."""

    def __init__(self, file: sqlite3.Connection, words: frozenset[str]) -> None:
        self._file = file
        self._words = words

    def __getitem__(self, patient_id: str) -> frozenset[Name]:
        found_rows = self._file.execute("SELECT name FROM names WHERE patient = ?", (patient_id,))
        names = without_words(
            frozenset(tuple(name.split(" ")) for (name,) in found_rows), self._words
        )
        if not names:
            raise KeyError
        return names

    def __iter__(self) -> Iterator[str]:
        found_rows = (
            patient for (patient,) in self._file.execute("SELECT DISTINCT patient FROM names")
        )
        return (patient for patient in found_rows if patient in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _DateOrders(Mapping[str, int]):
    """Patient id -> what all numeric dates show of their order."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __getitem__(self, patient_id: str) -> int:
        found_rows = self._file.execute(
            "SELECT shown FROM date_orders WHERE patient = ?", (patient_id,)
        )
        shown = 0
        for (order,) in found_rows:
            shown |= order
        if not shown:
            raise KeyError
        return shown

    def __iter__(self) -> Iterator[str]:
        return (
            patient for (patient,) in self._file.execute("SELECT DISTINCT patient FROM date_orders")
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


@lru_cache(maxsize=2)
def open_name_index(path: Path, modified: int) -> NameIndex:
    """Return the index of a closed store, opened once per process; `modified`: its modification
    time in ns.
    """
    try:
        return _index(_opened(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True))
    except sqlite3.Error:
        raise InputError(
            "cannot be read", where=path.name, hint="run the same command again"
        ) from None


@contextmanager
def _database_errors() -> Iterator[None]:
    """Translate SQLite errors to OSError (ENOSPC if the disk is full), without words of notes in
    the message.
    """
    try:
        yield
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise OSError(
            errno.ENOSPC if full else errno.EIO, "cannot write the scratch database"
        ) from None
