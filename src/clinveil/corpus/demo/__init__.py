"""The demo corpus: synthetic consultation notes with gold annotations, generated as a stream from a
seed.

The templates are in `language/*.toml`. `grammar` compiles and expands them, and `notes` composes
notes. The corpus is generated in chunks with any number of workers, and written as notes.parquet,
patients.parquet, codes.csv and spans.jsonl. Nothing in it comes from a real person's record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core import InputError, Maker, atomic, private_folder
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, ROLE_FIELDS, TEXT, Columns, MemoryCorpus
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.notes import DemoNote, many_notes
from clinveil.corpus.people import PATIENTS_SCHEMA, Patient, patients_batch, write_codes
from clinveil.scale import processes

# Additional columns: the type of note, and the main diagnosis as code and as group.
KEPT = ("note_type", "code", "diagnosis_group")
NOTES_SCHEMA = pa.schema([*ROLE_FIELDS, *((name, pa.string()) for name in KEPT)])
COLUMNS = Columns(
    TEXT, NOTE_ID, PATIENT_ID, KEPT, ("code", "diagnosis_group"), (), tuple(NOTES_SCHEMA.names)
)
CHUNK_PATIENTS = 400
OTHER = "other"
COMMON = frozenset(
    {"cardiovascular", "digestive", "endocrine", "mental health", "musculoskeletal", "respiratory"}
)
"""Diagnosis groups of most patients; in a brief corpus the others are `OTHER`."""

_encode = json.JSONEncoder(ensure_ascii=False).encode
MAKER = Maker("generate")
NOTES = "notes.parquet"
PATIENTS = "patients.parquet"
CODES = "codes.csv"
SPANS = "spans.jsonl"


class Chunk(NamedTuple):
    """The data of some consecutive patients.

    Attributes:
        notes: a record batch of `NOTES_SCHEMA`.
        spans: lines of `spans.jsonl`.
    """

    notes: pa.RecordBatch
    patients: list[Patient]
    spans: str


def demo_chunks(
    patients: int,
    seed: int,
    *,
    workers: int = 1,
    chunk: int = CHUNK_PATIENTS,
    spans: bool = True,
    brief: bool = False,
) -> Iterator[Chunk]:
    """Yield the corpus in chunks of patients, in order; the rows depend only on (patients, seed).

    Args:
        patients: number of patients; patient k is the same in a corpus of any size.
        seed: a public seed, because all data are synthetic.
        workers: spawned processes, 1 for none.
        chunk: patients per chunk.
        spans: whether to return the gold spans.
        brief: only the first note of each patient, and rare diagnosis groups as `other`.
    """
    if patients < 1 or chunk < 1 or seed < 0:
        hint = "use at least one patient and a seed of 0 or more"
        raise InputError("invalid size or seed of the demo corpus", hint=hint)
    starts = range(0, patients, chunk)
    ranges = [(start, min(start + chunk, patients)) for start in starts]
    return processes(min(workers, len(ranges)))(partial(_chunk, seed, spans, brief), ranges)


def _chunk(seed: int, spans: bool, brief: bool, bounds: tuple[int, int]) -> Chunk:
    people: list[Patient] = []
    notes: list[DemoNote] = []
    for patient, written in many_notes(seed, *bounds):
        people.append(patient)
        notes += [_with_common_group(note) for note in written[:1]] if brief else written
    return Chunk(_batch(notes), people, "".join(_lines(notes)) if spans else "")


def _with_common_group(note: DemoNote) -> DemoNote:
    """Return the note with its diagnosis group, or `OTHER` for a rare one."""
    return note if note.group in COMMON else note._replace(group=OTHER)


def _batch(notes: list[DemoNote]) -> pa.RecordBatch:
    identities, patients, types, codes, groups, texts, _ = zip(*notes, strict=True)
    columns = (identities, patients, texts, types, codes, groups)
    arrays = [
        pa.array(values, type=field.type)
        for values, field in zip(columns, NOTES_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=NOTES_SCHEMA)


def _lines(notes: list[DemoNote]) -> Iterator[str]:
    for note in notes:
        for start, end, label in note.marks:
            entry = {
                "note_id": note.note_id,
                "start": start,
                "end": end,
                "label": label,
                "text": note.text[start:end],
            }
            yield _encode(entry) + "\n"


def demo_notes(patients: int, seed: int, *, workers: int = 1) -> Iterator[pa.RecordBatch]:
    """Yield the notes as record batches of note_id, patient_id, text, note_type, code,
    diagnosis_group.
    """
    return (chunk.notes for chunk in demo_chunks(patients, seed, workers=workers, spans=False))


def demo_codes() -> dict[str, str]:
    """Return code -> description of 1 to 3 words, from the most to the least frequent."""
    return {diagnosis.code: diagnosis.description for diagnosis in language().diagnoses}


def demo_corpus(patients: int, seed: int) -> MemoryCorpus:
    """Return the notes as a corpus, generated in each pass."""
    return MemoryCorpus(partial(demo_notes, patients, seed), COLUMNS, ".parquet")


@dataclass(frozen=True)
class DemoFiles:
    """The files of a demo corpus and their numbers of rows."""

    folder: Path
    patients: int
    notes: int
    spans: int

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of notes.parquet, patients.parquet, codes.csv and spans.jsonl."""
        return tuple(self.folder / name for name in (NOTES, PATIENTS, CODES, SPANS))


def write_demo(
    out: Path,
    patients: int,
    seed: int,
    *,
    workers: int = 1,
    force: bool = False,
    brief: bool = False,
    progress: Callable[[int], None] = lambda patients: None,
) -> DemoFiles:
    """Write a demo corpus as a folder, atomically and in constant memory.

    Args:
        out: the folder; it and its files are readable by their owner only.
        patients, seed, workers, brief: as for `demo_chunks`.
        force: replace a folder that this function wrote before.
        progress: called with the number of patients done.

    Raises:
        UsageError: the folder exists, or contains foreign files.
    """
    done = notes = spans = 0
    with atomic(out, force=force, maker=MAKER) as part:
        private_folder(part)
        with (
            pq.ParquetWriter(part / NOTES, NOTES_SCHEMA, compression="zstd") as note_file,
            pq.ParquetWriter(part / PATIENTS, PATIENTS_SCHEMA, compression="zstd") as patient_file,
            (part / SPANS).open("w", encoding="utf-8", newline="\n") as span_file,
        ):
            for chunk in demo_chunks(patients, seed, workers=workers, brief=brief):
                note_file.write_batch(chunk.notes)
                patient_file.write_batch(patients_batch(chunk.patients))
                span_file.write(chunk.spans)
                done = done + len(chunk.patients)
                notes = notes + chunk.notes.num_rows
                spans += chunk.spans.count("\n")
                progress(done)
        write_codes(demo_codes(), part / CODES)
    return DemoFiles(out, done, notes, spans)
