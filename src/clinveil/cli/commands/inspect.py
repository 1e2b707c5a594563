"""`clinveil inspect`: Describe notes: counts, columns, language and markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery
from clinveil.cli.progress import say
from clinveil.core import KEEP, LABEL, NotesSettings, Settings, group, write_findings
from clinveil.corpus import RARE_BELOW, Inspection, open_corpus
from clinveil.corpus import inspect as count_all

Row = tuple[str, str, str]  # name, count, remark


class InspectSettings(Settings):
    """Settings of `clinveil inspect`."""

    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP


@command("inspect", InspectSettings, flags="keep", findings=True)
def inspect(run: Run[InspectSettings], notes: NotesOrQuery) -> None:
    """Describe notes: rows, patients, words, duplicates and columns. Writes nothing."""
    how = run.settings
    corpus = open_corpus(notes, how.notes, label=how.label, keep=how.keep)
    if not corpus.columns.has_patients:
        say(
            "clinveil: no patient column: each note counts as its own patient (pass --patient"
            " COLUMN)"
        )
    found = count_all(corpus)
    if run.json:
        write_findings(run.json, run.command, found.findings(), seed=None)
    else:
        _print(notes.name, found)


def _print(name: str, found: Inspection) -> None:
    table = Table("", "", "", show_header=False, box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for row in (*_counts(found), *_columns(found)):
        table.add_row(*(Text(cell) for cell in row))  # as Text: a column name may look like markup
    console = Console(highlight=False)
    console.print(Text(name, style="bold"))
    console.print(table)


def _counts(found: Inspection) -> Iterator[Row]:
    yield "notes", f"{found.rows:,}", ""
    for reason, count in found.skipped.items():
        yield "left out", f"{count:,}", reason
    own = "" if found.columns.has_patients else "no patient column: each note is its own patient"
    yield "patients", f"{found.patients:,}", own
    yield "without a text", f"{found.null:,}", "null; counted, never written"
    yield "empty", f"{found.empty:,}", "counted and written"
    yield "without a word", f"{found.wordless:,}", "only numbers and punctuation"
    share = found.marked_up / max(1, found.rows)
    yield (
        "marked up",
        f"{found.marked_up:,}",
        f"{share:.1%}: HTML, XML or character references, read without tags",
    )
    share = found.not_english / max(1, found.rows)
    yield (
        "not in English",
        f"{found.not_english:,}",
        f"{share:.1%}: left out by deidentify and release",
    )
    yield "words", f"{found.words:,}", ""
    yield "distinct words", f"{found.types:,}", ""
    share = found.rare_types / found.types if found.types else 0
    rare = f"of fewer than {RARE_BELOW} patients ({share:.0%}); in no release except deidentified"
    yield "rare words", f"{found.rare_types:,}", rare
    yield "exact duplicates", f"{found.exact_duplicates:,}", "same text as an earlier note"


def _columns(found: Inspection) -> Iterator[Row]:
    columns = found.columns
    yield "", "", ""
    if found.preset:
        yield "preset", found.preset, "recognized by the header"
    for role, name in (
        ("text", columns.text),
        ("id", columns.note_id),
        ("patient", columns.patient_id),
    ):
        if name is not None:
            yield role, name, "guessed" if role in found.guessed else ""
    yield "kept", str(len(columns.keep)), ", ".join(columns.keep)
    yield "dropped", str(len(columns.dropped)), ", ".join(columns.dropped)
