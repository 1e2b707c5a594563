"""What a release will do and how long it should take, from one look at the notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.estimate import estimate
from clinveil.releases.settings import ReleaseSettings

CHARACTERS_PER_WORD = 6.6  # of MTSamples, punctuation and spaces included
HEAPS = (44.0, 0.445)  # word types = 44 · words^0.445, fitted on MTSamples
SMALL = 50


@dataclass(frozen=True, slots=True)
class Preflight:
    """What one validating pass over the notes found.

    Attributes:
        rows: notes read. patients: distinct patient ids. null: notes without text. empty: notes of no characters.
        characters: code points in all. skipped: rows that the source's preset leaves out, by reason.
    """

    rows: int
    patients: int
    null: int
    empty: int
    characters: int
    skipped: Counter[str]

    @property
    def read(self) -> int:
        """All rows of the source, those that its preset leaves out included."""
        return self.rows + self.skipped.total()

    @property
    def tokens(self) -> int:
        """Estimated words."""
        return round(self.characters / CHARACTERS_PER_WORD)


def preflight(corpus: Corpus) -> Preflight:
    """Read all notes once: count them, and let a broken file fail before anything is made. Raises InputError."""
    rows = null = empty = characters = 0
    patients: set[int] = set()
    for batch in corpus.batches():
        text = batch.column("text")
        lengths = pc.utf8_length(text)
        rows += batch.num_rows
        null += text.null_count
        empty += int(pc.sum(pc.equal(lengths, 0)).as_py() or 0)
        characters += int(pc.sum(lengths).as_py() or 0)
        patients.update(map(hash, batch.column("patient_id").unique().to_pylist()))
    if not rows:
        raise InputError("there is no note in it", remedy="name a file with at least one row")
    return Preflight(rows, len(patients), null, empty, characters, Counter(getattr(corpus, "skipped", {})))


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One stage: what it does, and how long it should take (seconds, one figure for this many workers)."""

    stage: str
    what: str
    seconds: float


def plan(found: Preflight, settings: ReleaseSettings) -> list[PlanRow]:
    """The stages of a release with their estimated times."""
    vectors, types = settings.vectors, round(HEAPS[0] * max(found.tokens, 1) ** HEAPS[1])
    said = {
        "read and count": "count words and the patients who use them",
        "replace PHI": f"find PHI and {settings.identifiers.mode} it",
        "train vectors": f"{vectors.algorithm}, {vectors.dim} dimensions, {vectors.epochs} epochs",
        "find neighbours": f"the {settings.channel.n.high} nearest words of about {types:,}",
        "replace words": f"every word, by one of N {settings.channel.n}",
        "check and report": "read the release back, attack it, measure utility",
    }
    stages = estimate(
        found.tokens,
        types,
        workers=settings.workers,
        phi=settings.phi,
        algorithm=vectors.algorithm,
        epochs=vectors.epochs,
        dim=vectors.dim,
    ).stages
    return [PlanRow(name, said[name], seconds) for name, seconds in stages.items() if seconds]


def require_patients(found: Preflight, settings: ReleaseSettings) -> None:
    """Refuse notes of fewer than 50 patients (paper A: not for small data sets). Raises InputError."""
    if found.patients < SMALL and not settings.channel.allow_small:
        raise InputError(
            f"{found.patients} patients are too few: with so few, a replacement says whose note it is",
            remedy=f"bring at least {SMALL}, or take the risk with --allow-small",
        )
