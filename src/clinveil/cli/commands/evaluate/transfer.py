"""`clinveil evaluate transfer`: Train on a release and test on real notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named
from clinveil.core.settings import LABEL, QUIET, WORKERS, NotesSettings, Settings, choice, flag, group
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.open import open_corpus
from clinveil.releases.crosswalk import source_notes
from clinveil.utility.classifiers import any_neural, classifiers
from clinveil.utility.release import UTILITY_SEED, useful
from clinveil.utility.tasks.notes import Sides

Original = Annotated[Path, typer.Argument(help="Real notes to test on: a file or a folder.")]
ReleasedNotes = Annotated[Path, typer.Argument(help="Released notes to train on.")]
Pairs = Annotated[list[Path] | None, typer.Option("--pairs", help="Word pairs with human scores; repeatable.")]
ReleaseVault = Annotated[Path | None, typer.Option("--vault", help="Vault of the release, if ids were replaced.")]


class TransferSettings(Settings):
    """Settings of `clinveil evaluate transfer`."""

    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    workers: int = WORKERS
    quiet: bool = QUIET
    model: tuple[str, ...] = choice(classifiers, ("tfidf-lr",), "Classifiers; repeatable.")
    unpaired: bool = flag(False, "Released notes are of other patients; both files have the label.")


@command("evaluate transfer", TransferSettings, flags="label model unpaired", findings=True)
def transfer(
    run: Run[TransferSettings],
    original: Original,
    released: ReleasedNotes,
    pairs: Pairs = None,
    vault: ReleaseVault = None,
) -> None:
    """Train on a release, test on real notes: classifiers, negation, language model, word vectors.

    Each value is a share of the gap between a floor and a ceiling (models trained on real notes).
    """
    how = run.settings
    if how.unpaired and vault:
        raise UsageError("--unpaired and --vault exclude each other", hint="pass one of them")
    if any_neural(how.model):
        device_named("cpu")
    real = open_corpus(original, how.notes, label=how.label)
    label = how.label if how.unpaired else ()
    other = open_corpus(released, how.notes.but(preset="none"), label=label)
    notes = source_notes(vault) if vault else None if how.unpaired else _same_ids(real, other)
    sides = Sides(real, other, notes=notes, workers=how.workers)
    findings = useful(sides, how.label, how.model, pairs or ())
    run.show(findings, f"{released.name} tested on {original.name}", seed=UTILITY_SEED)
    if not run.json:
        for line in filter(None, map(_scores, findings)):
            typer.echo(line)


def _same_ids(real: Corpus, released: Corpus) -> dict[str, str]:
    """Map each released id to itself. Raises InputError if the original notes have none of them."""
    ids = {note.note_id for note in rows(released)}
    if not any(note.note_id in ids for note in rows(real)):
        hint = "pass the release's vault with --vault, or --unpaired for notes of other patients"
        raise InputError("original and released have no note id in common", hint=hint)
    return {note: note for note in ids}


def _scores(finding: Finding) -> str:
    """Return the scores behind a share in one line, or "" if there are none."""
    detail = finding.detail
    if "score" not in detail:
        return ""
    name = ", ".join(str(detail[key]) for key in ("task", "label", "model", "list") if detail.get(key))
    line = f"{name}: {detail['metric']} {detail['score']:.3f}, floor {detail['floor']:.3f}"
    line += f", ceiling {detail['ceiling']:.3f}"
    if "of_ceiling" not in detail:
        return line
    value, low, high = (float(detail[f"of_ceiling{end}"] or 0) for end in ("", "_low", "_high"))
    return f"{line}; {value:.1%} of real ({low:.1%} to {high:.1%})"
