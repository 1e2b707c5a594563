"""`clinveil attack inversion`: How many released words are read back, by what an attacker knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.channel.adversary_suite import AdversarySuite
from clinveil.attacks.channel.inversion import Inversion
from clinveil.cli.command import Run, command
from clinveil.core.settings import QUIET, SEED, WORKERS, Settings, group
from clinveil.releases.attacked import attacked_release

ALL = 10**12
Released = Annotated[Path, typer.Argument(help="The release: its folder, or its notes.")]
Vault = Annotated[Path, typer.Option("--vault", help="Vault of the same run, OUT/vault.")]
Original = Annotated[Path, typer.Option("--original", help="The notes that it was made of.")]
Prior = Annotated[Path | None, typer.Option("--prior", help="An attacker's own notes (default: other patients').")]
Patients = Annotated[Path | None, typer.Option("--patients", help="Known patients, where the release had them.")]


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
    """Read released words back: the exact figures of one draw, then attackers of all kinds, each by what they know."""
    how = run.settings
    context = attacked_release(
        released, vault, original, others=prior, patients=patients, workers=how.workers, say=run.say
    )
    suite = how.attack.but(tokens=how.attack.tokens or ALL)
    found = [*Inversion()(context, run.rng()), *suite(context, run.rng())]
    run.show(found, f"words of {released.name} read back (seed {run.seed}; lower is safer)")
    told = {str(one.detail["reader"]): one.detail["knowledge"] for one in found if "reader" in one.detail}
    for reader, knowledge in told.items():
        run.say(f"{reader} knows: {knowledge}")
