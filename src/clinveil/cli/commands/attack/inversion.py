"""`clinveil attack inversion`: Measure how many released words an attacker recovers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks import AdversarySuite, Inversion
from clinveil.cli.command import EITHER, Run, command
from clinveil.core import QUIET, SEED, WORKERS, Settings, group
from clinveil.releases import attacked_release

ALL = 10**12
Released = Annotated[Path, typer.Argument(help="The release: its folder, or its notes."), EITHER]
Vault = Annotated[Path, typer.Option("--vault", help="Vault of the release (OUT/vault).")]
Original = Annotated[Path, typer.Argument(help="Original notes."), EITHER]
Prior = Annotated[
    Path | None, typer.Option("--prior", help="Notes of the attacker (default: of other patients).")
]
Patients = Annotated[
    Path | None, typer.Option("--patients", help="Known patients, if the release had them.")
]


class InversionSettings(Settings):
    """Settings of `clinveil attack inversion`."""

    attack: AdversarySuite = group(AdversarySuite)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack inversion", InversionSettings, flags="seed", findings=True)
def inversion(
    run: Run[InversionSettings],
    released: Released,
    vault: Vault,
    original: Original,
    prior: Prior = None,
    patients: Patients = None,
) -> None:
    """Recover released words: exact figures of one draw, then each adversary of the suite."""
    how = run.settings
    context = attacked_release(
        released, vault, original, others=prior, patients=patients, workers=how.workers, say=run.say
    )
    suite = how.attack.but(tokens=how.attack.tokens or ALL)
    found = [*Inversion()(context, run.rng()), *suite(context, run.rng())]
    run.show(found, f"recovered words of {released.name} (seed {run.seed}; lower is safer)")
    for adversary, knowledge in {f.attack: f.knowledge for f in found if f.knowledge}.items():
        run.say(f"{adversary} knows: {knowledge}")
