"""Document classification, original against released: the same notes, split and seeds on both sides.

The paper's setting trains and tests on protected text; its supplement's transfers mix the sides. Chance is the majority
class; the control trains on shuffled labels. Intervals draw test patients anew, with the difference paired.

What a release reports is cross-validated: each patient is tested once. Predictions of all folds are pooled for the
interval, which takes the trained models as given; the spread of the folds, which holds training too, stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles
from clinveil.stats.findings import unmeasured
from clinveil.utility.classifiers import ClassifierSettings, Predictions, Side, classifier, predict
from clinveil.utility.labelled import (
    NOTES,
    Labelled,
    Parts,
    WrongNotes,
    folds_of,
    paired,
    parts_of,
    read_labelled,
    texts_of,
)
from clinveil.utility.scores import METRICS, SOURCE, Scores, majority_of
from clinveil.vectors.table import Vectors

RELEASE_CLASS = 20  # notes of a class of its own in a release's report: four to test on in each of five folds
# Protected text on both sides; networks that start from protected vectors on plain text; from plain ones on protected.
Setting = Literal["protected", "vectors-on-plain", "plain-vectors-on-protected"]
FOLDS, NEURAL_FOLDS = 5, 2  # of as many parts; networks are trained on the first two only
FIRST_FOLD = "training labels shuffled, in the first fold"


def _cross_validated(
    model: str,
    labelled: Labelled,
    released: list[str],
    folds: Sequence[Parts],
    settings: ClassifierSettings,
    rng: Generator,
) -> list[Finding]:
    """Both sides and the paired loss, of each metric, by one model on folds that all models share."""
    folds = folds[: NEURAL_FOLDS if classifier(model).neural else FOLDS]
    seed = int(rng.integers(2**31))

    def run(side: Side, parts: Parts, *, shuffled: bool = False) -> NDArray[Any]:
        return predict(model, labelled, parts, seed, side, settings=settings, shuffled=shuffled).test

    sides = {"original": Side(labelled.texts, labelled.texts), "released": Side(released, released)}
    tested = {side: [run(own, parts) for parts in folds] for side, own in sides.items()}
    shuffled = {side: run(own, folds[0], shuffled=True) for side, own in sides.items()}
    truths, rows = [labelled.targets[parts.test] for parts in folds], np.concatenate([parts.test for parts in folds])
    # One class for all folds: where several are as frequent, one a fold would be no constant guess.
    majority = majority_of(labelled.targets, len(rows))
    detail = {**labelled.detail, **_sizes(folds[0], len(rows)), "model": model, "folds": len(folds)}
    scores = Scores(labelled.targets[rows], [labelled.patients[row] for row in rows], majority, detail)
    pooled = {side: [np.concatenate(runs)] for side, runs in tested.items()}
    found = []
    for metric in scores.metrics:
        score = METRICS[metric]
        by_fold = {side: np.array(list(map(score, truths, runs))) for side, runs in tested.items()}
        apart = _spread(by_fold["original"] - by_fold["released"])
        loss = scores.loss(metric, pooled["original"], pooled["released"], rng, apart)
        for side in sides:
            made = scores.side(metric, side, pooled[side], [], rng, _spread(by_fold[side]))
            control = score(truths[0], shuffled[side])
            found.append(replace(made, control=control, control_is=FIRST_FOLD, control_kind="negative"))
        found.append(loss)
    return found


def _sizes(parts: Parts, n_test: int) -> dict[str, int]:
    return {"train": len(parts.learn), "test": n_test, "near_duplicates": parts.duplicates}


def _spread(by_fold: Doubles) -> dict[str, float]:
    """How far the folds are apart."""
    low, high = float(by_fold.min()), float(by_fold.max())
    return {"fold_sd": float(np.std(by_fold, ddof=1)), "fold_lowest": low, "fold_highest": high}


def classification(
    original: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    label: str,
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    min_class: int = RELEASE_CLASS,
    notes: int = NOTES,
    models: Sequence[str] = ("lr",),
) -> list[Finding]:
    """Macro-F1 and accuracy on the original, on the released, and what was lost: what a release reports.

    Streams both once; at most `notes` labelled notes are sampled (said in the detail), small classes are merged into
    one. Where the labels or the notes do not allow it there is one finding without a value that says why.

    Args:
        label: the column, in the original batches.
        rng: of a seed that has nothing to do with the key: then two releases of the same notes compare.
        crosswalk: source note id of each released one; None where they are equal.
        min_class: notes of a class of its own.
    Raises WrongNotes: no such column, or a released note that the crosswalk does not know.
    """
    settings = ClassifierSettings(max_documents=notes, min_class=min_class)
    detail: Mapping[str, Any] = {"label": label}
    try:
        labelled = read_labelled(original, label, rng, limit=notes, min_class=min_class, merge=True)
        detail = labelled.detail
        kept, texts = paired(labelled, texts_of(labelled, released, crosswalk))
        # By id, so that the order of the source's rows does not matter.
        order = sorted(range(len(kept)), key=lambda i: kept.note_ids[i])
        kept, texts = kept.only(order), [texts[i] for i in order]
        folds = folds_of(kept, rng, FOLDS)
        return [f for model in models for f in _cross_validated(model, kept, texts, folds, settings, rng)]
    except WrongNotes:
        raise
    except InputError as error:  # too few notes, of too few classes or patients
        return [unmeasured("utility.classification", error.what, better="higher", source=SOURCE, detail=detail)]


@dataclass(frozen=True)
class Task:
    """Labelled notes, their released texts in the same order, and the split that every setting shares."""

    labelled: Labelled
    released: list[str]
    parts: Parts

    @property
    def detail(self) -> dict[str, Any]:
        """Counts for every finding."""
        return {**self.labelled.detail, **_sizes(self.parts, len(self.parts.test))}


@dataclass(frozen=True)
class Comparison:
    """How the two sides of a task are compared: networks start from the vectors, and the mean of their seeds counts.

    `control`: also train on shuffled labels, once a side.
    """

    setting: Setting = "protected"
    vectors: Vectors | None = None
    released_vectors: Vectors | None = None
    seeds: int = 1
    control: bool = True

    def sides(self, task: Task) -> tuple[Side, Side]:
        """What is trained and tested on: the original, and what it is compared with."""
        plain, protected = task.labelled.texts, task.released
        texts, vectors = {
            "protected": (protected, self.released_vectors),
            "vectors-on-plain": (plain, self.released_vectors),
            "plain-vectors-on-protected": (protected, self.vectors),
        }[self.setting]
        return Side(plain, plain, self.vectors), Side(texts, texts, vectors)


def compared(
    task: Task, model: str, rng: Generator, settings: ClassifierSettings, how: Comparison | None = None
) -> list[Finding]:
    """The scores of both sides of a task by one model, and what was lost; of networks over several seeds."""
    how = how or Comparison()
    runs = [int(rng.integers(2**31)) for _ in range(how.seeds if classifier(model).neural else 1)]

    def run(side: Side, seeds: Sequence[int], *, shuffled: bool = False) -> list[Predictions]:
        given = (task.labelled, task.parts)
        return [predict(model, *given, seed, side, settings=settings, shuffled=shuffled) for seed in seeds]

    sides = how.sides(task)
    ours, theirs = (run(side, runs) for side in sides)
    controls = [run(side, runs[:1], shuffled=True) if how.control else [] for side in sides]
    detail = {**task.detail, "model": model, "setting": how.setting}
    return compare(task, ours, theirs, rng, detail, controls)


def compare(
    task: Task,
    original: Sequence[Predictions],
    released: Sequence[Predictions],
    rng: Generator,
    detail: Mapping[str, Any],
    shuffled: Sequence[Sequence[Predictions]] = ((), ()),
) -> list[Finding]:
    """Findings of predictions that were made already: both sides and the loss, of each metric."""
    targets, tested = task.labelled.targets, task.parts.test
    majority = majority_of(targets[task.parts.learn], len(tested))
    scores = Scores(targets[tested], [task.labelled.patients[i] for i in tested], majority, detail)
    ours, theirs = ([p.test for p in side] for side in (original, released))
    controls = [[p.test for p in side] for side in shuffled]
    found = []
    for metric in scores.metrics:
        found.append(scores.side(metric, "original", ours, controls[0], rng, _chosen(original)))
        found.append(scores.side(metric, "released", theirs, controls[1], rng, _chosen(released)))
        found.append(scores.loss(metric, ours, theirs, rng))
    return found


def _chosen(runs: Sequence[Predictions]) -> dict[str, Any]:
    return {f"chosen_{name}": value for name, value in runs[0].detail.items()} if len(runs) == 1 else {}


def evaluate(
    original: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch] | None,
    label: str,
    rng: Generator,
    settings: ClassifierSettings,
    *,
    crosswalk: Mapping[str, str] | None = None,
) -> Task:
    """Read both sides (the original on both without released notes) into one task, to run models on (`compared`).

    Raises InputError as `read_labelled`, `texts_of` and `parts_of`.
    """
    limit, least = settings.documents, settings.min_class
    labelled = read_labelled(original, label, rng, limit=limit, min_class=least, separator=settings.separator)
    texts = labelled.texts
    if released is not None:
        labelled, texts = paired(labelled, texts_of(labelled, released, crosswalk))
    return Task(labelled, texts, parts_of(labelled, rng))
