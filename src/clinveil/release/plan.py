"""What a release will do and how long it should take, from one look at the notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from clinveil.corpus.corpus import Corpus
from clinveil.errors import InputError
from clinveil.settings import ReleaseSettings

# Measured on one core of the development machine (benchmarks/README.md); the estimate says "about".
CHARACTERS_PER_TOKEN = 6.0
TOKENS_PER_SECOND = {"phi": 150_000.0, "count": 1_200_000.0, "train": 250_000.0, "obfuscate": 5_000_000.0}
CHECK_TOKENS_PER_SECOND = 200_000.0
NEIGHBOUR_PRODUCTS_PER_SECOND = 2.0e10
HEAPS = (44.0, 0.49)  # types = 44 · tokens^0.49, fitted on MTSamples
FIXED_SECONDS = 20.0
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
        """Estimated word tokens."""
        return round(self.characters / CHARACTERS_PER_TOKEN)


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
    tokens, workers = found.tokens, settings.workers
    types = HEAPS[0] * max(tokens, 1) ** HEAPS[1]
    passes = settings.epochs * (3.0 if settings.algorithm == "skipgram" else 1.0)
    rows = [
        PlanRow("phi", f"find PHI and {settings.mode} it", tokens / TOKENS_PER_SECOND["phi"] / workers),
        PlanRow("count", "count words and the patients who use them", tokens / TOKENS_PER_SECOND["count"]),
        PlanRow("vectors", _training(settings), passes * tokens / TOKENS_PER_SECOND["train"] / workers),
        PlanRow(
            "neighbours",
            f"the {settings.n.high} nearest words of about {types:,.0f}",
            types**2 * settings.dim / NEIGHBOUR_PRODUCTS_PER_SECOND / workers,
        ),
        PlanRow("obfuscate", f"replace every token, N {settings.n}", tokens / TOKENS_PER_SECOND["obfuscate"] / workers),
        PlanRow("check", "verify, attack, measure utility", FIXED_SECONDS + tokens / CHECK_TOKENS_PER_SECOND),
    ]
    return rows if settings.phi else rows[1:]


def _training(settings: ReleaseSettings) -> str:
    return f"train {settings.algorithm} vectors, {settings.dim} dimensions, {settings.epochs} epochs"


def require_patients(found: Preflight, settings: ReleaseSettings) -> None:
    """Refuse notes of fewer than 50 patients (paper A: not for small data sets). Raises InputError."""
    if found.patients < SMALL and not settings.allow_small:
        raise InputError(
            f"{found.patients} patients are too few: with so few, a replacement says whose note it is",
            remedy=f"bring at least {SMALL}, or take the risk with --allow-small",
        )
