"""Add the ICD-9 labels of each note's admission to MIMIC notes, for Table 4 of paper A:
`python -m papers.jamia_2020.prepare_icd9 NOTEEVENTS.csv DIAGNOSES_ICD.csv -o notes.parquet`.

Notes without a label are left out. MIMIC's diagnoses are in its table DIAGNOSES_ICD.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clinveil import Columns, InputError, UsageError, open_corpus
from clinveil.core import NotesSettings, atomic
from clinveil.corpus import open_source, write_corpus
from papers.jamia_2020.icd9 import (
    Diagnoses,
    LabelledNotes,
    LabelTable,
    column,
    first_level,
    leaves,
)
from papers.running import exit_code_of, say
from papers.selection import selection

LEAVES_OF_THE_PAPER = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path, help="notes with an admission id (NOTEEVENTS)")
    parser.add_argument("diagnoses", type=Path, help="table DIAGNOSES_ICD (.csv, .parquet)")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, help="file of the labelled notes (.parquet, .csv)"
    )
    parser.add_argument(
        "--labels",
        choices=("first-level", "leaf"),
        default="first-level",
        help="ranges of codes, or the most common codes",
    )
    parser.add_argument(
        "--table",
        choices=("corrected", "published"),
        default="corrected",
        help="corrected labels, or those of the paper's code (ranges with two gaps, no V or E)",
    )
    parser.add_argument(
        "--top",
        type=int,
        default=LEAVES_OF_THE_PAPER,
        help="number of codes by patients (--labels leaf --table corrected)",
    )
    parser.add_argument("--admission", help="column of the admission id (default: HADM_ID)")
    parser.add_argument(
        "--only", action="append", default=[], help="use only notes with COLUMN=VALUE; repeatable"
    )
    parser.add_argument("--keep", action="append", default=[], help="columns to keep; repeatable")
    parser.add_argument("--column", default="icd9", help="new column; labels are separated by ;")
    known = parser.parse_args(arguments)
    return exit_code_of(lambda: add_labels(known))


def add_labels(known: argparse.Namespace) -> None:
    """Write the labelled notes, and print the counts. Raises UsageError and InputError."""
    diagnoses = Diagnoses(known.diagnoses)
    labelled, columns = labelled_notes(
        known.notes,
        diagnoses,
        table_of(known.labels, known.table, known.top, diagnoses),
        admission=known.admission,
        only=known.only,
        keep=known.keep,
        new_column=known.column,
    )
    with atomic(known.out) as part:
        written = write_corpus(labelled.batches(), part, columns, known.out.suffix)
    for line in _lines(written, labelled, diagnoses):
        say(line)


def table_of(labels: str, table: str, top: int, diagnoses: Diagnoses) -> LabelTable:
    """Return the label table of the options. Raises UsageError for options that exclude each
    other.
    """
    if labels == "first-level":
        return first_level("published" if table == "published" else "corrected")
    if table == "published":
        if top != LEAVES_OF_THE_PAPER:
            hint = "leave --top out, or pass --table corrected"
            raise UsageError("the published table has 20 codes", hint=hint)
        return leaves()
    return leaves(diagnoses.most_common(top))


def labelled_notes(
    notes: Path,
    diagnoses: Diagnoses,
    table: LabelTable,
    *,
    admission: str | None = None,
    only: Sequence[str] = (),
    keep: Sequence[str] = (),
    new_column: str = "icd9",
) -> tuple[LabelledNotes, Columns]:
    """Return the notes with their labels, and the columns to write.

    Raises UsageError for a column name in use, InputError without a column of admissions.
    """
    wanted = selection(only)
    admissions = admission or column(open_source(notes, "utf-8")[0], "hadm_id")
    if admissions is None:
        raise InputError("no column HADM_ID", where=notes.name, hint="pass --admission COLUMN")
    needed = tuple(dict.fromkeys((*keep, admissions, *wanted)))
    corpus = open_corpus(notes, NotesSettings(), keep=needed)
    source = corpus.columns
    if new_column in source.order or new_column in ("note_id", "patient_id", "text"):
        message = "the notes have a column of the new column's name"
        raise UsageError(message, hint="pass another --column")
    order = tuple(name for name in source.order if name not in needed or name in keep)
    columns = replace(source, keep=(*keep, new_column), order=(*order, new_column))
    labels = diagnoses.by_admission(table)
    return LabelledNotes(corpus, admissions, labels, table, new_column, wanted), columns


def _lines(written: int, labelled: LabelledNotes, diagnoses: Diagnoses) -> Iterator[str]:
    yield f"{written} notes with {len(labelled.counts)} labels"
    skipped_notes = labelled.skipped + labelled.corpus.skipped
    for reason, count in skipped_notes.most_common():
        yield f"  not written, {reason}: {count}"
    for reason, count in diagnoses.skipped.most_common():
        yield f"  diagnoses left out, {reason}: {count}"
    for name in labelled.table.classes:
        yield f"  {name:10} {labelled.counts[name]}"


if __name__ == "__main__":
    sys.exit(main())
