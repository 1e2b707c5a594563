"""`clinveil attack association`: whether the distance of name and diagnosis vectors tells who has what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group

app = typer.Typer(add_completion=False)
VectorFiles = Annotated[list[Path], typer.Argument(help="Vectors: folders of clinveil embed, .vec, .txt or .bin.")]
Patients = Annotated[Path, typer.Option("--patients", help="Whose names are in the vectors: missed.parquet.")]
Codes = Annotated[Path, typer.Option("--codes", help="codes.csv: code, description.")]
Notes = Annotated[Path | None, typer.Option("--notes", help="The training notes, for vectors without word counts.")]


class AssociationSettings(Settings):
    """Everything that `clinveil attack association` can be told."""

    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET

    metric: tuple[str, ...] = flag(
        ("cityblock", "cosine", "euclidean"),
        "cityblock, cosine or euclidean; repeatable (default: all). The first draws the frequency curve.",
    )
    draws: int | None = flag(None, "Random groups of diagnoses a patient (default: patients / 0.05).", ge=1)
    permutations: int = flag(9_999, "Permutations of names, for the tests over all patients.", ge=99)
    paper_p: bool = flag(False, "Also the paper's 1,000 draws with P = count/n, whose error rate is printed.")


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

    from clinveil.attacks.vectors.association import AssociationPlan, association, over_models
    from clinveil.cli.attacked import attacked
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.cli.progress import say_unless
    from clinveil.corpus.people import read_codes, read_patients

    plan = AssociationPlan(
        settings.metric, settings.draws, settings.permutations, settings.paper_p, threads=settings.workers
    )
    known, meanings = list(read_patients(patients).values()), read_codes(codes)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    models = attacked(vectors, notes, settings.notes, seed, say_unless(settings.quiet))
    findings = [
        finding
        for model in models
        for finding in model.named(association(model.vectors, known, meanings, model.rng, plan, counts=model.counts))
    ]
    say_findings(
        "attack association",
        over_models(findings),
        seed=models[0].seed,
        json_out=json,
        title=f"names and diagnoses in {file_names(vectors)} (seed {models[0].seed})",
    )
