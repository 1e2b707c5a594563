"""`clinveil evaluate classification`: Compare classifiers on original and protected notes (paper A)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named
from clinveil.core.settings import LABEL, choice, flag, group
from clinveil.corpus.open import open_corpus
from clinveil.releases.crosswalk import source_notes
from clinveil.utility.classification import Comparison, compared, evaluate
from clinveil.utility.classifiers import ClassifierSettings, any_neural, classifiers
from clinveil.vectors.files import load_vectors

Original = Annotated[Path, typer.Argument(help="Original notes with the label.")]
ReleasedNotes = Annotated[Path | None, typer.Argument(help="Protected notes (default: score the original notes).")]
Plain = Annotated[Path | None, typer.Option("--vectors", help="Word vectors of the original text, for networks.")]
Protected = Annotated[
    Path | None, typer.Option("--released-vectors", help="Word vectors of the protected text, for networks.")
]
ReleaseVault = Annotated[Path | None, typer.Option("--vault", help="Vault of the release, if ids were replaced.")]


class ClassificationSettings(MeasureSettings):
    """Settings of `clinveil evaluate classification`."""

    training: ClassifierSettings = group(ClassifierSettings)
    label: tuple[str, ...] = LABEL
    model: tuple[str, ...] = choice(classifiers, ("lr",), "Classifiers; repeatable.")
    setting: Literal["protected", "vectors-on-plain", "plain-vectors-on-protected"] = flag(
        "protected", "Train and test on protected text, or a transfer of the paper (networks)."
    )
    seeds: int = flag(3, "Runs of each network; the mean is reported.", ge=1, le=100)
    control: bool = flag(True, "Also train on shuffled labels.")


@command("evaluate classification", ClassificationSettings, flags="label model seed", findings=True)
def classification(
    run: Run[ClassificationSettings],
    original: Original,
    released: ReleasedNotes = None,
    vectors: Plain = None,
    released_vectors: Protected = None,
    vault: ReleaseVault = None,
) -> None:
    """Train classifiers on both sides with one split by patient; report F1, accuracy, loss, chance and control."""
    how = run.settings
    if not how.label:
        raise UsageError("no label to classify by", hint="pass --label COLUMN")
    if any_neural(how.model):
        device_named(how.training.device)
    found: list[Finding] = []
    for label in how.label:
        found += _by_label(run, label, original, released, (vectors, released_vectors), vault)
    if released is None:
        found = [finding for finding in found if finding.detail.get("side") == "original"]
    run.show(found, f"{original.name} against {released.name if released else 'itself'} (seed {run.seed})")


def _by_label(
    run: Run[ClassificationSettings],
    label: str,
    original: Path,
    released: Path | None,
    vectors: tuple[Path | None, Path | None],
    vault: Path | None,
) -> list[Finding]:
    how, rng = run.settings, run.rng()
    other = open_corpus(released, how.notes.but(preset="none")) if released else None
    task = evaluate(
        open_corpus(original, how.notes, label=how.label).batches(),
        other.batches() if other else None,
        label,
        rng,
        how.training,
        crosswalk=source_notes(vault) if vault else None,
    )
    start, other_start = (load_vectors(path) if path else None for path in vectors)
    comparison = Comparison(how.setting, start, other_start, how.seeds, how.control)
    found: list[Finding] = []
    for model in how.model:
        run.say(f"{label}: {model} on {len(task.labelled)} notes")
        found += compared(task, model, rng, how.training, comparison)
    return found
