"""What is to be known of part files before they are worked on: that each can be read, and that their ids differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.files import sha256 as sha256_of
from clinveil.core.progress import track
from clinveil.core.remote import RemotePath
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, Corpus
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.open import NotesCorpus
from clinveil.corpus.parts import PartedCorpus
from clinveil.corpus.uniqueness import Hashes, HashLog
from clinveil.scale import Map
from clinveil.scale.pieces import Broken, each


@dataclass(frozen=True)
class PartFacts:
    """One part, read to its end.

    Attributes:
        name: for messages. rows: that it has.
        digest: of what is read of it, 64 hex digits: another one after any change of file, columns or settings.
        ids: (n_rows,) hashes of its note ids, the same in every process.
    """

    name: str
    rows: int
    digest: str
    ids: Hashes = field(repr=False)


def part_facts(part: NotesCorpus, also: Callable[[pa.RecordBatch], None] = lambda _: None) -> PartFacts:
    """Read a part to its end; `also` is given each batch. Raises InputError where it is broken."""
    read = _Digest(part)
    ids = [np.zeros(0, dtype=np.uint64)]
    for batch in part.batches():
        read.take(batch)
        ids.append(id_hashes(batch.column(NOTE_ID).to_pylist()))
        also(batch)
    found = np.concatenate(ids)
    return PartFacts(part.name, len(found), read.hexdigest(), found)


def facts_of(
    corpus: PartedCorpus, over: Map, say: Say, broken: Broken | None = None
) -> tuple[PartedCorpus, tuple[PartFacts, ...]]:
    """The parts that can be read, and what is known of each.

    Raises:
        Incomplete: some are broken, and nobody else is told of them; all are tried. InputError: an id stands in two.
    """
    found = each(over, part_facts, corpus.parts, broken)
    facts = tuple(track(found, "notes read", say, size=lambda one: one.rows))
    sound = corpus if broken is None else replace(corpus, parts=broken.left(corpus.parts))
    refuse_repeats_over(sound, facts)
    return sound, facts


def digest_of(facts: Sequence[PartFacts]) -> str:
    """What all parts hold together, in their order."""
    return sha256("".join(one.digest for one in facts).encode()).hexdigest()


def id_hashes(values: Iterable[str]) -> Hashes:
    """64-bit hashes of ids, shape (n,), the same in every process."""
    raw = b"".join(blake2b(value.encode(), digest_size=8).digest() for value in values)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


class _Digest:
    """The hash of a part: of its file where it is one of this machine, else of its rows."""

    def __init__(self, part: NotesCorpus) -> None:
        source: Any = part._source
        keys = getattr(source, "keys", {})  # of folders named key=value
        path = getattr(getattr(source, "source", source), "path", None)
        self._file = path if isinstance(path, Path) and not isinstance(path, RemotePath) and path.is_file() else None
        told = [asdict(part.columns), part.suffix, part._error_flag, dict(keys) if keys else {}]
        self._hash = sha256(json.dumps(told, sort_keys=True).encode())

    def take(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            with pa.ipc.new_stream(pa.PythonFile(_Into(self._hash), mode="w"), batch.schema) as stream:
                stream.write_batch(batch)

    def hexdigest(self) -> str:
        if self._file is not None:
            self._hash.update(sha256_of(self._file).encode())
        return self._hash.hexdigest()


class _Into:
    """A file that only hashes what is written."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


def refuse_repeats_over(corpus: PartedCorpus, facts: Sequence[PartFacts]) -> None:
    """Raise InputError, with both parts, for a note id that stands in two of them. Memory as for `HashLog`."""
    with closing(HashLog()) as log:
        for number, one in enumerate(facts):
            log.add(one.ids, np.full(len(one.ids), number, dtype=np.uint64))
        for first, second, suspects in _shared(log):
            _refuse(corpus.parts[first], corpus.parts[second], suspects)


def _shared(log: HashLog) -> Iterator[tuple[int, int, set[int]]]:
    """Pairs of parts with the hashes that stand in both."""
    for keys, tags in log.groups():
        twice = np.flatnonzero((keys[1:] == keys[:-1]) & (tags[1:] != tags[:-1]))
        for at in twice.tolist():
            yield int(tags[at]), int(tags[at + 1]), {int(keys[at])}


def _refuse(first: NotesCorpus, second: NotesCorpus, suspects: set[int]) -> None:
    rows = [dict(_rows_of(part, suspects)) for part in (first, second)]
    for note_id, row in rows[1].items():
        if note_id in rows[0]:
            what = f"its id stands in {first.name}, row {rows[0][note_id]} already"
            where = f"{second.name}, row {row}"
            raise InputError(what, where=where, hint="ids must be unique over all parts; name another --id")


def _rows_of(part: NotesCorpus, suspects: set[int]) -> Iterator[tuple[str, int]]:
    row = 0
    for batch in part.batches():
        ids = batch.column(NOTE_ID).to_pylist()
        found = np.isin(id_hashes(ids), list(suspects))
        yield from ((ids[at], row + at + 1) for at in np.flatnonzero(found).tolist())
        row += len(ids)


def names_of(corpus: PartedCorpus) -> list[str]:
    """A file name for each part: its own where all differ and end as their format does, else numbers."""
    names = [part.name for part in corpus.parts]
    fine = all(Path(name).name == name and suffix_of(Path(name)) == corpus.suffix for name in names)
    if fine and len(set(names)) == len(names):
        return names
    return [f"part-{number:05d}{corpus.suffix}" for number in range(1, len(names) + 1)]


def as_parts(corpus: Corpus, out: Path) -> TypeGuard[PartedCorpus]:
    """Whether notes are written part by part: those of part files, unless OUT is named as one file."""
    return isinstance(corpus, PartedCorpus) and not suffix_of(out)
