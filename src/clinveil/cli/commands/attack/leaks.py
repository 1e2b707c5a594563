"""`clinveil attack leaks`: Tell real names that were missed from the surrogates that hide them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.attack import Context, attacks
from clinveil.cli.command import Run, command
from clinveil.core.errors import UsageError
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import read_patients

ATTACKS = ("pool-difference", "parrot")
Released = Annotated[Path, typer.Argument(help="De-identified notes, with surrogates in place of names.")]
Patients = Annotated[Path, typer.Option("--patients", help="Known patients, or missed.parquet: whose names are leaks.")]


class LeaksSettings(Settings):
    """Everything that `clinveil attack leaks` can be told."""

    notes: NotesSettings = group(NotesSettings)
    attack: tuple[str, ...] = flag(ATTACKS, f"One of {', '.join(ATTACKS)}; repeatable.")
    sampled_patients: int = flag(1_000, "Patients whose released notes are attacked.", ge=2)
    least: float = flag(0.5, "Parrot: the least probability at which its tagger takes a word for a name.", gt=0, lt=1)
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack leaks", LeaksSettings, findings=True)
def leaks(run: Run[LeaksSettings], released: Released, patients: Patients) -> None:
    """Tell real names that a de-identifier missed from the surrogates that hide them: by its lists, and by a parrot."""
    how = run.settings
    if unknown := [name for name in how.attack if name not in ATTACKS] or not how.attack:
        raise UsageError(f"takes {' or '.join(ATTACKS)}" if unknown else "names no attack", where="--attack")
    context = Context(released=open_corpus(released, how.notes), known=read_patients(patients))
    chosen = how.flat()
    found = []
    for name in how.attack:
        attack = attacks.get(name)
        made = attack.model_validate({field: chosen[field] for field in attack.model_fields})
        found += made(context, run.rng())
    run.show(found, f"leaked names in {released.name} (seed {run.seed}; lower is safer)")
