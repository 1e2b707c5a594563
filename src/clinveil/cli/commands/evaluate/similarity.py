"""`clinveil evaluate similarity`: Compare word vectors with human scores of word pairs (papers A, C)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings, VectorFile
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.corpus.open import open_corpus
from clinveil.utility.pairs import read_pairs
from clinveil.utility.similarity import SimilarityTask
from clinveil.utility.similarity import similarity as measure
from clinveil.vectors.count import count_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.table import Vectors

Pairs = Annotated[list[Path], typer.Option("--pairs", help="Word pairs: two terms and a score; repeatable.")]
Subwords = Annotated[
    Path | None, typer.Option("--subwords", help="fastText vectors of the same text, for missing words.")
]
Notes = Annotated[Path | None, typer.Option("--notes", help="Real notes, to count words (protocol clinicalnlp).")]


class SimilaritySettings(MeasureSettings):
    """Settings of `clinveil evaluate similarity`."""

    protocol: Literal["jamia", "clinicalnlp"] = flag("jamia", "Protocol of paper A (Pearson) or of paper C (Spearman).")
    missing: Literal["exclude", "random", "zero"] | None = flag(
        None, "Leave out pairs without a similarity (default of jamia), draw it at random (clinicalnlp), or use 0."
    )
    min_count: int = flag(20, "Minimum occurrences of both words in the real notes (clinicalnlp).", ge=1)
    any_size: bool = flag(False, "Accept a published list with missing rows.")
    draws: int = flag(1_000, "Bootstrap samples of the pairs.", ge=100)


@command("evaluate similarity", SimilaritySettings, flags="protocol seed", findings=True)
def similarity(
    run: Run[SimilaritySettings], vectors: VectorFile, pairs: Pairs, subwords: Subwords = None, notes: Notes = None
) -> None:
    """Correlate the cosines of word pairs with human scores; report coverage, interval, chance and control."""
    how = run.settings
    if how.protocol == "jamia" and notes:
        raise UsageError("--notes requires --protocol clinicalnlp")
    if how.protocol == "clinicalnlp" and subwords:
        raise UsageError("--subwords requires --protocol jamia")
    lists = [read_pairs(path, any_size=how.any_size) for path in pairs]
    loaded = load_vectors(vectors)
    unknown = load_vectors(subwords) if subwords else loaded if loaded.subwords is not None else None
    counts = _counts(notes, how, loaded)
    task = SimilarityTask(
        protocol=how.protocol,
        subwords=unknown,
        frequencies=counts,
        min_count=how.min_count,
        missing=how.missing,
        draws=how.draws,
    )
    findings = [finding for one in lists for finding in measure(loaded, one, run.rng(), task)]
    run.show(findings, f"{vectors.name}, protocol {how.protocol} (seed {run.seed})")
    if not run.json:
        for line in dict.fromkeys(map(_counted, findings)):
            typer.echo(line)


def _counted(finding: Finding) -> str:
    """Return one line on the coverage of a list."""
    d = finding.detail
    name = ", ".join(str(d[key]) for key in ("list", "series") if d.get(key))
    return (
        f"{name}: {d['pairs']} pairs, {d['asked']} used ({d['single']} of single words), {d['covered']} covered "
        f"({d['by_subwords']} by subwords, {d['partial']} with a missing word); others: {d['left_out']} left out, "
        f"{d['random']} at random, {d['zero']} as 0"
    )


def _counts(notes: Path | None, how: SimilaritySettings, vectors: Vectors) -> dict[str, int] | None:
    """Return word counts of the real notes, or of the training notes of the vectors, with a message."""
    if how.protocol != "clinicalnlp" or (notes is None and vectors.counts is None):
        return None
    if notes is None and vectors.counts is not None:
        say("clinveil: word counts are those of the vectors' training notes (pass --notes for others)")
        return dict(zip(vectors.words, vectors.counts.tolist(), strict=True))
    assert notes is not None
    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counted = count_words(open_corpus(notes, how.notes), Path(scratch))
        return dict(zip(counted.words, counted.counts.tolist(), strict=True))
