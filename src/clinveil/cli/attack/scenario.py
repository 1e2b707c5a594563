"""`clinveil attack scenario`: name target diagnoses for each name, as paper B's attacker does."""

from __future__ import annotations

import typer

from clinveil.attacks.vectors.scenario import Scenario
from clinveil.cli.attack.association import Codes, Notes, Patients, VectorFiles
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import NotesSettings, RunSettings

app = typer.Typer(add_completion=False)


class ScenarioSettings(Scenario, RunSettings, NotesSettings):
    """Everything that `clinveil attack scenario` can be told."""


@settings_command(app, ScenarioSettings, name="scenario", without=frozenset({"label", "keep", "force"}))
def scenario(
    settings: ScenarioSettings,
    vectors: VectorFiles,
    patients: Patients,
    codes: Codes,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Name target diagnoses for each name, farthest and nearest, beside chance (paper B, experiment 3)."""
    from numpy.random import default_rng

    from clinveil.attacks.attack import Context
    from clinveil.cli.attacked import attacked
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.corpus.people import read_codes, read_patients

    known, meanings = read_patients(patients), read_codes(codes)
    models, counts, seed = attacked(vectors, notes, settings)
    context = Context(vectors=models, counts=counts, known=known, codes=meanings, workers=settings.workers)
    findings = settings(context, default_rng(seed))
    title = f"diagnoses named from {file_names(vectors)} (seed {seed}; lower is safer)"
    say_findings("attack scenario", findings, seed=seed, json_out=json, title=title)
