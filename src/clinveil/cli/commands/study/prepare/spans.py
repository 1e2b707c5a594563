"""`clinveil study prepare spans`: Convert spans of notes to JSON lines, BRAT or i2b2/n2c2 XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.cli.progress import say
from clinveil.core.atomic import atomic
from clinveil.core.files import Maker, refuse_places
from clinveil.core.settings import FORCE, QUIET, NotesSettings, Settings, flag, group
from clinveil.core.spans import Span

MAKER = Maker("prepare spans")
Offsets = Literal["codepoints", "bytes", "utf16"]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", help='TOML file that maps labels: THEIRS = "OURS".'),
]


class PrepareSpansSettings(Settings):
    """Settings of `clinveil study prepare spans`."""

    notes: NotesSettings = group(NotesSettings)
    to: Literal["jsonl", "brat", "i2b2"] = flag(
        "jsonl", "Write a .jsonl file without text, or a folder with the notes."
    )
    offsets: Offsets = flag("codepoints", "Unit of the offsets in SPANS.")
    write_offsets: Offsets = flag("codepoints", "Unit of the offsets to write.")
    quiet: bool = QUIET
    force: bool = FORCE


@command("study prepare spans", PrepareSpansSettings, flags="to force")
def spans(
    run: Run[PrepareSpansSettings],
    notes: Notes,
    found: Annotated[
        Path, typer.Argument(metavar="SPANS", help="Spans: a .jsonl file, or a folder of BRAT or i2b2 .xml.")
    ],
    out: Out,
    labels: Labels = None,
) -> None:
    """Convert spans of notes for annotation tools and scorers; they are checked against the notes first."""
    from clinveil.corpus.corpus import rows
    from clinveil.corpus.gold import GoldSpans, Scheme, read_labels, read_spans, write_spans
    from clinveil.corpus.open import open_corpus

    how = run.settings
    refuse_places(out, MAKER, force=how.force, read={"NOTES": notes, "SPANS": found, "--labels": labels})
    given = read_spans(found, Scheme(how.offsets, read_labels(labels) if labels else {}))
    corpus = open_corpus(notes, how.notes)

    def annotated(of: GoldSpans) -> Iterator[tuple[str, str, Sequence[Span]]]:
        seen = []
        for note in rows(corpus):
            seen.append(note.note_id)
            if note.note_id in of.marks:
                yield note.note_id, note.text, of.of(note.note_id, note.text)
        of.refuse_unknown(seen)

    with atomic(out, force=how.force, maker=MAKER) as part:
        if how.to != "jsonl":
            part.mkdir(mode=0o700)
        write_spans(part, annotated(given), how.to, how.write_offsets)
    if how.to != "jsonl":
        say("SECRET: the folder contains the notes, with all identifiers")
