"""The study from notes to page: plan, do what is not done, write tables, figures, findings and the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from clinveil.core.errors import UsageError
from clinveil.core.files import private_folder, private_text, sha256
from clinveil.core.finding import document
from clinveil.core.neural import need_torch
from clinveil.scale import Map, processes
from clinveil.scale.tasks import perform_all, study_folder
from clinveil.study.jamia_2020.plan import LIMIT_HOURS, plan
from clinveil.study.jamia_2020.prepare import Source
from clinveil.study.jamia_2020.results import Results, collect
from clinveil.study.jamia_2020.settings import StudySettings
from clinveil.study.jamia_2020.similar import Lists
from clinveil.utility.classifiers import any_neural

Say = Callable[[str], None]
AHEAD = 1_000  # all tasks of a stage: they are few, and of very unlike length
TITLE = "What protection costs: word similarity and classification"


def run_study(
    notes: Path,
    out: Path,
    settings: StudySettings,
    *,
    pairs: tuple[Path, ...] = (),
    references: Mapping[str, Path] | None = None,
    say: Say = lambda line: None,
) -> Results:
    """Do the study of paper A on notes of one's own; the same call again goes on where an earlier one stopped.

    Args:
        notes: a file or folder. out: the folder of the study, secret as a whole.
        pairs: word-pair lists; without them there is no Table 3. references: name -> out-of-domain vectors.
        settings: grid and sizes; without a label there is no Table 4.
        say: is told the plan and each finished task.

    Raises:
        InputError: what does not fit. UsageError: nothing to measure, a folder that is something else's, or a plan of
            more than two hours without `yes`. MissingExtra: a network without PyTorch, Ray without Ray.
    """
    if not settings.label and not pairs:
        raise UsageError("nothing to measure by", remedy="--label COLUMN, --pairs FILE, or both")
    if len(settings.label) > 1:
        raise UsageError("one label a study", remedy="run it once for each --label")
    if settings.label and any_neural(settings.model):
        need_torch()
    over, lists = _map(settings), Lists.of(pairs, settings.any_size) if pairs else None
    known = {name: (path, _digest(path)) for name, path in (references or {}).items()}
    with study_folder(out, force=settings.force) as store:
        tasks = plan(settings, Source.of(notes, settings.notes, settings.label), lists, known)
        for line in tasks.lines(store, settings.workers):
            say(line)
        hours = tasks.hours(store, settings.workers)
        if hours > LIMIT_HOURS and not settings.yes:
            raise UsageError(f"this is planned to take about {hours:.0f} hours", remedy="--yes starts it")
        for name, works in tasks.stages():
            perform_all(store, works, over, lambda line, name=name: say(f"{name} {line}"))  # type: ignore[misc]
        results = collect(settings, store, tasks)
        _write(results, out)
    return results


def _digest(path: Path) -> str:
    return sha256(path / "matrix.npy" if path.is_dir() else path)


def _map(settings: StudySettings) -> Map:
    if settings.on == "ray":
        from clinveil.scale.on_ray import on_ray

        return on_ray(settings.workers, ahead=AHEAD)
    return processes(settings.workers, ahead=AHEAD)


def _write(results: Results, out: Path) -> None:
    """Write `tables.md`, `figures/*.svg`, `findings.json` and `study.html`, readable by their owner only."""
    from clinveil.study.jamia_2020.figures import figures
    from clinveil.study.jamia_2020.tables import tables
    from clinveil.study.jmir_2020.figures import standalone
    from clinveil.study.plain import HIDDEN, Words, markdown, page

    made, drawn = tables(results), figures(results)
    private_text(out / "tables.md", markdown(made))
    folder = private_folder(out / "figures")
    for figure in (figure for below in drawn.values() for figure in below):
        private_text(folder / f"{figure.ident}.svg", standalone(figure))
    found = document("study jamia-2020", results.everything, seed=results.settings.seed)
    private_text(out / "findings.json", json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    told = results.settings.model_dump(exclude=set(HIDDEN))
    words = Words(TITLE, "Study of JAMIA 2020;27(6):901-907 on notes of your own", _lead(results), LIMITS)
    private_text(out / "study.html", page(words, made, drawn, told))


def _lead(results: Results) -> str:
    said = results.corpus
    return (
        f"{said['notes']:,} notes of {said['patients']:,} patients, {said['tokens']:,} words. Algorithm 1 as "
        "published: every word may come out, and each occurrence is drawn afresh; our defaults are a row of their own."
    )


LIMITS = (
    "The paper's own classifiers, splits and numbers behind its Figure 2 are not published; what its text fixes is "
    "followed, the rest is chosen here.",
    "Networks are trained with one set of hyper-parameters each, on few documents in the small size; the differences "
    "between settings are what is measured, not the best score that can be had.",
    "A small loss of utility says nothing of privacy: the column of recovered tokens stands beside it for that reason.",
)
