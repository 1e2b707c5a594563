"""`clinveil evaluate similarity`: Word vectors against people's judgements of word pairs, as paper A or C does."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import VectorFile
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.corpus.open import open_corpus
from clinveil.utility.pairs import read_pairs
from clinveil.utility.similarity import SimilarityTask
from clinveil.utility.similarity import similarity as measure
from clinveil.vectors.count import count_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.table import Vectors

Pairs = Annotated[list[Path], typer.Option("--pairs", help="A list of word pairs: two terms and a score; repeatable.")]
Subwords = Annotated[
    Path | None, typer.Option("--subwords", help="fastText vectors of the same text, for words without a vector.")
]
Notes = Annotated[Path | None, typer.Option("--notes", help="The real training notes: clinicalnlp counts words there.")]


class SimilaritySettings(Settings):
    """Settings of `clinveil evaluate similarity`."""

    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    protocol: Literal["jamia", "clinicalnlp"] = flag("jamia", "Paper A's protocol (Pearson), or paper C's (Spearman).")
    missing: Literal["exclude", "random", "zero"] | None = flag(
        None, "Pairs without a similarity: left out (jamia's default), drawn at random (clinicalnlp's), or 0."
    )
    min_count: int = flag(20, "clinicalnlp: both words occur so often in the real notes.", ge=1)
    any_size: bool = flag(False, "Take a published list also where rows are missing.")
    draws: int = flag(1_000, "Draws of the bootstrap over pairs.", ge=100)


@command("evaluate similarity", SimilaritySettings, flags="protocol seed", findings=True)
def similarity(
    run: Run[SimilaritySettings], vectors: VectorFile, pairs: Pairs, subwords: Subwords = None, notes: Notes = None
) -> None:
    """Correlate the cosines of word pairs with people's scores of them, with coverage, interval, chance and control."""
    how = run.settings
    if how.protocol == "jamia" and notes:
        raise UsageError("--notes is for clinicalnlp: jamia counts no words")
    if how.protocol == "clinicalnlp" and subwords:
        raise UsageError("--subwords is for jamia: clinicalnlp draws similarities that are missing")
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
    """What became of the pairs of a list."""
    d = finding.detail
    name = ", ".join(str(d[key]) for key in ("list", "series") if d.get(key))
    return (
        f"{name}: {d['pairs']} pairs, {d['asked']} asked for ({d['single']} of single words), {d['covered']} covered "
        f"({d['by_subwords']} by subwords, {d['partial']} with a word lacking); of the rest {d['left_out']} left out, "
        f"{d['random']} at random, {d['zero']} as 0"
    )


def _counts(notes: Path | None, how: SimilaritySettings, vectors: Vectors) -> dict[str, int] | None:
    """Words of the real notes; without them those of the vectors' own training notes, which is said."""
    if how.protocol != "clinicalnlp" or (notes is None and vectors.counts is None):
        return None
    if notes is None and vectors.counts is not None:
        say("clinveil: word counts are those of the vectors' own training notes (give --notes)")
        return dict(zip(vectors.words, vectors.counts.tolist(), strict=True))
    assert notes is not None
    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counted = count_words(open_corpus(notes, how.notes), Path(scratch))
        return dict(zip(counted.words, counted.counts.tolist(), strict=True))
