"""`clinveil demo`: Generate invented notes, release them, and print three released lines."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core import FORCE, QUIET, WORKERS, Settings, refuse_existing, setting
from clinveil.corpus import write_demo
from clinveil.phi import PhiSettings
from clinveil.releases import ReleaseSettings, release

PATIENTS = 300
PATIENTS_OF_NOTES = 500  # with --notes-only
FOLDER = Path("clinveil-demo")


class DemoSettings(Settings):
    """Settings of `clinveil demo`."""

    patients: int | None = setting(
        None, "Number of invented patients (default: 300; notes only: 500).", ge=1, le=9_000_000
    )
    workers: int = WORKERS
    seed: int = setting(1, "Seed of the notes; the same seed gives the same notes.", ge=0)
    force: bool = FORCE
    quiet: bool = QUIET


@command("demo", DemoSettings, flags="patients workers seed force quiet")
def demo(
    run: Run[DemoSettings],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder (default: ./clinveil-demo).")
    ] = None,
    notes_only: Annotated[
        bool, typer.Option("--notes-only", help="Write the notes and release nothing.")
    ] = False,
) -> None:
    """Generate invented notes, release them, and print three released lines and the path of the
    report.
    """
    how = run.settings
    if notes_only:
        _write_notes(run, out or FOLDER)
        return
    others = (FOLDER.with_name(f"{FOLDER.name}-{number}") for number in count(2))
    unused = next(path for path in chain([FOLDER], others) if not path.exists())
    folder = out or unused
    notes = folder / "notes"
    if not (notes / "codes.csv").is_file():  # otherwise resume an interrupted demo
        refuse_existing(folder, force=False)
        write_demo(notes, patients=how.patients or PATIENTS, seed=how.seed, workers=how.workers)
    identifiers = PhiSettings(patients=notes / "patients.parquet")
    label = ("diagnosis_group",)
    settings = ReleaseSettings(
        kind="obfuscated",
        identifiers=identifiers,
        label=label,
        keep=("note_type",),
        workers=how.workers,
        ledger=folder / "ledger",  # invented notes are not entered in the ledger of the user
    )
    outcome = release(notes / "notes.parquet", folder / "out", settings, say=run.say)
    typer.echo(f"notes    {notes} (invented)")
    for line in outcome.excerpts:
        typer.echo(f"released {line}")
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def _write_notes(run: Run[DemoSettings], folder: Path) -> None:
    """Write the notes, and print their files."""
    how = run.settings
    patients = how.patients or PATIENTS_OF_NOTES
    run.say(f"seed {how.seed}, {patients} invented patients")
    with run.say.count("patients", patients) as show:
        made = write_demo(
            folder, patients, how.seed, workers=how.workers, progress=show, force=how.force
        )
    run.say(f"{made.notes} notes of {made.patients} patients, {made.spans} PHI spans")
    for file in made.files:
        typer.echo(str(file))
