"""`clinveil attack linkage`: Find whose note a released note is, among people of whom something is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.attack import Context
from clinveil.attacks.text.linkage import Linkage
from clinveil.channel.files import load_channel
from clinveil.cli.command import Run, command
from clinveil.core.files import read_json
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.corpus.open import OpenedCorpus, open_corpus
from clinveil.releases.crosswalk import source_notes
from clinveil.vectors.files import load_vectors

Released = Annotated[Path, typer.Argument(help="Protected notes, ours or another tool's: a file or a folder.")]
Known = Annotated[Path, typer.Option("--known", help="Texts about the same people, or their source notes.")]
Vault = Annotated[Path | None, typer.Option("--vault", help="Vault of the release: whose note is whose.")]
ChannelOf = Annotated[Path | None, typer.Option("--channel", help="Also its thief: vault/channel.")]
VectorsOf = Annotated[Path | None, typer.Option("--vectors", help="Also their thief: vault/vectors.")]


class LinkageSettings(Settings):
    """Settings of `clinveil attack linkage`."""

    attack: Linkage = group(Linkage)
    notes: NotesSettings = group(NotesSettings)
    known_text: str | None = flag(None, "Column of the known text, where it is another (guessed).", min_length=1)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack linkage", LinkageSettings, flags="seed", findings=True)
def linkage(
    run: Run[LinkageSettings],
    released: Released,
    known: Known,
    vault: Vault = None,
    channel: ChannelOf = None,
    vectors: VectorsOf = None,
) -> None:
    """Find whose note a released note is, among people of whom something is known; beside chance and a shuffle."""
    how = run.settings
    context = Context(
        released=_open(_notes_of(released), how, how.notes),
        original=_open(known, how, how.notes.but(text=how.known_text) if how.known_text else how.notes),
        notes=source_notes(vault) if vault else None,
        channel=load_channel(channel) if channel else None,
        vectors=[load_vectors(vectors)] if vectors else None,
        scratch=vault,
        workers=how.workers,
        say=run.say,
    )
    found = how.attack(context, run.rng())
    run.show(found, f"linkage of {released.name} with {known.name} (seed {run.seed}; lower is safer)")


def _notes_of(path: Path) -> Path:
    """The notes of a release's folder; else the path itself."""
    told = read_json(path / "manifest.json") if (path / "manifest.json").is_file() else None
    file = told.get("notes", {}).get("file") if isinstance(told, dict) else None
    return path / file if isinstance(file, str) and (path / file).exists() else path


def _open(path: Path, how: LinkageSettings, notes: NotesSettings) -> OpenedCorpus:
    match = how.attack.match
    return open_corpus(path, notes, keep=() if match in (None, "patient") else (match,))
