"""`clinveil attack association`: whether the distance of name and diagnosis vectors tells who has what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.vectors.association import Association
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, group

app = typer.Typer(add_completion=False)
VectorFiles = Annotated[list[Path], typer.Argument(help="Vectors: folders of clinveil embed, .vec, .txt or .bin.")]
Patients = Annotated[Path, typer.Option("--patients", help="Whose names are in the vectors: missed.parquet.")]
Codes = Annotated[Path, typer.Option("--codes", help="codes.csv: code, description.")]
Notes = Annotated[Path | None, typer.Option("--notes", help="The training notes, for vectors without word counts.")]


class AssociationSettings(Settings):
    """Everything that `clinveil attack association` can be told."""

    attack: Association = group(Association)
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET


@settings_command(app, AssociationSettings, name="association")
def association(
    settings: AssociationSettings,
    vectors: VectorFiles,
    patients: Patients,
    codes: Codes,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Compare names' distances to their bearers' diagnoses with those to others' (paper B, experiment 2)."""
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
    title = f"names and diagnoses in {file_names(vectors)} (seed {seed})"
    say_findings("attack association", findings, seed=seed, json_out=json, title=title)
