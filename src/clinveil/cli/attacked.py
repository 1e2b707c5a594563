"""The models that an attack command is given: vectors, word counts, a printed seed, and a label for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clinveil.core.finding import Finding

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.core.settings import NotesSettings
    from clinveil.core.types import Say
    from clinveil.vectors.table import Vectors


@dataclass(frozen=True)
class Attacked:
    """One model under attack.

    Attributes:
        label: which it is among several, "" for the only one; no path.
        counts: occurrences of words in the notes, where the vectors carry none and notes were given.
        seed: the public seed of the measuring, the same for all models.
    """

    label: str
    vectors: Vectors
    counts: dict[str, int] | None
    seed: int

    @property
    def rng(self) -> Generator:
        """A fresh generator, the same for every model, so that they are compared on the same draws."""
        import numpy as np

        return np.random.default_rng(self.seed)

    def named(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the model's label in their details, where there are several models."""
        if not self.label:
            return list(findings)
        return [replace(finding, detail={**finding.detail, "model": self.label}) for finding in findings]


def attacked(paths: Sequence[Path], notes: Path | None, reading: NotesSettings, seed: int, say: Say) -> list[Attacked]:
    """Load the vectors of an attack; counts are made of the notes only where some vectors carry none.

    Raises InputError for vectors or notes that cannot be read.
    """
    from clinveil.vectors.files import load_vectors

    say(f"seed {seed} (public: --seed {seed} gives the same numbers again)")
    loaded = [load_vectors(path) for path in paths]
    wanting = any(vectors.counts is None for vectors in loaded)
    counts = _counts(notes, reading) if wanting and notes is not None else None
    if wanting and notes is None:
        typer.echo("clinveil: vectors without word counts: name frequency is not kept (give --notes)", err=True)
    return [
        Attacked(_label(place, vectors) if len(loaded) > 1 else "", vectors, counts, seed)
        for place, vectors in enumerate(loaded, 1)
    ]


def _counts(notes: Path, settings: NotesSettings) -> dict[str, int]:
    import tempfile

    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.count import count_words

    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counted = count_words(open_corpus(notes, settings), Path(scratch))
        return dict(zip(counted.words, counted.counts.tolist(), strict=True))


def _label(place: int, vectors: Vectors) -> str:
    meta = vectors.meta
    said = (
        meta.get("algorithm", "imported"),
        f"window {meta['window']}" if "window" in meta else "",
        f"{vectors.dim}d",
    )
    return f"{place}: " + " ".join(str(part) for part in said if part)
