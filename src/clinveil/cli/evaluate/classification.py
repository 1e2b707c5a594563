"""`clinveil evaluate classification`: classifiers on the original and on the released notes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import LABEL, QUIET, SEED, NotesSettings, Settings, choice, flag, group
from clinveil.utility.classifiers import ClassifierSettings, classifiers

if TYPE_CHECKING:
    from clinveil.core.finding import Finding

app = typer.Typer(add_completion=False)
Original = Annotated[Path, typer.Argument(help="The original notes, with the label: a file or a folder.")]
ReleasedNotes = Annotated[Path | None, typer.Argument(help="The protected notes; without them the original is scored.")]
Plain = Annotated[Path | None, typer.Option("--vectors", help="Networks: word vectors of the original text.")]
Protected = Annotated[Path | None, typer.Option("--released-vectors", help="Networks: vectors of the protected text.")]
ReleaseVault = Annotated[Path | None, typer.Option("--vault", help="Vault of the release, where ids were replaced.")]


class ClassificationSettings(Settings):
    """Everything that `clinveil evaluate classification` can be told."""

    training: ClassifierSettings = group(ClassifierSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    seed: int | None = SEED
    quiet: bool = QUIET

    model: tuple[str, ...] = choice(classifiers, ("lr",), "Classifiers; repeatable.")
    setting: Literal["protected", "vectors-on-plain", "plain-vectors-on-protected"] = flag(
        "protected", "Train and test on protected text, or one of the paper's transfers (networks)."
    )
    seeds: int = flag(3, "Runs of each network; their mean counts.", ge=1, le=100)
    control: bool = flag(True, "Also train on shuffled labels.")


@settings_command(app, ClassificationSettings, name="classification")
def classification(
    settings: ClassificationSettings,
    original: Original,
    released: ReleasedNotes = None,
    vectors: Plain = None,
    released_vectors: Protected = None,
    vault: ReleaseVault = None,
    json: JsonOut = None,
) -> None:
    """Train classifiers on both sides with one split by patient: F1, accuracy, what was lost, chance and control."""
    import secrets

    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError
    from clinveil.core.neural import device_named
    from clinveil.utility.classifiers import any_neural

    if not settings.label:
        raise UsageError("no label to classify by", remedy="--label COLUMN")
    if any_neural(settings.model):
        device_named(settings.training.device)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    findings = [
        finding
        for label in settings.label
        for finding in _by_label(settings, label, seed, original, released, vectors, released_vectors, vault)
    ]
    title = f"{original.name} against {released.name if released else 'itself'} (seed {seed})"
    say_findings("evaluate classification", findings, seed=seed, json_out=json, title=title)


def _by_label(
    settings: ClassificationSettings,
    label: str,
    seed: int,
    original: Path,
    released: Path | None,
    vectors: Path | None,
    released_vectors: Path | None,
    vault: Path | None,
) -> list[Finding]:
    import numpy as np

    from clinveil.corpus.open import open_corpus
    from clinveil.utility.classification import Comparison, compared, evaluate
    from clinveil.vectors.files import load_vectors

    other = open_corpus(released, settings.notes.but(preset="none")) if released else None
    rng = np.random.default_rng(seed)
    task = evaluate(
        open_corpus(original, settings.notes, label=settings.label).batches(),
        other.batches() if other else None,
        label,
        rng,
        settings.training,
        crosswalk=_crosswalk(vault),
    )
    start, other_start = (load_vectors(path) if path else None for path in (vectors, released_vectors))
    how = Comparison(settings.setting, start, other_start, settings.seeds, settings.control)
    found = []
    for model in settings.model:
        if not settings.quiet:
            typer.echo(f"{label}: {model} on {len(task.labelled)} notes", err=True)
        found += compared(task, model, rng, settings.training, how)
    return found if released else [f for f in found if f.detail.get("side") == "original"]


def _crosswalk(vault: Path | None) -> dict[str, str] | None:
    if vault is None:
        return None
    from clinveil.releases.crosswalk import source_notes

    return source_notes(vault)
