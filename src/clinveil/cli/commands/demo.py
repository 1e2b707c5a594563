"""`clinveil demo`: Compare the kinds of release on invented notes."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.comparison import CompareSettings, Comparison, compare_invented, table_of
from clinveil.core import FORCE, QUIET, WORKERS, Settings, UsageError, refuse_existing, setting
from clinveil.corpus import write_demo

PATIENTS = 200
PATIENTS_OF_NOTES = 500  # with --notes-only
FEWEST = 50  # obfuscated releases need as many
FOLDER = Path("clinveil-demo")
LABEL = "diagnosis_group"
COMPLETE = "codes.csv"  # the last file of the notes


class DemoSettings(Settings):
    """Settings of `clinveil demo`."""

    patients: int | None = setting(
        None, "Number of invented patients (default: 200; notes only: 500).", ge=1, le=9_000_000
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
    """Release invented notes as each kind, and compare what a reader sees, use and risk.

    The notes depend on the seed; each release has a new random key. An interrupted demo continues.
    """
    if notes_only:
        _write_notes(run, out or FOLDER)
        return
    how = run.settings
    others = (FOLDER.with_name(f"{FOLDER.name}-{number}") for number in count(2))
    unused = next(path for path in chain([FOLDER], others) if not path.exists())
    folder = out or unused
    notes = folder / "notes"
    if not (notes / COMPLETE).is_file():  # otherwise resume an interrupted demo
        refuse_existing(folder, force=False)
        patients = how.patients or PATIENTS
        if patients < FEWEST:
            problem = f"the demo needs at least {FEWEST} patients"
            raise UsageError(problem, where="--patients", hint="or pass --notes-only")
        write_demo(notes, patients=patients, seed=how.seed, workers=how.workers, brief=True)
    settings = CompareSettings(
        label=LABEL, patients=notes / "patients.parquet", workers=how.workers, quiet=how.quiet
    )
    comparison = compare_invented(folder, settings, run.say)
    typer.echo(table_of(comparison).terminal())
    typer.echo("")
    for line in _places(comparison):
        typer.echo(line)


def _places(comparison: Comparison) -> list[str]:
    """Return where things are, and the next command."""
    folder = comparison.folder
    lines = [f"notes    {folder / 'notes'} (invented)", f"page     {folder / 'compare.html'}"]
    for measured in comparison.releases:
        release = folder / "runs" / measured.name / "release"
        if measured.why:
            lines.append(f"not made {measured.name}: {measured.why}")
        elif release.is_dir():
            lines.append(f"release  {release}")
        else:
            report = release.parent / "vault" / "report.html"
            lines.append(f"refused  {measured.name}: {report}")
    lines.append("next     clinveil inspect YOUR_NOTES")
    return lines


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
