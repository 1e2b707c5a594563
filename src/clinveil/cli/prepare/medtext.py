"""`clinveil prepare medtext`: notes as a corpus for language models, split by patient."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import typer
from pydantic import model_validator

from clinveil.cli.options import Out, settings_command
from clinveil.core.errors import InputError
from clinveil.core.outputs import Maker
from clinveil.core.settings import FORCE, QUIET, NotesSettings, Settings, flag, group

if TYPE_CHECKING:
    from clinveil.corpus.medtext.counts import CorpusCounts
    from clinveil.corpus.medtext.parts import SplitSizes
    from clinveil.corpus.medtext.prepare import MedTextNotes, MedTextPlan
    from clinveil.corpus.open import NotesCorpus

app = typer.Typer(add_completion=False)
MAKER = Maker("prepare medtext")
# Paper C takes these of MIMIC-III.
CATEGORY, DISCHARGE = "category", "Discharge summary"


class MedTextSettings(Settings):
    """Everything that `clinveil prepare medtext` can be told."""

    notes: NotesSettings = group(NotesSettings)
    quiet: bool = QUIET
    force: bool = FORCE

    size: Literal["small", "large", "all"] = flag(
        "small", "small: 1280 notes to train on; large: all that are left; all: both, with the same test notes."
    )
    split: Literal["patient", "note"] = flag("patient", "note: the paper's, with one patient on both sides.")
    train: int | None = flag(None, "Notes to train on, instead of 1280 or all (size all: of small).", ge=1)
    words: int | None = flag(None, "Words to train on, instead of a number of notes.", ge=1)
    valid: int = flag(128, "Notes to validate on, at least: patients stay whole.", ge=1)
    test: int = flag(128, "Notes to test on, at least.", ge=1)
    only: tuple[str, ...] = flag(
        (), "Only notes with COLUMN=VALUE; repeatable (MIMIC-III: CATEGORY=Discharge summary unless given)."
    )
    tags: Literal["all", "published"] = flag("all", "De-identification tags to replace: all, or the papers' code's.")
    tokenizer: Literal["rules", "spacy"] = flag("rules", "Our rules, or spaCy's tokens where it is installed.")
    min_count: int = flag(3, "Words with fewer occurrences in all parts become <unk>.", ge=1)
    min_patients: int = flag(1, "So do words of fewer patients (paper: 1).", ge=1)
    general: Path | None = flag(None, "General text, a sentence a line (.txt, .txt.gz): a column of counts beside.")
    seed: int | None = flag(None, "Public seed of the split (default: one is drawn and printed).", ge=0)

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.train is not None and self.words is not None:
            raise ValueError("--train and --words are two sizes of one part: give one of them")
        return self


@settings_command(app, MedTextSettings, name="medtext")
def medtext(
    settings: MedTextSettings,
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
) -> None:
    """Make MedText (paper C): a sentence a line, rare words as <unk>, train, validation and test of other patients."""
    from clinveil.core.files import refuse_existing, refuse_nested, whole
    from clinveil.corpus.medtext import prepare, splitter
    from clinveil.corpus.medtext.prepare import read_medtext

    refuse_nested(OUT=out, NOTES=notes, GENERAL=settings.general)
    refuse_existing(out, force=settings.force, maker=MAKER)
    if settings.general and not settings.general.is_file():
        raise InputError("is no file", where=settings.general.name, remedy="--general takes .txt or .txt.gz")
    os.umask(0o077)  # the parts are the notes
    split = splitter(settings.tokenizer)
    corpus, only = _open(notes, settings)
    found = read_medtext(corpus, only=only, tags=settings.tags, split=split)
    plan = _plan(settings)
    with whole(out, force=settings.force, maker=MAKER) as part:
        part.mkdir(mode=0o700)
        counts = prepare.write_medtext(found, plan, part)
        columns = [column for corpus_counts in counts for column in _beside(corpus_counts, settings)]
        prepare.write_records(part, columns, _about(settings, plan, found))
    _report(columns, found, settings, plan, has_patients=corpus.columns.has_patients, only=only)


def _open(path: Path, settings: MedTextSettings) -> tuple[NotesCorpus, dict[str, str]]:
    """The corpus, which keeps the columns that notes are chosen by; and column -> value."""
    from clinveil.corpus.open import open_corpus
    from clinveil.corpus.selection import selection

    only = selection(settings.only)
    corpus = open_corpus(path, settings.notes, keep=tuple(only))
    category = [name for name in corpus.columns.dropped if name.lower() == CATEGORY]
    if not only and corpus.preset == "mimic3" and len(category) == 1:
        only = {category[0]: DISCHARGE}
        corpus = open_corpus(path, settings.notes, keep=tuple(only))
    return corpus, only


def _plan(settings: MedTextSettings) -> MedTextPlan:
    from clinveil.corpus.medtext.prepare import MedTextPlan

    small, large = _sizes(settings)
    sizes = {"small": {"": small}, "large": {"": large}, "all": {"small": small, "large": large}}[settings.size]
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    by_note = settings.split == "note"
    return MedTextPlan(sizes, seed, by_note, settings.min_count, settings.min_patients)


def _sizes(settings: MedTextSettings) -> tuple[SplitSizes, SplitSizes]:
    """Of the small and the large corpus."""
    from clinveil.corpus.medtext.parts import SMALL, SplitSizes

    told = settings.train is not None or settings.words is not None
    valid, test = settings.valid, settings.test
    own = SplitSizes(valid, test, settings.train, settings.words)
    small = own if told else SplitSizes(valid, test, SMALL.train)
    return small, own if told and settings.size == "large" else SplitSizes(valid, test)


def _beside(counts: CorpusCounts, settings: MedTextSettings) -> list[CorpusCounts]:
    """A corpus, and general text of its size where there is some."""
    from clinveil.corpus.medtext import splitter
    from clinveil.corpus.medtext.counts import general_counts

    if settings.general is None:
        return [counts]
    split, count = splitter(settings.tokenizer), settings.min_count
    encoding = settings.notes.encoding
    return [counts, general_counts(settings.general, counts.words, min_count=count, encoding=encoding, split=split)]


def _about(settings: MedTextSettings, plan: MedTextPlan, found: MedTextNotes) -> dict[str, object]:
    names = ("size", "split", "tags", "tokenizer", "min_count", "min_patients")
    return {"seed": plan.seed, **{name: getattr(settings, name) for name in names}, "left_out": dict(found.skipped)}


def _report(
    columns: list[CorpusCounts],
    found: MedTextNotes,
    settings: MedTextSettings,
    plan: MedTextPlan,
    *,
    has_patients: bool,
    only: dict[str, str],
) -> None:
    """What was made: the table on stdout; the seed, and what was left out, on stderr."""
    from rich.console import Console
    from rich.table import Table

    from clinveil.corpus.medtext.counts import table_rows

    head, *rows = table_rows(columns)
    table = Table(*head, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)
    if settings.quiet:
        return
    typer.echo(f"seed {plan.seed} (public; --seed {plan.seed} makes the same files again)", err=True)
    if not has_patients and settings.split == "patient":
        typer.echo("no patient column, so each note counts as its own patient (--patient COL)", err=True)
    if only and not settings.only:
        typer.echo(f"of MIMIC-III the notes with {CATEGORY.upper()}={DISCHARGE} (--only chooses others)", err=True)
    if any(column.words < columns[0].words for column in columns[1::2]) and settings.general:
        typer.echo("the general text is shorter than the notes: vocabulary and OOV do not compare", err=True)
    for reason, count in found.skipped.items():
        typer.echo(f"  left out, {reason}: {count}", err=True)
