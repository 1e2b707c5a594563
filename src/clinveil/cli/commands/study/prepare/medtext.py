"""`clinveil study prepare medtext`: Make MedText, a corpus for language models, split by
patient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import model_validator
from rich.console import Console
from rich.table import Table

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.core.atomic import atomic
from clinveil.core.files import Maker, refuse_places
from clinveil.core.locations import Location
from clinveil.core.settings import FORCE, QUIET, NotesSettings, Settings, flag, group
from clinveil.corpus.medtext import prepare, splitter
from clinveil.corpus.medtext.prepare import (
    SMALL,
    CorpusCounts,
    MedTextNotes,
    MedTextPlan,
    SplitSizes,
    read_medtext,
    table_rows,
)
from clinveil.corpus.open import OpenedCorpus, open_corpus
from clinveil.corpus.roles import selection

MAKER = Maker("prepare medtext")
# Paper C uses these notes of MIMIC-III.
CATEGORY = "category"
DISCHARGE = "Discharge summary"


class MedTextSettings(Settings):
    """Settings of `clinveil study prepare medtext`."""

    notes: NotesSettings = group(NotesSettings)
    quiet: bool = QUIET
    force: bool = FORCE

    size: Literal["small", "large", "all"] = flag(
        "small", "Train on 1,280 notes, on all others, or make both with one test set."
    )
    split: Literal["patient", "note"] = flag(
        "patient", "Split by patient, or by note as in the paper."
    )
    train: int | None = flag(
        None, "Number of training notes (size=all: of the small corpus).", ge=1
    )
    words: int | None = flag(None, "Number of training words, instead of notes.", ge=1)
    valid: int = flag(128, "Minimum number of validation notes; patients are not divided.", ge=1)
    test: int = flag(128, "Minimum number of test notes.", ge=1)
    only: tuple[str, ...] = flag(
        (), "Use only notes with COLUMN=VALUE; repeatable (MIMIC-III: CATEGORY=Discharge summary)."
    )
    tags: Literal["all", "published"] = flag(
        "all", "Replace all de-identification tags, or those that the paper's code replaces."
    )
    tokenizer: Literal["rules", "spacy"] = flag(
        "rules", "Tokenize by rules or with spaCy, if installed."
    )
    min_count: int = flag(3, "Replace words with fewer occurrences by <unk>.", ge=1)
    min_patients: int = flag(1, "Replace words of fewer patients by <unk> (paper: 1).", ge=1)
    seed: int | None = flag(None, "Public seed of the split (default: random, printed).", ge=0)

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.train is not None and self.words is not None:
            raise ValueError("pass --train or --words, not both")
        return self


@command("study prepare medtext", MedTextSettings, flags="size seed force")
def medtext(run: Run[MedTextSettings], notes: Notes, out: Out) -> None:
    """Make MedText (paper C): one sentence per line, rare words as <unk>, split by patient into
    three parts.
    """
    how = run.settings
    refuse_places(out, MAKER, force=how.force, read={"NOTES": notes})
    split = splitter(how.tokenizer)
    corpus, only = _open(notes, how)
    found = read_medtext(corpus, only=only, tags=how.tags, split=split)
    plan = MedTextPlan(_sizes(how), run.seed, how.split == "note", how.min_count, how.min_patients)
    with atomic(out, force=how.force, maker=MAKER) as part:
        part.mkdir(mode=0o700)
        counts = prepare.write_medtext(found, plan, part)
        prepare.write_records(part, counts, _about(how, plan, found))
    _print(counts)
    for line in _remarks(found, how, has_patients=corpus.columns.has_patients, only=only):
        run.say(line)


def _open(path: Location, settings: MedTextSettings) -> tuple[OpenedCorpus, dict[str, str]]:
    """Return the corpus with the columns that select notes, and column -> value of the
    selection.
    """
    only = selection(settings.only)
    corpus = open_corpus(path, settings.notes, keep=tuple(only))
    category = [name for name in corpus.columns.dropped if name.lower() == CATEGORY]
    if not only and corpus.preset == "mimic3" and len(category) == 1:
        only = {category[0]: DISCHARGE}
        corpus = open_corpus(path, settings.notes, keep=tuple(only))
    return corpus, only


def _sizes(how: MedTextSettings) -> dict[str, SplitSizes]:
    """Return folder name -> sizes of each corpus to make."""
    own = SplitSizes(how.valid, how.test, how.train, how.words)
    given = how.train is not None or how.words is not None
    small = own if given else SplitSizes(how.valid, how.test, SMALL.train)
    large = own if given and how.size == "large" else SplitSizes(how.valid, how.test)
    return {"small": {"": small}, "large": {"": large}, "all": {"small": small, "large": large}}[
        how.size
    ]


def _about(settings: MedTextSettings, plan: MedTextPlan, found: MedTextNotes) -> dict[str, object]:
    names = ("size", "split", "tags", "tokenizer", "min_count", "min_patients")
    return {
        "seed": plan.seed,
        **{name: getattr(settings, name) for name in names},
        "left_out": dict(found.skipped),
    }


def _print(columns: Sequence[CorpusCounts]) -> None:
    """Print the counts as a table."""
    head, *rows = table_rows(columns)
    table = Table(*head, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def _remarks(
    found: MedTextNotes, how: MedTextSettings, *, has_patients: bool, only: dict[str, str]
) -> Iterator[str]:
    """Yield remarks on the table, and what was left out."""
    if not has_patients and how.split == "patient":
        yield "no patient column: each note counts as its own patient (pass --patient COLUMN)"
    if only and not how.only:
        yield f"notes of MIMIC-III with {CATEGORY.upper()}={DISCHARGE} (pass --only for others)"
    for reason, count in found.skipped.items():
        yield f"  left out, {reason}: {count}"
