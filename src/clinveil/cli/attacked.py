"""The models that an attack command is given: vectors, word counts, and a printed seed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

if TYPE_CHECKING:
    from clinveil.core.settings import NotesSettings
    from clinveil.vectors.count import WordCounts
    from clinveil.vectors.table import Vectors


class _Settings(Protocol):
    @property
    def seed(self) -> int | None: ...

    @property
    def quiet(self) -> bool: ...


def attacked(
    paths: Sequence[Path], notes: Path | None, settings: NotesSettings
) -> tuple[list[Vectors], WordCounts | None, int]:
    """The vectors of an attack, counts of the notes where some vectors carry none, and the public seed.

    Raises InputError for vectors or notes that cannot be read.
    """
    from clinveil.vectors.files import load_vectors

    run: _Settings = settings  # type: ignore[assignment]
    seed = secrets.randbelow(2**32) if run.seed is None else run.seed
    if not run.quiet:
        typer.echo(f"seed {seed} (public: --seed {seed} gives the same numbers again)", err=True)
    loaded = [load_vectors(path) for path in paths]
    wanting = any(vectors.counts is None for vectors in loaded)
    counts = _counts(notes, settings) if wanting and notes is not None else None
    if wanting and notes is None:
        typer.echo("clinveil: vectors without word counts: name frequency is not kept (give --notes)", err=True)
    return loaded, counts, seed


def _counts(notes: Path, settings: NotesSettings) -> WordCounts:
    import tempfile

    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.count import count_words

    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        return count_words(open_corpus(notes, settings), Path(scratch))
