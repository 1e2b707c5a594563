"""`clinveil attack membership`: Tell whose notes a model was trained on, from it or from its synthetic notes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks.models._without_model import model_of_text
from clinveil.attacks.models.membership import infer_membership
from clinveil.cli.command import Run, command
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import DEVICE, QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.corpus.open import open_corpus
from clinveil.lm.model import LanguageModel, load_model
from clinveil.lm.notes import PlainNotes, read_notes
from clinveil.releases.synthesis_model import split_as_before

Training = Annotated[Path, typer.Argument(help="The notes that the model was trained on.")]
HeldOut = Annotated[
    Path | None,
    typer.Argument(help="Notes of patients kept from training (default: as the synthetic release split NOTES)."),
]
Model = Annotated[Path | None, typer.Option("--from", help="Attack this model: vault/model of a synthetic release.")]
Synthetic = Annotated[Path | None, typer.Option("--synthetic", help="Attack these synthetic notes alone.")]
Reference = Annotated[Path | None, typer.Option("--reference", help="Notes of third patients: the calibrated attack.")]


class MembershipSettings(Settings):
    """Settings of `clinveil attack membership`."""

    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    prepared: bool = flag(False, "All notes are in MedText's form already.")
    most: int = flag(2_000, "Notes of each side at most, a random sample of patients.", ge=20)
    device: str = DEVICE


@command("attack membership", MembershipSettings, flags="seed", findings=True)
def membership(
    run: Run[MembershipSettings],
    training: Training,
    held_out: HeldOut = None,
    model: Model = None,
    synthetic: Synthetic = None,
    reference: Reference = None,
) -> None:
    """Tell members from others by the model's loss; beside it a blind attacker who has no model at all."""
    how = run.settings
    if model is None and synthetic is None:
        raise UsageError("there is nothing to attack", hint="--from MODEL or --synthetic NOTES")
    attacked, split = _attacked(model, synthetic, how.device)
    sides = _sides(how, training, held_out, split, model.name if model else "--from")
    third = _read(reference, how) if reference else None
    found = _attack(attacked, sides, third, run.seed, how.most)
    others = held_out.name if held_out else "those kept aside"
    run.show(found, f"members of {training.name} against {others} (seed {run.seed}; 0.5 is chance)")


def _attacked(model: Path | None, synthetic: Path | None, device: str) -> tuple[dict[str, LanguageModel], object]:
    """What is attacked, by name; and how the model's notes were split."""
    attacked: dict[str, LanguageModel] = {}
    split: object = None
    if model is not None:
        attacked["the model"], about = load_model(model, device=device)
        split = about.get("split")
    if synthetic is not None:  # in MedText's form, under the columns that we give them
        attacked["released notes"] = model_of_text(read_notes(open_corpus(synthetic), prepared=True))
    return attacked, split


def _sides(
    how: MembershipSettings, training: Path, held_out: Path | None, split: object, name: str
) -> tuple[PlainNotes, PlainNotes]:
    """Members and others: as given, or as the synthetic release split them."""
    notes = _read(training, how)
    if held_out is not None:
        return notes, _read(held_out, how)
    before = split_as_before(notes, split, name)
    return before.training, before.held_out


def _attack(
    attacked: dict[str, LanguageModel],
    sides: tuple[PlainNotes, PlainNotes],
    third: PlainNotes | None,
    seed: int,
    most: int,
) -> list[Finding]:
    """All findings; the blind attacker, who is the same for all, once."""
    found: list[Finding] = []
    for name, one in attacked.items():
        blind = next((f for f in found if f.measure == "attack.membership_blind"), None)
        more = {"reference": third, "detail": {"from": name}, "blind": blind, "most": most}
        own = infer_membership(one, *sides, default_rng(seed), **more)  # type: ignore[arg-type]
        found += own[1:] if blind else own
    return found


def _read(path: Path, how: MembershipSettings) -> PlainNotes:
    return read_notes(open_corpus(path, how.notes), prepared=how.prepared)
