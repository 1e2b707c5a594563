"""`clinveil attack membership`: whose notes was it trained on? From a model, or from its synthetic notes alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group

if TYPE_CHECKING:
    from clinveil.core.finding import Finding
    from clinveil.lm.model import LanguageModel
    from clinveil.lm.notes import PlainNotes

app = typer.Typer(add_completion=False)
Training = Annotated[Path, typer.Argument(help="The notes that the model was trained on.")]
HeldOut = Annotated[
    Path | None,
    typer.Argument(help="Notes of other patients, kept from training; without it NOTES are those given to synthesize."),
]
Model = Annotated[Path | None, typer.Option("--from", help="Attack this model: OUT.vault/model of synthesize.")]
Synthetic = Annotated[Path | None, typer.Option("--synthetic", help="Attack these synthetic notes alone.")]
Reference = Annotated[Path | None, typer.Option("--reference", help="Notes of third patients: the calibrated attack.")]


class MembershipSettings(Settings):
    """Everything that `clinveil attack membership` can be told."""

    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    prepared: bool = flag(False, "All notes are in MedText's form already.")
    most: int = flag(2_000, "Notes of each side at most, a random sample of patients.", ge=20)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")


@settings_command(app, MembershipSettings, name="membership")
def membership(
    settings: MembershipSettings,
    training: Training,
    held_out: HeldOut = None,
    model: Model = None,
    synthetic: Synthetic = None,
    reference: Reference = None,
    json: JsonOut = None,
) -> None:
    """Tell members from others by the model's loss; beside it a blind attacker who has no model at all."""
    import secrets

    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError

    if model is None and synthetic is None:
        raise UsageError("there is nothing to attack", remedy="--from MODEL or --synthetic NOTES")
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    attacked, split = _attacked(model, synthetic, settings.device)
    sides = _sides(settings, training, held_out, split, model.name if model else "--from")
    third = _read(reference, settings) if reference else None
    found = _attack(attacked, sides, third, seed, settings.most)
    others = held_out.name if held_out else "those kept aside"
    title = f"members of {training.name} against {others} (seed {seed}; 0.5 is chance)"
    say_findings("attack membership", found, seed=seed, json_out=json, title=title)


def _attacked(
    model: Path | None, synthetic: Path | None, device: str
) -> tuple[list[tuple[str, LanguageModel]], object]:
    """What is attacked, by name; and how the model's notes were split."""
    from clinveil.attacks.models._from_text import model_of_text
    from clinveil.lm.checkpoint import load_model

    attacked: list[tuple[str, LanguageModel]] = []
    split: object = None
    if model is not None:
        loaded, about = load_model(model, device=device)
        attacked.append(("the model", loaded))
        split = about.get("split")
    if synthetic is not None:
        attacked.append(("released notes", model_of_text(_own(synthetic))))
    return attacked, split


def _sides(
    settings: MembershipSettings, training: Path, held_out: Path | None, split: object, name: str
) -> tuple[PlainNotes, PlainNotes]:
    """Members and others: as given, or as `synthesize` split them."""
    from clinveil.releases.producers.synthesis.trained import split_as_before

    notes = _read(training, settings)
    if held_out is not None:
        return notes, _read(held_out, settings)
    before = split_as_before(notes, split, name)
    return before.training, before.held_out


def _attack(
    attacked: list[tuple[str, LanguageModel]],
    sides: tuple[PlainNotes, PlainNotes],
    third: PlainNotes | None,
    seed: int,
    most: int,
) -> list[Finding]:
    """All findings; the blind attacker, who is the same for all, once."""
    import numpy as np

    from clinveil.attacks.models.membership import infer_membership

    found: list[Finding] = []
    for name, one in attacked:
        rng, detail = np.random.default_rng(seed), {"from": name}
        blind = next((f for f in found if f.measure == "attack.membership_blind"), None)
        own = infer_membership(one, *sides, rng, reference=third, detail=detail, blind=blind, most=most)
        found += own[1:] if blind else own
    return found


def _read(path: Path, settings: MembershipSettings) -> PlainNotes:
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    return read_notes(open_corpus(path, settings.notes), prepared=settings.prepared)


def _own(path: Path) -> PlainNotes:
    """Synthetic notes are in MedText's form, under the columns that we give them."""
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    return read_notes(open_corpus(path), prepared=True)
