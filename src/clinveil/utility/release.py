"""Utility tasks of every release, in the order of the report.

Each finding is a share of the gap between a floor (words without order, or drawn at random) and a ceiling (real notes):
0 is useless, and 1 is as good as real notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.stats.findings import unmeasured
from clinveil.utility.labelled import WrongNotes
from clinveil.utility.shares import SOURCE
from clinveil.utility.tasks.labels import Arms, Label, why_not
from clinveil.utility.tasks.language_model import language_model
from clinveil.utility.tasks.notes import Release, ReleasedNotes, read_texts
from clinveil.utility.tasks.sequence import sequence
from clinveil.utility.tasks.transfer import transfer
from clinveil.utility.tasks.vectors import vectors
from clinveil.utility.tasks.within import within

UTILITY_SEED = 20260101  # public, and the same for every release, so that releases can be compared


def useful(
    context: ReleasedNotes, labels: Sequence[str], models: Sequence[str], pairs: Sequence[Path] = ()
) -> list[Finding]:
    """Measure what a recipient can do with a release.

    Args:
        context: both sides; without `notes` the released notes describe no particular real notes.
        labels: columns to classify by. models: classifiers. pairs: files of word pairs with human scores.

    Returns:
        `utility.transfer`, `utility.sequence`, `utility.language_model`, `utility.vectors` (with pairs) and
        `utility.within`. A finding that cannot be measured has no value, and its detail has the reason.

    Raises WrongNotes if the original lacks a label column or the crosswalk lacks a released note; ValueError without
    both sides.
    """
    release = Release.of(context)
    arms: list[Arms] = []
    missing: list[tuple[str, InputError]] = []
    for label in labels:
        try:
            read = Label.of(release, label, _rng())
        except WrongNotes:
            raise
        except InputError as error:
            missing.append((label, error))
        else:
            arms += [Arms(read, model) for model in models]
    return [
        *_by_label("utility.transfer", transfer, arms, missing),
        *_in_order(release, pairs),
        *_by_label("utility.within", within, arms, missing),
    ]


def _rng() -> np.random.Generator:
    return np.random.default_rng(UTILITY_SEED)


Task = Callable[[Arms, np.random.Generator], Finding]


def _by_label(
    measure: str, task: Task, arms: Sequence[Arms], missing: Sequence[tuple[str, InputError]]
) -> list[Finding]:
    found: list[Finding] = []
    for each in arms:
        try:
            found.append(task(each, _rng()))
        except InputError as error:
            found.append(why_not(measure, str(each.label.detail["label"]), error))
    return found + [why_not(measure, label, error) for label, error in missing]


def _in_order(release: Release, pairs: Sequence[Path]) -> list[Finding]:
    """Run the tasks without labels: word order, language model and word vectors."""
    try:
        texts = read_texts(release, _rng())
    except WrongNotes:
        raise
    except InputError as error:
        return [_unmeasured(name, error) for name in ("utility.sequence", "utility.language_model")]
    found: list[Finding] = []
    tasks: dict[str, Callable[[], list[Finding]]] = {
        "utility.sequence": partial(sequence, release, texts, _rng()),
        "utility.language_model": partial(language_model, texts, _rng()),
    }
    for measure, task in tasks.items():
        try:
            found += task()
        except InputError as error:
            found.append(_unmeasured(measure, error))
    return found + vectors(release, texts, pairs, _rng())


def _unmeasured(measure: str, error: InputError) -> Finding:
    why = f"Not measured: {error.what}."
    return unmeasured(measure, why, detail={"task": measure.partition(".")[2]}, better="higher", source=SOURCE)
