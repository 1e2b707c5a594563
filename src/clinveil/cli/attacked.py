"""The models that an attack command is given: vectors, and word counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from clinveil.core.settings import NotesSettings
    from clinveil.vectors.count import WordCounts
    from clinveil.vectors.table import Vectors


def attacked(
    paths: Sequence[Path], notes: Path | None, reading: NotesSettings
) -> tuple[list[Vectors], WordCounts | None]:
    """The vectors of an attack, and the words of the notes where some vectors carry no counts.

    Raises InputError for vectors or notes that cannot be read.
    """
    from clinveil.vectors.files import load_vectors

    loaded = [load_vectors(path) for path in paths]
    wanting = any(vectors.counts is None for vectors in loaded)
    counts = _counts(notes, reading) if wanting and notes is not None else None
    if wanting and notes is None:
        typer.echo("clinveil: vectors without word counts: name frequency is not kept (give --notes)", err=True)
    return loaded, counts


def _counts(notes: Path, settings: NotesSettings) -> WordCounts:
    import tempfile

    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.count import count_words

    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        return count_words(open_corpus(notes, settings), Path(scratch))
