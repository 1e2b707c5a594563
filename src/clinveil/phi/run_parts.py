"""Part files freed of identifiers, as one run: a file a part, under the names of the source's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core.progress import track
from clinveil.core.spans import Span
from clinveil.core.types import Say
from clinveil.corpus.part_facts import facts_of, names_of
from clinveil.corpus.parts import PartedCorpus
from clinveil.corpus.write import write_corpus
from clinveil.phi.counts import Counts
from clinveil.phi.crosswalk import Place, Row
from clinveil.phi.deidentifier import Deidentified, Deidentifier, Found
from clinveil.phi.part_passes import TreatPart, detect_parts
from clinveil.phi.records import Records
from clinveil.phi.remover import Recipe, of_settings
from clinveil.phi.settings import DeidentifySettings
from clinveil.scale import Map
from clinveil.scale.pieces import Broken, each
from clinveil.scale.tasks import Store

TASKS, SCRATCH = "tasks", "work"  # in the vault: spans, kept until the run has ended well; text, never kept


def holds_tasks(vault: Path) -> bool:
    """Whether a vault holds what a run over part files left, and nothing else under that name."""
    folder = vault / TASKS
    return folder.is_dir() and all(re.fullmatch("[0-9a-f]{32}", path.name) for path in folder.iterdir())


@dataclass(frozen=True)
class _Written:
    """What became of one part; `records` is its file of what the vault is to keep."""

    counts: Counts
    records: Path = field(repr=False)


def write_parts(
    settings: DeidentifySettings,
    corpus: PartedCorpus,
    deidentifier: Deidentifier,
    place: Path,
    kept: Records,
    over: Map,
    say: Say,
) -> Counts:
    """Treat every part; what is to be kept of each goes to the vault in the order of the parts.

    Args:
        place: the new folder of the treated parts.

    Raises:
        Incomplete: some parts are broken; what was found in the others is kept for the next run.
        InputError: an id stands in two parts.
    """
    scratch, broken = kept.vault / SCRATCH, Broken()
    corpus, facts = facts_of(corpus, over, say, broken)
    deidentifier.key.save(scratch / "key.bin")
    recipe = Recipe.of(of_settings, settings, scratch / "key.bin")
    parts = [(part, one.digest) for part, one in zip(corpus.parts, facts, strict=True)]
    store = Store(kept.vault / TASKS)
    works = detect_parts(parts, recipe, store, scratch, over, say, lambda: deidentifier.finder.uses_other_notes)
    broken.refuse()  # not before: the longest work on the others is done
    place.mkdir(mode=0o700)
    targets = [(work, place / name, scratch) for work, name in zip(works, names_of(corpus), strict=True)]
    counts = Counts(deidentifier.policy, deidentifier.patients.keys())
    for written in track(each(over, _write, targets), "notes", say, size=lambda one: one.counts.written):
        counts.add_counts(written.counts)
        _keep(written.records, kept)
    return counts


def _write(item: tuple[TreatPart, Path, Path]) -> _Written:
    work, place, scratch = item
    part, deidentifier = work.detection.part, work.detection.recipe()
    counts = Counts(deidentifier.policy, deidentifier.patients.keys())
    records = scratch / f"{place.name}.records"
    with records.open("w", encoding="utf-8") as file:

        def batches() -> Iterator[pa.RecordBatch]:
            for done in work.treated():
                counts.add(done)
                file.write(json.dumps(_noted(done)) + "\n")
                yield done.batch

        write_corpus(batches(), place, part.columns, part.suffix)
    counts.read += sum(part.skipped.values())
    counts.skipped += part.skipped
    return _Written(replace(counts, known=frozenset()), records)


def _noted(done: Deidentified) -> list[Any]:
    """What the vault is to keep of a batch, ready for JSON."""
    spans = done.spans
    found = None if spans is None else [[each.note_id, list(each.span), each.text] for each in spans]
    return [done.audit, done.crosswalk, found]


def _keep(records: Path, kept: Records) -> None:
    """Hand what a worker noted to the files of the vault, batch by batch."""
    with records.open(encoding="utf-8") as file:
        for line in file:
            audit, rows, spans = json.loads(line)
            found = None if spans is None else [Found(note, Span(*span), text) for note, span, text in spans]
            kept.add(Deidentified(_NO_BATCH, spans=found, audit=audit, crosswalk=[_row(*row) for row in rows]))
    records.unlink()


def _row(note_id: str, patient_id: str, digest: str, shift: int | None, places: list[list[Any]]) -> Row:
    return Row(note_id, patient_id, digest, shift, tuple(Place(*place) for place in places))


_NO_BATCH = pa.RecordBatch.from_pylist([], schema=pa.schema([]))
