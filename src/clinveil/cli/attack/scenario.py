"""`clinveil attack scenario`: name target diagnoses for each name, as paper B's attacker does."""

from __future__ import annotations

import typer

from clinveil.attacks.vectors.scenario import Scenario
from clinveil.cli.attack.association import Codes, Notes, Patients, VectorFiles
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, group

app = typer.Typer(add_completion=False)


class ScenarioSettings(Settings):
    """Everything that `clinveil attack scenario` can be told."""

    attack: Scenario = group(Scenario)
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET


@settings_command(app, ScenarioSettings, name="scenario")
def scenario(
    settings: ScenarioSettings,
    vectors: VectorFiles,
    patients: Patients,
    codes: Codes,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Name target diagnoses for each name, farthest and nearest, beside chance (paper B, experiment 3)."""
    import secrets

    from numpy.random import default_rng

    from clinveil.attacks.attack import Context
    from clinveil.cli.attacked import attacked
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.cli.progress import say_unless
    from clinveil.corpus.people import read_codes, read_patients

    known, meanings = read_patients(patients), read_codes(codes)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    say_unless(settings.quiet)(f"seed {seed} (public: --seed {seed} gives the same numbers again)")
    models, counts = attacked(vectors, notes, settings.notes)
    context = Context(vectors=models, counts=counts, known=known, codes=meanings, workers=settings.workers)
    findings = settings.attack(context, default_rng(seed))
    title = f"diagnoses named from {file_names(vectors)} (seed {seed}; lower is safer)"
    say_findings("attack scenario", findings, seed=seed, json_out=json, title=title)
