"""`clinveil evaluate similarity`: word vectors against people's judgements of word pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group

if TYPE_CHECKING:
    from clinveil.core.finding import Finding
    from clinveil.vectors.table import Vectors

app = typer.Typer(add_completion=False)
VectorFile = Annotated[Path, typer.Argument(help="Vectors: a folder of clinveil embed, .vec, .txt or .bin.")]
Pairs = Annotated[list[Path], typer.Option("--pairs", help="A list of word pairs: two terms and a score; repeatable.")]
Subwords = Annotated[
    Path | None, typer.Option("--subwords", help="fastText vectors of the same text, for words without a vector.")
]
Notes = Annotated[Path | None, typer.Option("--notes", help="The real training notes: clinicalnlp counts words there.")]


class SimilaritySettings(Settings):
    """Everything that `clinveil evaluate similarity` can be told."""

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


@settings_command(app, SimilaritySettings, name="similarity")
def similarity(
    settings: SimilaritySettings,
    vectors: VectorFile,
    pairs: Pairs,
    subwords: Subwords = None,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Correlate the cosines of word pairs with people's scores of them, with coverage, interval, chance and control."""
    import secrets

    import numpy as np

    from clinveil.cli.findings import say_findings
    from clinveil.utility import similarity as room
    from clinveil.utility.pairs import read_pairs
    from clinveil.vectors.files import load_vectors

    _refuse_the_others_options(settings, notes, subwords)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    lists = [read_pairs(path, any_size=settings.any_size) for path in pairs]
    loaded = load_vectors(vectors)
    unknown = load_vectors(subwords) if subwords else loaded if loaded.subwords is not None else None
    counts = _counts(notes, settings, loaded)
    findings = [
        finding
        for one in lists
        for finding in room.similarity(
            loaded,
            one,
            np.random.default_rng(seed),
            room.SimilarityTask(
                protocol=settings.protocol,
                subwords=unknown,
                frequencies=counts,
                min_count=settings.min_count,
                missing=settings.missing,
                draws=settings.draws,
            ),
        )
    ]
    title = f"{vectors.name}, protocol {settings.protocol} (seed {seed})"
    say_findings("evaluate similarity", findings, seed=seed, json_out=json, title=title)
    if not json:
        for line in dict.fromkeys(map(_counted, findings)):
            typer.echo(line)


def _refuse_the_others_options(settings: SimilaritySettings, notes: Path | None, subwords: Path | None) -> None:
    from clinveil.core.errors import UsageError

    if settings.protocol == "jamia" and notes:
        raise UsageError("--notes is for clinicalnlp: jamia counts no words")
    if settings.protocol == "clinicalnlp" and subwords:
        raise UsageError("--subwords is for jamia: clinicalnlp draws similarities that are missing")


def _counted(finding: Finding) -> str:
    """What became of the pairs of a list."""
    d = finding.detail
    name = ", ".join(str(d[key]) for key in ("list", "series") if d.get(key))
    return (
        f"{name}: {d['pairs']} pairs, {d['asked']} asked for ({d['single']} of single words), {d['covered']} covered "
        f"({d['by_subwords']} by subwords, {d['partial']} with a word lacking); of the rest {d['left_out']} left out, "
        f"{d['random']} at random, {d['zero']} as 0"
    )


def _counts(notes: Path | None, settings: SimilaritySettings, vectors: Vectors) -> dict[str, int] | None:
    """Words of the real notes; without them those of the vectors' own training notes, which is said."""
    if settings.protocol != "clinicalnlp":
        return None
    if notes is None:
        if vectors.counts is None:
            return None
        typer.echo("clinveil: word counts are those of the vectors' own training notes (give --notes)", err=True)
        return dict(zip(vectors.words, vectors.counts.tolist(), strict=True))
    import tempfile

    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.count import count_words

    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counted = count_words(open_corpus(notes, settings.notes), Path(scratch))
        return dict(zip(counted.words, counted.counts.tolist(), strict=True))
