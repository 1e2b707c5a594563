"""`clinveil attack membership`: whose notes was it trained on? From a model, or from its synthetic notes alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.settings import NotesSettings, RunSettings, flag

if TYPE_CHECKING:
    from clinveil.lm.notes import PlainNotes

app = typer.Typer(add_completion=False)
Training = Annotated[Path, typer.Argument(help="The notes that the model was trained on.")]
HeldOut = Annotated[Path, typer.Argument(help="Notes of other patients, kept from training.")]
Model = Annotated[Path | None, typer.Option("--from", help="Attack this model: OUT.vault/model of synthesize.")]
Synthetic = Annotated[Path | None, typer.Option("--synthetic", help="Attack these synthetic notes alone.")]
Reference = Annotated[Path | None, typer.Option("--reference", help="Notes of third patients: the calibrated attack.")]


class MembershipSettings(RunSettings, NotesSettings):
    """Everything that `clinveil attack membership` can be told."""

    prepared: bool = flag(False, "All notes are in MedText's form already.")
    most: int = flag(2_000, "Notes of each side at most, a random sample of patients.", ge=20)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")


@settings_command(app, MembershipSettings, name="membership", without=frozenset({"label", "keep", "force", "workers"}))
def membership(
    settings: MembershipSettings,
    training: Training,
    held_out: HeldOut,
    model: Model = None,
    synthetic: Synthetic = None,
    reference: Reference = None,
    json: JsonOut = None,
) -> None:
    """Tell members from others by the model's loss; beside it a blind attacker who has no model at all."""
    import secrets

    import numpy as np

    from clinveil.attack.audits.membership_run import infer_membership
    from clinveil.attack.audits.text_model import model_of_text
    from clinveil.cli.findings import say_findings
    from clinveil.corpus.open import open_corpus
    from clinveil.errors import UsageError
    from clinveil.finding import Finding
    from clinveil.lm.checkpoint import load_model
    from clinveil.lm.notes import read_notes

    if model is None and synthetic is None:
        raise UsageError("there is nothing to attack", remedy="--from MODEL or --synthetic NOTES")
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed

    def read(path: Path) -> PlainNotes:
        return read_notes(open_corpus(path, settings), prepared=settings.prepared)

    sides = read(training), read(held_out)
    third = read(reference) if reference else None
    found: list[Finding] = []
    for name, path in (("the model", model), ("released notes", synthetic)):
        if path is not None:
            attacked = load_model(path, device=settings.device)[0] if path == model else model_of_text(_own(path))
            rng = np.random.default_rng(seed)
            found += infer_membership(attacked, *sides, rng, reference=third, detail={"from": name}, most=settings.most)
    title = f"members of {training.name} against {held_out.name} (seed {seed}; 0.5 is chance)"
    say_findings("attack membership", found, seed=seed, json_out=json, title=title)


def _own(path: Path) -> PlainNotes:
    """Synthetic notes are in MedText's form, under the columns that we give them."""
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    return read_notes(open_corpus(path), prepared=True)
