"""`clinveil evaluate perplexity`: how well a language model predicts real notes (paper C, Table 2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.lm.recipe import ModelSettings
from clinveil.settings import NotesSettings, RunSettings, flag

if TYPE_CHECKING:
    from clinveil.lm.model import LanguageModel

app = typer.Typer(add_completion=False)
Train = Annotated[Path | None, typer.Option("--train", help="Train on these notes: real ones, or synthetic ones.")]
Model = Annotated[Path | None, typer.Option("--from", help="Or take this model: OUT.vault/model of synthesize.")]


class PerplexitySettings(RunSettings, NotesSettings, ModelSettings):
    """Everything that `clinveil evaluate perplexity` can be told."""

    workers: int = flag(1, "Threads of PyTorch; with one, the same seed gives the same bits.", ge=1, le=1024)
    prepared: bool = flag(False, "All notes are in MedText's form already.")


@settings_command(app, PerplexitySettings, name="perplexity", without=frozenset({"label", "keep", "force"}))
def perplexity(
    settings: PerplexitySettings,
    notes: Annotated[Path, typer.Argument(help="Real notes to predict, of patients that the model did not see.")],
    train: Train = None,
    source: Model = None,
    json: JsonOut = None,
) -> None:
    """Perplexity a token, and bits a character, of notes under a model; a unigram of the same training beside it."""
    import secrets

    import numpy as np

    from clinveil.cli.findings import say_findings
    from clinveil.corpus.open import open_corpus
    from clinveil.errors import UsageError
    from clinveil.lm.model import fit_of
    from clinveil.lm.notes import encode, read_notes
    from clinveil.lm.ready import ready
    from clinveil.utility.perplexity import perplexity_findings

    if (train is None) == (source is None):
        raise UsageError("there is no model, or there are two", remedy="--train NOTES or --from MODEL, one of them")
    if source is None and settings.neural:
        from clinveil.neural import need_torch

        need_torch()
    seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
    test = read_notes(open_corpus(notes, settings), prepared=settings.prepared)
    model, floor = _models(settings, train, source, seed)
    control = None if floor is None else fit_of(floor, encode(test.texts, floor.vocabulary))
    with ready(model, threads=settings.workers):
        fit = fit_of(model, encode(test.texts, model.vocabulary))
    found = perplexity_findings(model, fit, "test", np.random.default_rng(seed), control=control)
    title = f"{model.kind} on {notes.name} (seed {seed}; lower is better)"
    say_findings("evaluate perplexity", found, seed=seed, json_out=json, title=title)


def _models(
    settings: PerplexitySettings, train: Path | None, source: Path | None, seed: int
) -> tuple[LanguageModel, LanguageModel | None]:
    """The model, given or trained; and for one trained here a unigram of the same notes."""
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.checkpoint import load_model
    from clinveil.lm.notes import encode, read_notes
    from clinveil.lm.train import make_vocabulary, train_model
    from clinveil.lm.unigram import train_unigram

    if source is not None:
        return load_model(source, device=settings.device)[0], None
    assert train is not None
    seen = read_notes(open_corpus(train, settings), prepared=settings.prepared)
    vocabulary = make_vocabulary(seen, settings)
    encoded = encode(seen.texts, vocabulary)
    say = _quiet if settings.quiet else _say
    model, _ = train_model(seen, encoded, vocabulary, settings, seed=seed, threads=settings.workers, say=say)
    return model, train_unigram(encoded, vocabulary)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _quiet(line: str) -> None:
    pass
