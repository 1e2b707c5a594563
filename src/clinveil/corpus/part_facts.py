"""Check part files before processing: each must be readable, and note ids must be unique across parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.progress import track
from clinveil.core.runfolder import fingerprint
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, Corpus
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.open import NotesCorpus, PartedCorpus
from clinveil.corpus.part_columns import WithConstants
from clinveil.corpus.uniqueness import Hashes, joined
from clinveil.scale import Map
from clinveil.scale.pieces import Broken, each


@dataclass(frozen=True)
class PartFacts:
    """Facts about one part that was read completely.

    Attributes:
        name: for messages. rows: number of rows.
        digest: hash of its content, 64 hex digits; changes with the file, the columns or the settings.
        ids: (n_rows,) hashes of its note ids, the same in every process.
    """

    name: str
    rows: int
    digest: str
    ids: Hashes = field(repr=False)


def part_facts(part: NotesCorpus, also: Callable[[pa.RecordBatch], None] = lambda _: None) -> PartFacts:
    """Read a part completely; `also` is called with each batch. Raises InputError if the part is damaged."""
    ids = [np.zeros(0, dtype=np.uint64)]
    for batch in part.batches():
        ids.append(id_hashes(batch.column(NOTE_ID).to_pylist()))
        also(batch)
    all_ids = np.concatenate(ids)
    return PartFacts(part.name, len(all_ids), _digest(part), all_ids)


def facts_of(
    corpus: PartedCorpus, over: Map, say: Say, broken: Broken | None = None
) -> tuple[PartedCorpus, tuple[PartFacts, ...]]:
    """Return the readable parts and their facts; damaged ones are recorded in `broken`.

    Raises:
        Incomplete: some parts are damaged and `broken` is None; all are tried. InputError: an id is in two parts.
    """
    results = each(over, part_facts, corpus.parts, broken)
    facts = tuple(track(results, "notes read", say, size=lambda part: part.rows))
    intact = corpus if broken is None else replace(corpus, parts=broken.left(corpus.parts))
    refuse_repeats_over(intact, facts)
    return intact, facts


def digest_of(facts: Sequence[PartFacts]) -> str:
    """Return the hash of all parts, in order."""
    return sha256("".join(part.digest for part in facts).encode()).hexdigest()


def id_hashes(values: Iterable[str]) -> Hashes:
    """Return 64-bit hashes of ids, shape (n,), the same in every process."""
    raw = b"".join(blake2b(value.encode(), digest_size=8).digest() for value in values)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def _digest(part: NotesCorpus) -> str:
    """Return the hash of a part: of its file (see `fingerprint`), its constant columns and the settings."""
    source: Any = part._source
    constants = source.constants.items() if isinstance(source, WithConstants) else ()
    added = {name: value.as_py() for name, value in constants}
    layout = [asdict(part.columns), part.suffix, part._error_flag, added]
    path = getattr(source, "source", source).path
    return sha256(json.dumps(layout, sort_keys=True).encode() + fingerprint(path).encode()).hexdigest()


def refuse_repeats_over(corpus: PartedCorpus, facts: Sequence[PartFacts]) -> None:
    """Raise InputError, naming both parts, for a note id in two parts."""
    rows = np.array([len(part.ids) for part in facts], dtype=np.int64)
    ids, numbers = joined([part.ids for part in facts]), np.repeat(np.arange(len(facts)), rows)
    order = np.lexsort((numbers, ids))
    ids, numbers = ids[order], numbers[order]
    for index in np.flatnonzero((ids[1:] == ids[:-1]) & (numbers[1:] != numbers[:-1])).tolist():
        _refuse(corpus.parts[numbers[index]], corpus.parts[numbers[index + 1]], {int(ids[index])})


def _refuse(first: NotesCorpus, second: NotesCorpus, suspects: set[int]) -> None:
    rows = [dict(_rows_of(part, suspects)) for part in (first, second)]
    for note_id, row in rows[1].items():
        if note_id in rows[0]:
            what = f"duplicate id, already used in {first.name}, row {rows[0][note_id]}"
            where = f"{second.name}, row {row}"
            hint = "ids must be unique across all parts; choose another column with --id"
            raise InputError(what, where=where, hint=hint)


def _rows_of(part: NotesCorpus, suspects: set[int]) -> Iterator[tuple[str, int]]:
    row = 0
    for batch in part.batches():
        ids = batch.column(NOTE_ID).to_pylist()
        matches = np.isin(id_hashes(ids), list(suspects))
        yield from ((ids[index], row + index + 1) for index in np.flatnonzero(matches).tolist())
        row += len(ids)


def names_of(corpus: PartedCorpus) -> list[str]:
    """Return an output file name for each part: its own if all are distinct and have the right suffix, else numbers."""
    names = [part.name for part in corpus.parts]
    usable = all(Path(name).name == name and suffix_of(Path(name)) == corpus.suffix for name in names)
    if usable and len(set(names)) == len(names):
        return names
    return [f"part-{number:05d}{corpus.suffix}" for number in range(1, len(names) + 1)]


def as_parts(corpus: Corpus, out: Path) -> TypeGuard[PartedCorpus]:
    """Return whether notes are written part by part: the input has part files and OUT is not a single file."""
    return isinstance(corpus, PartedCorpus) and not suffix_of(out)
