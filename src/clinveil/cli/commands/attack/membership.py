"""`clinveil attack membership`: Infer which notes a language model was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks.models.membership import RELEASED, infer_membership, model_of_text
from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import DEVICE, flag
from clinveil.corpus.open import open_corpus
from clinveil.lm.files import load_model
from clinveil.lm.model import LanguageModel, keeps_layout
from clinveil.lm.notes import PlainNotes, read_notes
from clinveil.releases.synthesis_model import split_as_before

Training = Annotated[Path, typer.Argument(help="Notes that the model was trained on.")]
HeldOut = Annotated[
    Path | None,
    typer.Argument(help="Notes not used for training (default: the split of the synthetic release)."),
]
Model = Annotated[Path | None, typer.Option("--from", help="Attack this model (vault/model of a synthetic release).")]
Synthetic = Annotated[Path | None, typer.Option("--synthetic", help="Attack these synthetic notes, without the model.")]
Reference = Annotated[
    Path | None, typer.Option("--reference", help="Notes of third patients, to calibrate the attack.")
]


class MembershipSettings(MeasureSettings):
    """Settings of `clinveil attack membership`."""

    prepared: bool = flag(False, "All notes are in MedText form already.")
    most: int = flag(2_000, "Maximum notes per side, from a random sample of patients.", ge=20)
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
    """Separate members from others by the model's loss; compare with an attacker without a model."""
    how = run.settings
    if model is None and synthetic is None:
        raise UsageError("nothing to attack", hint="pass --from MODEL or --synthetic NOTES")
    attacked, split = _attacked(model, synthetic, how)
    layout = keeps_layout(attacked.get("the model"))
    members = _read(training, how, layout=layout)
    if held_out is not None:
        sides = members, _read(held_out, how, layout=layout)
    else:  # as split by the synthetic release
        before = split_as_before(members, split, model.name if model else "--from")
        sides = before.training, before.held_out
    third = _read(reference, how, layout=layout) if reference else None
    found: list[Finding] = []
    for name, one in attacked.items():  # the findings of the attacker without a model once
        blind = next((f for f in found if f.measure == "attack.membership_blind"), None)
        more = {"reference": third, "detail": {"from": name}, "blind": blind, "most": how.most}
        own = infer_membership(one, *sides, default_rng(run.seed), **more)  # type: ignore[arg-type]
        found += own[1:] if blind else own
    others = held_out.name if held_out else "held-out notes"
    run.show(found, f"members of {training.name} against {others} (seed {run.seed}; 0.5 is chance)")


def _attacked(
    model: Path | None, synthetic: Path | None, how: MembershipSettings
) -> tuple[dict[str, LanguageModel], object]:
    """Return name -> attacked model, and how the notes of the model were split."""
    attacked: dict[str, LanguageModel] = {}
    split: object = None
    if model is not None:
        attacked["the model"], about = load_model(model, device=how.device)
        split = about.get("split")
    if synthetic is not None:  # with the columns of the training notes
        written = _read(synthetic, how, layout=keeps_layout(attacked.get("the model")))
        vocabulary = attacked["the model"].vocabulary if keeps_layout(attacked.get("the model")) else None
        attacked[RELEASED] = model_of_text(written, vocabulary)
    return attacked, split


def _read(path: Path, how: MembershipSettings, *, layout: bool) -> PlainNotes:
    return read_notes(open_corpus(path, how.notes), prepared=how.prepared, layout=layout)
