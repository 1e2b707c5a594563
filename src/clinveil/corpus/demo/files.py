"""Writing the demo corpus: notes.parquet, patients.parquet, codes.csv, spans.jsonl."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from clinveil.core.files import private_folder, whole
from clinveil.core.outputs import Maker
from clinveil.corpus.demo.stream import NOTES_SCHEMA, demo_chunks, demo_codes
from clinveil.corpus.people import PATIENTS_SCHEMA, patients_batch, write_codes

MAKER = Maker("generate")
NOTES, PATIENTS, CODES, SPANS = "notes.parquet", "patients.parquet", "codes.csv", "spans.jsonl"


@dataclass(frozen=True)
class DemoFiles:
    """Where the files of a demo corpus lie, and how much they hold."""

    folder: Path
    patients: int
    notes: int
    spans: int

    @property
    def files(self) -> tuple[Path, ...]:
        """notes.parquet, patients.parquet, codes.csv, spans.jsonl."""
        return tuple(self.folder / name for name in (NOTES, PATIENTS, CODES, SPANS))


def write_demo(
    out: Path,
    patients: int,
    seed: int,
    *,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int], None] = lambda patients: None,
) -> DemoFiles:
    """Write a demo corpus as a folder, whole or not at all, in constant memory.

    Args:
        out: the folder; it and its files are for their owner only.
        patients, seed, workers: as for `demo_chunks`.
        force: replace a folder that this wrote before.
        progress: called with the number of patients done.

    Raises:
        UsageError: the folder is there already, or holds files of somebody else.
    """
    done = notes = spans = 0
    with whole(out, force=force, maker=MAKER) as part:
        private_folder(part)
        with (
            pq.ParquetWriter(part / NOTES, NOTES_SCHEMA, compression="zstd") as note_file,
            pq.ParquetWriter(part / PATIENTS, PATIENTS_SCHEMA, compression="zstd") as patient_file,
            (part / SPANS).open("w", encoding="utf-8", newline="\n") as span_file,
        ):
            for chunk in demo_chunks(patients, seed, workers=workers):
                note_file.write_batch(chunk.notes)
                patient_file.write_batch(patients_batch(chunk.patients))
                span_file.write(chunk.spans)
                done, notes = done + len(chunk.patients), notes + chunk.notes.num_rows
                spans += chunk.spans.count("\n")
                progress(done)
        write_codes(demo_codes(), part / CODES)
    return DemoFiles(out, done, notes, spans)
