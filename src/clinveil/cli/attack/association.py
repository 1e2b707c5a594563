"""`clinveil attack association`: whether the distance of name and diagnosis vectors tells who has what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.vectors.association import Association
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import NotesSettings, RunSettings

app = typer.Typer(add_completion=False)
VectorFiles = Annotated[list[Path], typer.Argument(help="Vectors: folders of clinveil embed, .vec, .txt or .bin.")]
Patients = Annotated[Path, typer.Option("--patients", help="Whose names are in the vectors: missed.parquet.")]
Codes = Annotated[Path, typer.Option("--codes", help="codes.csv: code, description.")]
Notes = Annotated[Path | None, typer.Option("--notes", help="The training notes, for vectors without word counts.")]


class AssociationSettings(Association, RunSettings, NotesSettings):
    """Everything that `clinveil attack association` can be told."""


@settings_command(app, AssociationSettings, name="association", without=frozenset({"label", "keep", "force"}))
def association(
    settings: AssociationSettings,
    vectors: VectorFiles,
    patients: Patients,
    codes: Codes,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Compare names' distances to their bearers' diagnoses with those to others' (paper B, experiment 2)."""
    from numpy.random import default_rng

    from clinveil.attacks.attack import Context
    from clinveil.cli.attacked import attacked
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.corpus.people import read_codes, read_patients

    known, meanings = read_patients(patients), read_codes(codes)
    models, counts, seed = attacked(vectors, notes, settings)
    context = Context(vectors=models, counts=counts, known=known, codes=meanings, workers=settings.workers)
    findings = settings(context, default_rng(seed))
    title = f"names and diagnoses in {file_names(vectors)} (seed {seed})"
    say_findings("attack association", findings, seed=seed, json_out=json, title=title)
