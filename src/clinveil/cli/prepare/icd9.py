"""`clinveil prepare icd9`: notes with the ICD-9 labels of their admission."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.core.outputs import Maker
from clinveil.core.settings import FORCE, KEEP, QUIET, NotesSettings, Settings, flag, group

if TYPE_CHECKING:
    from clinveil.corpus.corpus import Columns
    from clinveil.corpus.icd9 import Diagnoses, LabelledNotes, LabelTable

app = typer.Typer(add_completion=False)
MAKER = Maker("prepare icd9")


class Icd9Settings(Settings):
    """Everything that `clinveil prepare icd9` can be told."""

    notes: NotesSettings = group(NotesSettings)
    keep: tuple[str, ...] = KEEP
    quiet: bool = QUIET
    force: bool = FORCE

    labels: Literal["first-level", "leaf"] = flag("first-level", "Ranges of codes, or the 20 most common codes.")
    table: Literal["corrected", "published"] = flag(
        "corrected", "published: the ranges with two holes and no V or E, or the 20 codes, of the papers' code."
    )
    top: int = flag(20, "leaf, corrected: so many codes, those of the most patients; V and E are left out.", ge=2)
    admission: str | None = flag(None, "Column of the notes' admission (default: HADM_ID).")
    only: tuple[str, ...] = flag((), "Only notes with COLUMN=VALUE, such as CATEGORY=Report; repeatable.")
    column: str = flag("icd9", "Name of the new column; labels have ; between them.", min_length=1)


@settings_command(app, Icd9Settings, name="icd9")
def icd9(
    settings: Icd9Settings,
    notes: Annotated[Path, typer.Argument(help="Notes with an admission id, such as MIMIC's NOTEEVENTS.")],
    diagnoses: Annotated[Path, typer.Argument(help="MIMIC's table DIAGNOSES_ICD (.csv, .csv.gz, .parquet, …).")],
    out: Out,
) -> None:
    """Add a column with the ICD-9 labels of each note's admission; notes without a label are left out and counted."""
    from clinveil.core.files import refuse_existing, refuse_nested, whole
    from clinveil.corpus.icd9 import Diagnoses

    refuse_nested(OUT=out, NOTES=notes, DIAGNOSES=diagnoses)
    refuse_existing(out, force=settings.force, maker=MAKER)
    os.umask(0o077)  # the notes are secret, with or without labels
    source = Diagnoses(diagnoses, settings.notes.encoding)
    table = _table(settings, source)
    labelled, columns = _labelled(settings, notes, source, table)
    with whole(out, force=settings.force, maker=MAKER) as part:
        written = _write(labelled, columns, part, out)
    if not settings.quiet:
        _report(written, labelled, source)


def _table(settings: Icd9Settings, source: Diagnoses) -> LabelTable:
    from clinveil.core.errors import UsageError
    from clinveil.corpus.icd9 import first_level, leaves

    if settings.labels == "first-level":
        return first_level(settings.table)
    if settings.table == "published":
        if settings.top != 20:
            raise UsageError("the published table has 20 codes", remedy="leave --top out, or --table corrected")
        return leaves()
    return leaves(source.most_common(settings.top))


def _labelled(
    settings: Icd9Settings, path: Path, source: Diagnoses, table: LabelTable
) -> tuple[LabelledNotes, Columns]:
    """The notes with their labels, and the columns to write: those asked for, and the new one."""
    from clinveil.core.errors import UsageError
    from clinveil.corpus.icd9 import LabelledNotes
    from clinveil.corpus.open import open_corpus
    from clinveil.corpus.selection import selection

    only = selection(settings.only)
    admission = settings.admission or _admission(path, settings.notes.encoding)
    needed = tuple(dict.fromkeys((*settings.keep, admission, *only)))
    corpus = open_corpus(path, settings.notes, keep=needed)
    found = corpus.columns
    order = tuple(name for name in found.order if name not in needed or name in settings.keep)
    if settings.column in found.order or settings.column in ("note_id", "patient_id", "text"):
        raise UsageError("the notes have a column of the new column's name", remedy="give another --column")
    columns = replace(found, keep=(*settings.keep, settings.column), order=(*order, settings.column))
    return LabelledNotes(corpus, admission, source.by_admission(table), table, settings.column, only), columns


def _admission(path: Path, encoding: str) -> str:
    from clinveil.core.errors import InputError
    from clinveil.corpus.file_format import open_source
    from clinveil.corpus.icd9 import column

    name = column(open_source(path, encoding)[0], "hadm_id")
    if name is None:
        raise InputError("no column HADM_ID", where=path.name, remedy="name the column with --admission")
    return name


def _write(labelled: LabelledNotes, columns: Columns, part: Path, out: Path) -> int:
    """One file where OUT has a known suffix; else a folder with one file of the notes' own kind."""
    from clinveil.corpus.file_format import suffix_of
    from clinveil.corpus.write import write_corpus

    suffix = suffix_of(out) or labelled.corpus.suffix
    path = part
    if not suffix_of(out):
        part.mkdir(mode=0o700)
        path = part / f"notes{suffix}"
    return write_corpus(labelled.batches(), path, columns, suffix)


def _report(written: int, labelled: LabelledNotes, source: Diagnoses) -> None:
    typer.echo(f"{written} notes with {len(labelled.counts)} labels", err=True)
    _list("not written", labelled.skipped + labelled.corpus.skipped)
    _list("diagnoses left out", source.skipped)
    for name in labelled.table.classes:
        typer.echo(f"  {name:10} {labelled.counts[name]}", err=True)


def _list(what: str, counts: Counter[str]) -> None:
    for reason, count in counts.most_common():
        typer.echo(f"  {what}, {reason}: {count}", err=True)
