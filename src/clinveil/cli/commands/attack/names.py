"""`clinveil attack names`: which name tokens of released vectors belong to one person."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import Settings, flag

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.attacks.vectors.distances import Metric
    from clinveil.attacks.vectors.name_ranking import NameRanking
    from clinveil.attacks.vectors.name_tokens import NameTokens
    from clinveil.core.finding import Finding
    from clinveil.vectors.table import Vectors

app = typer.Typer(add_completion=False)
Names = list[tuple[str, ...]]
Say = Callable[[str], None]


class NamesAttackSettings(Settings):
    """Everything that `clinveil attack names` can be told."""

    metric: tuple[str, ...] = flag(("cosine",), "cosine, cityblock or euclidean; repeatable.")
    k: int = flag(600, "Length of the list of pairs that the attacker takes for names (paper B: 600).", ge=1)
    draws: int = flag(9999, "Re-pairings of the true names, for the control and the P.", ge=19)
    find_names: bool = flag(False, "Also measure the attacker who must pick the name tokens out of the vocabulary.")
    surrogates: Path | None = flag(None, "Surrogate names that stand among the real ones (surrogates.parquet).")
    workers: int = flag(2, "Threads; the result is the same for any number.", ge=1, le=1024)
    seed: int | None = flag(None, "Public seed of re-pairings and bootstrap (default: one is drawn and printed).", ge=0)
    quiet: bool = flag(False, "No messages on stderr.", short="-q")


@settings_command(app, NamesAttackSettings, name="names")
def names(
    settings: NamesAttackSettings,
    vectors: Annotated[list[Path], typer.Argument(help="Word vectors that are to be released; several are compared.")],
    names: Annotated[Path, typer.Option("--names", help="True names: a patients file, or one full name a line.")],
    json_out: JsonOut = None,
) -> None:
    """Pair the name tokens of word vectors into full names, by nearness (paper B, experiment 1)."""
    from numpy.random import default_rng

    from clinveil.cli.findings import file_names, say_findings

    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    say: Say = (lambda line: None) if settings.quiet else (lambda line: typer.echo(line, err=True))
    say(f"seed {seed}")
    found = _attack(settings, vectors, names, default_rng(seed), say)
    title = f"names in {file_names(vectors)} (seed {seed}; lower is safer)"
    say_findings("attack names", found, seed=seed, json_out=json_out, title=title)


def _attack(settings: NamesAttackSettings, paths: list[Path], truth: Path, rng: Generator, say: Say) -> list[Finding]:
    from clinveil.attacks.vectors.name_ranking import rank_names
    from clinveil.attacks.vectors.name_tokens import NameTokens
    from clinveil.attacks.vectors.names import Lengths, attack_names

    metrics = _metrics(settings)
    people = _read(truth)
    others = _read(settings.surrogates) if settings.surrogates else []
    names = NameTokens(people, also=others)
    most = Lengths.of(names, settings.k).most
    rankings: list[NameRanking] = []
    found: list[Finding] = []
    for label, model in _models(paths):
        rankings += [
            rank_names(model, names, metric, most, threads=settings.workers, label=label) for metric in metrics
        ]
        _say_left_out(model, names, say)
        if settings.find_names:
            found += _picked(settings, model, names, people, label, rng)
    found = attack_names(names, rankings, rng, k=settings.k, draws=settings.draws) + found
    if others:
        found += _leaked(settings, people, others, rankings, rng)
    return found


def _picked(
    settings: NamesAttackSettings, model: Vectors, names: NameTokens, people: Names, label: str, rng: Generator
) -> Iterator[Finding]:
    """How well name tokens are picked out of the vocabulary, and the attack on what was picked."""
    from clinveil.attacks.vectors.find_names import find_names, score_found
    from clinveil.attacks.vectors.picked_names import attack_picked_names

    threads = settings.workers
    picked = find_names(model, threads=threads)
    yield from score_found(model, picked, names, rng, threads=threads)
    more = {"k": settings.k, "draws": settings.draws, "threads": threads}
    for metric in _metrics(settings):
        yield from attack_picked_names(model, people, picked.words, metric, rng, label=label, **more)


def _leaked(
    settings: NamesAttackSettings, people: Names, others: Names, rankings: list[NameRanking], rng: Generator
) -> Iterator[Finding]:
    from clinveil.attacks.vectors.leaked_names import leaked_names
    from clinveil.attacks.vectors.name_tokens import NameTokens

    real, surrogates = NameTokens(people, also=others), NameTokens(others, also=people)
    for ranking in rankings:
        yield leaked_names(real, surrogates, ranking, settings.k, rng, draws=settings.draws)


def _read(path: Path) -> Names:
    """Full names; of a patients file one a patient, so that namesakes stay apart."""
    from clinveil.corpus.people import read_names, read_patients

    if path.suffix == ".parquet":
        return [patient.name for patient in read_patients(path).values()]
    return read_names(path)


def _models(paths: list[Path]) -> Iterator[tuple[str, Vectors]]:
    from clinveil.vectors.files import load_vectors

    for number, path in enumerate(paths, 1):
        model = load_vectors(path)
        parts = [f"{key} {model.meta[key]}" for key in ("window", "dim") if key in model.meta]
        yield " ".join([f"#{number}", str(model.meta.get("algorithm", "imported")), *parts]), model


def _metrics(settings: NamesAttackSettings) -> list[Metric]:
    """The metrics asked for, each once."""
    from clinveil.attacks.vectors.distances import METRICS
    from clinveil.core.errors import UsageError

    if unknown := set(settings.metric) - set(METRICS):
        raise UsageError(f"unknown metric {min(unknown)!r}", remedy="one of " + ", ".join(METRICS))
    return [metric for metric in METRICS if metric in settings.metric]


def _say_left_out(model: Vectors, names: NameTokens, say: Say) -> None:
    """Name tokens without a vector, names of one token: said, and counted in the findings."""
    missing = sum(form not in model.ids for form in names.forms)
    if missing:
        say(f"{missing} of {len(names.forms)} name tokens have no vector: they cannot be found, and lower the numbers")
    if names.lone:
        say(f"{names.lone} of {names.n_names} names have one token only: there is no pair to find")
