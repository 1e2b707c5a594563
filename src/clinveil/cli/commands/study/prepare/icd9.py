"""`clinveil study prepare icd9`: Add the ICD-9 labels of each note's admission, from MIMIC's
diagnoses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Out
from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import Maker, refuse_nested, refuse_places
from clinveil.core.settings import FORCE, KEEP, QUIET, NotesSettings, Settings, flag, group
from clinveil.corpus.corpus import Columns
from clinveil.corpus.file_format import open_source
from clinveil.corpus.icd9 import Diagnoses, LabelledNotes, LabelTable, column, first_level, leaves
from clinveil.corpus.open import open_corpus
from clinveil.corpus.roles import selection
from clinveil.corpus.write import place_in, write_corpus

MAKER = Maker("prepare icd9")


class Icd9Settings(Settings):
    """Settings of `clinveil study prepare icd9`."""

    notes: NotesSettings = group(NotesSettings)
    keep: tuple[str, ...] = KEEP
    quiet: bool = QUIET
    force: bool = FORCE

    labels: Literal["first-level", "leaf"] = flag(
        "first-level", "Label by ranges of codes, or by the 20 most common codes."
    )
    table: Literal["corrected", "published"] = flag(
        "corrected",
        "Use corrected labels, or those of the paper's code (ranges with two gaps, no V or E"
        " codes).",
    )
    top: int = flag(
        20,
        "Number of codes, by patients (labels=leaf, table=corrected); V and E are left out.",
        ge=2,
    )
    admission: str | None = flag(None, "Column of the admission id (default: HADM_ID).")
    only: tuple[str, ...] = flag(
        (), "Use only notes with COLUMN=VALUE, such as CATEGORY=Report; repeatable."
    )
    column: str = flag("icd9", "Name of the new column; labels are separated by ;.", min_length=1)


@command("study prepare icd9", Icd9Settings, flags="labels force")
def icd9(
    run: Run[Icd9Settings],
    notes: Annotated[
        Path, typer.Argument(help="Notes with an admission id, such as MIMIC's NOTEEVENTS.")
    ],
    diagnoses: Annotated[
        Path, typer.Argument(help="Table DIAGNOSES_ICD of MIMIC (.csv, .csv.gz, .parquet).")
    ],
    out: Out,
) -> None:
    """Add a column with the ICD-9 labels of each note's admission; notes without a label are left
    out.
    """
    how = run.settings
    refuse_places(out, MAKER, force=how.force, read={"NOTES": notes, "DIAGNOSES": diagnoses})
    refuse_nested(NOTES=notes, DIAGNOSES=diagnoses)
    source = Diagnoses(diagnoses, how.notes.encoding)
    labelled, columns = _labelled(how, notes, source, _table(how, source))
    with atomic(out, force=how.force, maker=MAKER) as part:
        path, suffix = place_in(part, out, labelled.corpus.suffix)
        written = write_corpus(labelled.batches(), path, columns, suffix)
    for line in _lines(written, labelled, source):
        run.say(line)


def _table(settings: Icd9Settings, source: Diagnoses) -> LabelTable:
    if settings.labels == "first-level":
        return first_level(settings.table)
    if settings.table == "published":
        if settings.top != 20:
            raise UsageError(
                "the published table has 20 codes",
                hint="leave --top out, or pass --table corrected",
            )
        return leaves()
    return leaves(source.most_common(settings.top))


def _labelled(
    settings: Icd9Settings, path: Path, source: Diagnoses, table: LabelTable
) -> tuple[LabelledNotes, Columns]:
    """Return the notes with their labels, and the columns to write."""
    only = selection(settings.only)
    admission = settings.admission or column(
        open_source(path, settings.notes.encoding)[0], "hadm_id"
    )
    if admission is None:
        raise InputError("no column HADM_ID", where=path.name, hint="pass --admission COLUMN")
    needed = tuple(dict.fromkeys((*settings.keep, admission, *only)))
    corpus = open_corpus(path, settings.notes, keep=needed)
    found = corpus.columns
    order = tuple(name for name in found.order if name not in needed or name in settings.keep)
    if settings.column in found.order or settings.column in ("note_id", "patient_id", "text"):
        raise UsageError(
            "the notes have a column of the new column's name", hint="pass another --column"
        )
    columns = replace(
        found, keep=(*settings.keep, settings.column), order=(*order, settings.column)
    )
    return (
        LabelledNotes(corpus, admission, source.by_admission(table), table, settings.column, only),
        columns,
    )


def _lines(written: int, labelled: LabelledNotes, source: Diagnoses) -> Iterator[str]:
    yield f"{written} notes with {len(labelled.counts)} labels"
    left_out = {
        "not written": labelled.skipped + labelled.corpus.skipped,
        "diagnoses left out": source.skipped,
    }
    for what, counts in left_out.items():
        yield from (f"  {what}, {reason}: {count}" for reason, count in counts.most_common())
    yield from (f"  {name:10} {labelled.counts[name]}" for name in labelled.table.classes)
