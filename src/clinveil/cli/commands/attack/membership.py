"""`clinveil attack membership`: Infer which notes a language model was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks import MODEL, RELEASED, as_words, infer_membership, model_of_text
from clinveil.cli.command import EITHER, Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core import DEVICE, Finding, UsageError, setting
from clinveil.corpus import open_corpus
from clinveil.lm import LanguageModel, PlainNotes, keeps_layout, load_model, read_notes
from clinveil.releases import sides_of_model

Training = Annotated[
    Path,
    typer.Argument(
        help="Notes that the model was trained on; without HELD_OUT, the file that release read."
    ),
    EITHER,
]
HeldOut = Annotated[
    Path | None,
    typer.Argument(
        help="Notes not used for training (default: the split of the synthetic release)."
    ),
    EITHER,
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--from", "--model", help="Attack this model (vault/model of a synthetic release)."
    ),
]
Released = Annotated[
    Path | None,
    typer.Argument(help="Attack these synthetic notes, without the model."),
    EITHER,
    "--synthetic",
]
Reference = Annotated[
    Path | None,
    typer.Option("--reference", help="Notes of third patients, to calibrate the attack."),
]


class MembershipSettings(MeasureSettings):
    """Settings of `clinveil attack membership`."""

    prepared: bool = setting(False, "All notes are in MedText form already.")
    most: int = setting(2_000, "Maximum notes per side, from a random sample of patients.", ge=20)
    device: str = DEVICE


@command("attack membership", MembershipSettings, flags="seed", findings=True)
def membership(
    run: Run[MembershipSettings],
    training: Training,
    held_out: HeldOut = None,
    released: Released = None,
    model: Model = None,
    reference: Reference = None,
) -> None:
    """Separate members from others by a model's loss; compare with an attacker without a model."""
    how = run.settings
    if model is None and released is None:
        raise UsageError("nothing to attack", hint="pass --from MODEL or --released NOTES")
    attacked, split = _attacked(model, released, how)
    layout = keeps_layout(attacked.get(MODEL))
    if held_out is not None:
        sides = _read(training, how, layout=layout), _read(held_out, how, layout=layout)
    elif model is None:
        raise UsageError(
            "the notes were split by no model", hint="pass HELD_OUT, or --from MODEL of the release"
        )
    else:
        before = sides_of_model(
            training, model, split, how.notes, prepared=how.prepared, layout=layout
        )
        sides = before.training, before.held_out
    third = [_read(reference, how, layout=layout)] if reference else []
    found: list[Finding] = []
    for name, one in attacked.items():  # the findings of the attacker without a model once
        notes = [*sides, *third]
        if layout and name == RELEASED:  # a recipient compares words
            notes = [as_words(side) for side in notes]
        own = infer_membership(
            one,
            notes[0],
            notes[1],
            default_rng(run.seed),
            reference=notes[2] if third else None,
            attacked=name,
            blind=found[0] if found else None,
            most=how.most,
        )
        found += own[1:] if found else own
    others = held_out.name if held_out else "held-out notes"
    run.show(found, f"members of {training.name} against {others} (seed {run.seed}; 0.5 is chance)")


def _attacked(
    model: Path | None, synthetic: Path | None, how: MembershipSettings
) -> tuple[dict[str, LanguageModel], object]:
    """Return name -> attacked model, and how the notes of the model were split."""
    attacked: dict[str, LanguageModel] = {}
    split: object = None
    if model is not None:
        attacked[MODEL], about = load_model(model, device=how.device)
        split = about.get("split")
    if synthetic is not None:  # with the columns of the training notes
        attacked[RELEASED] = model_of_text(_read(synthetic, how, layout=False))
    return attacked, split


def _read(path: Path, how: MembershipSettings, *, layout: bool) -> PlainNotes:
    return read_notes(open_corpus(path, how.notes), prepared=how.prepared, layout=layout)
