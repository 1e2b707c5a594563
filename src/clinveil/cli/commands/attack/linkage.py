"""`clinveil attack linkage`: Link released notes to patients of whom some text is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks import Context, Linkage
from clinveil.channel import load_channel
from clinveil.cli.command import EITHER, Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core import WORKERS, group, setting
from clinveil.corpus import open_corpus
from clinveil.releases import source_notes
from clinveil.vectors import load_vectors

Released = Annotated[
    Path, typer.Argument(help="Protected notes, of clinveil or another tool."), EITHER
]
Known = Annotated[
    Path, typer.Argument(help="Texts about the same patients, or their source notes."), EITHER
]
Vault = Annotated[
    Path | None, typer.Option("--vault", help="Vault of the release, for the true patients.")
]
ChannelOf = Annotated[
    Path | None, typer.Option("--channel", help="Also attack with this channel (vault/channel).")
]
VectorsOf = Annotated[
    Path | None, typer.Option("--vectors", help="Also attack with these vectors (vault/vectors).")
]


class LinkageSettings(MeasureSettings):
    """Settings of `clinveil attack linkage`."""

    attack: Linkage = group(Linkage)
    known_text: str | None = setting(
        None, "Column of the known text, if it differs (default: guessed).", min_length=1
    )
    workers: int = WORKERS


@command("attack linkage", LinkageSettings, flags="seed", findings=True)
def linkage(
    run: Run[LinkageSettings],
    released: Released,
    known: Known,
    vault: Vault = None,
    channel: ChannelOf = None,
    vectors: VectorsOf = None,
) -> None:
    """Link released notes to patients of whom some text is known; compare with chance and a
    control.
    """
    how = run.settings
    match = run.settings.attack.match
    keep: tuple[str, ...] = () if match in (None, "patient") else (match,)
    context = Context(
        released=open_corpus(released, how.notes, keep=keep),
        original=open_corpus(
            known, how.notes.but(text=how.known_text) if how.known_text else how.notes, keep=keep
        ),
        notes=source_notes(vault) if vault else None,
        channel=load_channel(channel) if channel else None,
        vectors=[load_vectors(vectors)] if vectors else None,
        scratch=vault,
        workers=how.workers,
        say=run.say,
    )
    found = how.attack(context, run.rng())
    run.show(
        found, f"linkage of {released.name} with {known.name} (seed {run.seed}; lower is safer)"
    )
