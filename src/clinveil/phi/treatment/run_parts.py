"""De-identify part files in one run; each output file has the name of its source file."""

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
from clinveil.corpus.open import PartedCorpus
from clinveil.corpus.part_facts import facts_of, names_of
from clinveil.corpus.write import write_corpus
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.counts import Counts
from clinveil.phi.treatment.crosswalk import Replacement, Row
from clinveil.phi.treatment.deidentifier import Deidentified, Deidentifier, Found
from clinveil.phi.treatment.part_passes import TreatPart, detect_parts
from clinveil.phi.treatment.records import Records
from clinveil.phi.treatment.remover import Recipe, of_settings
from clinveil.scale import Map
from clinveil.scale.pieces import Broken, each
from clinveil.scale.tasks import Store

TASKS, SCRATCH = "tasks", "work"  # in the vault: stored spans until the run succeeds; text, removed after each run


def holds_tasks(vault: Path) -> bool:
    """Whether the task folder of a vault exists and contains task results only."""
    folder = vault / TASKS
    return folder.is_dir() and all(re.fullmatch("[0-9a-f]{32}", path.name) for path in folder.iterdir())


@dataclass(frozen=True)
class _Written:
    """Result of one part; `records` is the file with its records for the vault."""

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
    """Treat every part; add its records to the vault in the order of the parts.

    Args:
        place: new folder of the treated parts.

    Raises:
        Incomplete: some parts failed; the stored spans of the others are reused by the next run.
        InputError: a note id occurs in two parts.
    """
    scratch, broken = kept.vault / SCRATCH, Broken()
    corpus, facts = facts_of(corpus, over, say, broken)
    deidentifier.key.save(scratch / "key.bin")
    recipe = Recipe.of(of_settings, settings, scratch / "key.bin")
    parts = [(part, part_facts.digest) for part, part_facts in zip(corpus.parts, facts, strict=True)]
    store = Store(kept.vault / TASKS)
    tasks = detect_parts(parts, recipe, store, scratch, over, say, lambda: deidentifier.finder.uses_other_notes)
    broken.refuse()  # only now, so that the results of the other parts are stored
    place.mkdir(mode=0o700)
    targets = [(task, place / name, scratch) for task, name in zip(tasks, names_of(corpus), strict=True)]
    counts = Counts(deidentifier.policy, deidentifier.patients.keys())
    for written in track(each(over, _write, targets), "notes", say, size=lambda result: result.counts.written):
        counts.add_counts(written.counts)
        _keep(written.records, kept)
    return counts


def _write(item: tuple[TreatPart, Path, Path]) -> _Written:
    task, place, scratch = item
    part, deidentifier = task.detection.part, task.detection.recipe()
    counts = Counts(deidentifier.policy, deidentifier.patients.keys())
    records = scratch / f"{place.name}.records"
    with records.open("w", encoding="utf-8") as file:

        def batches() -> Iterator[pa.RecordBatch]:
            for result in task.treated():
                counts.add(result)
                file.write(json.dumps(_as_json(result)) + "\n")
                yield result.batch

        write_corpus(batches(), place, part.columns, part.suffix)
    counts.read += sum(part.skipped.values())
    counts.skipped += part.skipped
    return _Written(replace(counts, known=frozenset()), records)


def _as_json(result: Deidentified) -> list[Any]:
    """Return the records of a batch for the vault, ready for JSON."""
    spans = None if result.spans is None else [[found.note_id, list(found.span), found.text] for found in result.spans]
    return [result.audit, result.crosswalk, spans]


def _keep(records: Path, kept: Records) -> None:
    """Copy the records of a worker to the files of the vault, batch by batch."""
    with records.open(encoding="utf-8") as file:
        for line in file:
            audit, rows, spans = json.loads(line)
            found = None if spans is None else [Found(note, Span(*span), text) for note, span, text in spans]
            kept.add(Deidentified(_NO_BATCH, spans=found, audit=audit, crosswalk=[_row(*row) for row in rows]))
    records.unlink()


def _row(note_id: str, patient_id: str, digest: str, shift: int | None, items: list[list[Any]]) -> Row:
    return Row(note_id, patient_id, digest, shift, tuple(Replacement(*item) for item in items))


_NO_BATCH = pa.RecordBatch.from_pylist([], schema=pa.schema([]))
