"""The study from notes to page: plan, do what is not done, write tables, figures, findings and the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clinveil.core.neural import need_torch
from clinveil.scale.local import processes
from clinveil.scale.tasks import study_folder
from clinveil.study.clinicalnlp_2019.parts import Source
from clinveil.study.clinicalnlp_2019.plan import Study, parts_of
from clinveil.study.clinicalnlp_2019.results import Results, collect
from clinveil.study.clinicalnlp_2019.settings import StudySettings

Say = Callable[[str], None]
AHEAD = 1_000


def run_study(notes: Path, out: Path, settings: StudySettings, say: Say = lambda line: None) -> Results:
    """Do the study of paper C on notes of one's own; the same call again goes on where an earlier one stopped.

    Args:
        notes: a file or folder. out: the folder of the study, secret as a whole. say: is told plan and progress.

    Raises:
        InputError: what does not fit. UsageError: the folder is something else's, or it would take too long.
        MissingExtra: no PyTorch.
    """
    need_torch()
    source = Source.of(notes, settings.notes, settings.general)
    with study_folder(out, force=settings.force) as store:
        over = processes(settings.workers, ahead=AHEAD)
        study = Study(settings, store, over, say, parts_of(settings, source))
        study.run()
        results = collect(study)
        from clinveil.study.clinicalnlp_2019.outputs import write_outputs

        write_outputs(results, study, out)
    return results
