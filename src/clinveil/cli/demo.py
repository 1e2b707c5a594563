"""`clinveil demo`: a whole release of invented notes, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.release import printer

app = typer.Typer()
PATIENTS = 300


@app.command("demo")
def demo(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder (default: ./clinveil-demo).")] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many workers.")] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Make a demo corpus, release it, and print where the report lies."""
    from clinveil.core.files import refuse_existing
    from clinveil.corpus.demo.stream import write_demo
    from clinveil.phi.settings import PhiSettings
    from clinveil.releases.pipeline import release as run_release
    from clinveil.releases.settings import ReleaseSettings

    folder = out or _free(Path("clinveil-demo"))
    refuse_existing(folder, force=False)
    notes = folder / "notes"
    write_demo(notes, patients=PATIENTS, seed=1, workers=workers)
    identifiers = PhiSettings(patients=notes / "patients.parquet")
    label = ("diagnosis_group",)
    settings = ReleaseSettings(identifiers=identifiers, label=label, keep=("note_type",), workers=workers)
    outcome = run_release(notes / "notes.parquet", folder / "out", settings, say=printer(quiet))
    typer.echo(f"notes    {notes} (invented)")
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def _free(path: Path) -> Path:
    """The path, or the first free one of path-2, path-3, …"""
    number, free = 2, path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free
