"""Check part files before processing: each must be readable, and note ids must be unique across
parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

from clinveil.core import Say, fingerprint, track
from clinveil.corpus.corpus import NOTE_ID, Corpus
from clinveil.corpus.formats import suffix_of
from clinveil.corpus.notes_corpus import NotesCorpus, PartedCorpus
from clinveil.corpus.part_columns import WithConstants
from clinveil.corpus.screen import Screened
from clinveil.corpus.uniqueness import Hashes, hashes, joined
from clinveil.scale import Broken, Map, each


@dataclass(frozen=True)
class PartFacts:
    """Facts about one part that was read completely.

    Attributes:
        name: for messages. rows: number of rows.
        digest: hash of its content, 64 hex digits; changes with the file, the columns or the
            settings.
        ids: (n_rows,) hashes of its note ids. seen: rows that the detectors cannot read.
    """

    name: str
    rows: int
    digest: str
    ids: Hashes = field(repr=False)
    seen: Screened = field(default_factory=Screened, repr=False)


def part_facts(
    part: NotesCorpus, also: Callable[[pa.RecordBatch], None] = lambda _: None
) -> PartFacts:
    """Read a part completely; `also` is called with each batch. Raises InputError if the part is
    damaged.
    """
    ids = []
    for batch in part.batches():
        ids.append(hashes(batch.column(NOTE_ID).to_pylist()))
        also(batch)
    source: Any = part._source
    constants = source.constants.items() if isinstance(source, WithConstants) else ()
    flags = [part._error_flag, part._without_markup, part._language]
    layout = [
        asdict(part.columns),
        part.suffix,
        flags,
        {name: value.as_py() for name, value in constants},
    ]
    path = getattr(source, "source", source).path
    digest = sha256(
        json.dumps(layout, sort_keys=True).encode() + fingerprint(path).encode()
    ).hexdigest()
    all_ids = joined(ids)
    return PartFacts(part.name, len(all_ids), digest, all_ids, part.seen)


def facts_of(
    corpus: PartedCorpus, executor: Map, say: Say, broken: Broken
) -> tuple[PartedCorpus, tuple[PartFacts, ...]]:
    """Return the readable parts and their facts; others are recorded in `broken`.

    Raises InputError for equal ids, and for notes that the detectors cannot read.
    """
    results = each(executor, part_facts, corpus.parts, broken)
    facts = tuple(track(results, "notes read", say, size=lambda part: part.rows))
    intact = replace(corpus, parts=broken.left(corpus.parts))
    intact.refuse_repeats([part.ids for part in facts])
    refuse_unreadable(facts)
    return intact, facts


def refuse_unreadable(facts: Sequence[PartFacts]) -> None:
    """Raise InputError for notes of parts that the detectors cannot read."""
    total = Screened()
    for part in facts:
        total += part.seen
    total.refuse()


def digest_of(facts: Sequence[PartFacts]) -> str:
    """Return the hash of all parts, in order."""
    return sha256("".join(part.digest for part in facts).encode()).hexdigest()


def names_of(corpus: PartedCorpus) -> list[str]:
    """Return an output file name for each part: its own if all are distinct and have the right
    suffix, else numbers.
    """
    names = [part.name for part in corpus.parts]
    usable = all(
        Path(name).name == name and suffix_of(Path(name)) == corpus.suffix for name in names
    )
    if usable and len(set(names)) == len(names):
        return names
    return [f"part-{number:05d}{corpus.suffix}" for number in range(1, len(names) + 1)]


def as_parts(corpus: Corpus, out: Path) -> TypeGuard[PartedCorpus]:
    """Return whether notes are written part by part: the input has part files and OUT is not a
    single file.
    """
    return isinstance(corpus, PartedCorpus) and not suffix_of(out)
