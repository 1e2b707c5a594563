"""`clinveil evaluate deidentification`: Recall of identifiers, on a grid of invented names."""

from __future__ import annotations

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.core.settings import QUIET, SEED, Settings, flag, group
from clinveil.phi.settings import PhiSettings


class EvaluateDeidentificationSettings(Settings):
    """Everything that `clinveil evaluate deidentification` can be told."""

    identifiers: PhiSettings = group(PhiSettings)
    grid: bool = flag(False, "Measure on invented notes: contexts × classes of name × cultures × gender × case.")
    size: int | None = flag(None, "Only so many notes of the grid.", ge=1)
    all_names: bool = flag(False, "Also names that are not held out for tests: for looking, not for claims.")
    seed: int | None = SEED
    quiet: bool = QUIET


@command("evaluate deidentification", EvaluateDeidentificationSettings, findings=True)
def deidentification(run: Run[EvaluateDeidentificationSettings]) -> None:
    """Measure how much of the identifiers the detectors find, on a grid of invented notes."""
    from clinveil.phi.finder import Finder
    from clinveil.utility.deidentification.grid import grid_notes, sample
    from clinveil.utility.deidentification.grid_findings import grid_findings, scored

    how = run.settings
    if not how.grid:
        raise UsageError("nothing to measure on", remedy="--grid")
    rng, finder = run.rng(), Finder.of(how.identifiers)
    notes = sample(rng, how.size, every=how.all_names) if how.size else grid_notes(rng, every=how.all_names)
    rows = list(scored(notes, finder.find))
    if how.all_names:
        say("clinveil: with names that are not held out: for looking, not for claims")
    run.show(grid_findings(rows), f"{len(rows):,} notes of the grid (seed {run.seed})")
