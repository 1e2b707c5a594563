"""The study from notes to page: plan, do what is not done, write tables, figures, findings and the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clinveil.core.errors import UsageError
from clinveil.scale import Map, processes
from clinveil.scale.tasks import perform_all, study_folder
from clinveil.study.jmir_2020.attack import Codes
from clinveil.study.jmir_2020.plan import plan
from clinveil.study.jmir_2020.results import Results, collect
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.treat import Source

Say = Callable[[str], None]
AHEAD = 1_000  # all tasks of a stage: they are few, and of very unlike length


def run_study(
    notes: Path, patients: Path, codes: Path, out: Path, settings: StudySettings, say: Say = lambda line: None
) -> Results:
    """Do the study of paper B on notes of one's own; the same call again goes on where an earlier one stopped.

    Args:
        notes: a file or folder; patients: patients.parquet; codes: codes.csv.
        out: the folder of the study, secret as a whole: tables.md, figures, findings.json, study.html, tasks.
        settings: grid, setting and draws.
        say: is told the plan and each finished task.

    Returns:
        All findings.

    Raises:
        InputError: what does not fit. UsageError: the folder is something else's. MissingExtra: `--on ray` without Ray.
    """
    from clinveil.study.jmir_2020.outputs import write_outputs

    over = _map(settings)
    with study_folder(out, force=settings.force) as store:
        tasks = plan(settings, Source.of(notes, patients, settings.notes), Codes.of(codes))
        for line in tasks.lines(store, settings.workers):
            say(line)
        for name, works in tasks.stages():
            perform_all(store, works, over, lambda line, name=name: say(f"{name} {line}"))  # type: ignore[misc]
        results = collect(settings, store, tasks.treats[0], tasks.names, tasks.attacks, tasks.figure_3)
        if not results.findings:
            raise UsageError("no model could be attacked", remedy=next(iter(results.missing.values()), ""))
        write_outputs(results, out)
    return results


def _map(settings: StudySettings) -> Map:
    if settings.on == "ray":
        from clinveil.scale.on_ray import on_ray

        return on_ray(settings.workers, ahead=AHEAD)
    return processes(settings.workers, ahead=AHEAD)
