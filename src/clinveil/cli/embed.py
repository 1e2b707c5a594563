"""`clinveil embed`: word vectors from notes."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.outputs import Maker
from clinveil.core.settings import FORCE, QUIET, NotesSettings, Settings, flag, group
from clinveil.vectors.settings import VectorSettings

app = typer.Typer(add_completion=False)
MAKER = Maker("embed")


class EmbedSettings(Settings):
    """Everything that `clinveil embed` can be told."""

    vectors: VectorSettings = group(VectorSettings)
    notes: NotesSettings = group(NotesSettings)
    quiet: bool = QUIET
    force: bool = FORCE

    workers: int = flag(2, "Threads; with more than one the vectors are not reproducible to the bit.", ge=1, le=1024)
    seed: int | None = flag(None, "Public seed of the training (default: one is drawn and printed).", ge=0)


@settings_command(app, EmbedSettings, name="embed")
def embed(
    settings: EmbedSettings, notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")], out: Out
) -> None:
    """Train word vectors on notes; what they give away of the notes is secret too."""
    from clinveil.core.files import refuse_existing, refuse_nested, workplace
    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.files import save_vectors
    from clinveil.vectors.train import train

    refuse_nested(OUT=out, NOTES=notes)
    refuse_existing(out, force=settings.force, maker=MAKER)
    os.umask(0o077)  # half-written vectors are as secret as whole ones
    say = say_unless(settings.quiet)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    say(f"seed {seed} (public; --seed {seed} with --workers 1 makes the same vectors again)")
    corpus = open_corpus(notes, settings.notes)
    if corpus.columns.patient_id is None:
        say("no patient column: each note counts as a patient of its own")
    with workplace(out) as scratch:
        vectors = train(
            corpus, settings.vectors, seed=seed, workers=settings.workers, scratch=scratch, on_epoch=_progress(say)
        )
    save_vectors(vectors, out, force=settings.force, maker=MAKER)
    say(f"{len(vectors)} words of {vectors.dim} dimensions, {vectors.meta['determinism']}, in {out.name}")
    if out.suffix in (".vec", ".txt", ".bin"):
        say(f"a {out.suffix} file holds no counts: the rare-word floor will be counted on the notes at hand")
    typer.echo("SECRET: word vectors give away words of the notes; keep them where the notes are kept", err=True)


def _progress(say: Callable[[str], None]) -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None
    return lambda done, epochs: say(f"pass {done} of {epochs}")
