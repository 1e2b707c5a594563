"""`clinveil demo`: Generate invented notes, release them, and print a few released lines."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import Speaker
from clinveil.core.files import refuse_existing
from clinveil.core.settings import Settings
from clinveil.corpus.demo.stream import write_demo
from clinveil.phi.settings import PhiSettings
from clinveil.releases.pipeline import release
from clinveil.releases.settings import ReleaseSettings

PATIENTS = 300


@command("demo")
def demo(
    _: Run[Settings],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder (default: ./clinveil-demo).")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of workers.")] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Generate invented notes, release them, and print three released lines and the path of the report."""
    folder = out or _free(Path("clinveil-demo"))
    notes = folder / "notes"
    if not (notes / "codes.csv").is_file():  # else an interrupted demo, which goes on
        refuse_existing(folder, force=False)
        write_demo(notes, patients=PATIENTS, seed=1, workers=workers)
    identifiers, label = PhiSettings(patients=notes / "patients.parquet"), ("diagnosis_group",)
    settings = ReleaseSettings(identifiers=identifiers, label=label, keep=("note_type",), workers=workers)
    outcome = release(notes / "notes.parquet", folder / "out", settings, say=Speaker(quiet=quiet))
    typer.echo(f"notes    {notes} (invented)")
    for line in outcome.excerpts:
        typer.echo(f"released {line}")
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def _free(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3, … that nothing has."""
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if not path.exists() else next(other for other in others if not other.exists())
