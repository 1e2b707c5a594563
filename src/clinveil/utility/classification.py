"""Document classification, original against released: the same notes, split and seeds on both sides.

The paper's setting trains and tests on protected text; its supplement's transfers mix the sides. Chance is the majority
class; the control trains on shuffled labels. Intervals draw test patients anew, with the difference paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.utility.classifiers import NEURAL
from clinveil.utility.classifiers.predict import Predictions, predict
from clinveil.utility.classifiers.settings import ClassifierSettings
from clinveil.utility.folds import Folded
from clinveil.utility.labelled import NOTES, Labelled, Parts, paired, parts_of, read_labelled, texts_of
from clinveil.utility.scores import SOURCE, Scores, majority_of
from clinveil.vectors.table import Vectors

RELEASE_CLASS = 20  # notes of a class of its own in a release's report: four to test on in each of five folds
# Protected text on both sides; networks that start from protected vectors on plain text; from plain ones on protected.
Setting = Literal["protected", "vectors-on-plain", "plain-vectors-on-protected"]


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
    one. Cross-validated, so that each patient is tested once (`folds.py`). Where the labels or the notes do not allow
    it there is one finding without a value that says why.

    Args:
        label: the column, in the original batches.
        rng: of a seed that has nothing to do with the key: then two releases of the same notes compare.
        crosswalk: source note id of each released one; None where they are equal.
        min_class: notes of a class of its own.
    Raises:
        InputError: no such column, or a released note that the crosswalk does not know.
    """
    settings = ClassifierSettings(max_documents=notes, min_class=min_class)
    try:
        labelled = read_labelled(original, label, rng, limit=notes, min_class=min_class, merge=True)
    except InputError as error:
        if error.what.startswith("there is no column"):
            raise
        return [_nothing({"label": label}, error.what)]
    try:
        kept, texts = paired(labelled, texts_of(labelled, released, crosswalk))
        # By id, so that the order of the source's rows does not matter.
        order = sorted(range(len(kept)), key=lambda i: kept.note_ids[i])
        folded = Folded(kept.only(order), [texts[i] for i in order], rng)
        return [f for model in models for f in folded.findings(model, settings, rng)]
    except InputError as error:
        if error.what.startswith("a released id"):
            raise
        return [_nothing(labelled.detail, error.what)]


@dataclass(frozen=True)
class Task:
    """Labelled notes, their released texts in the same order, and the split that every setting shares."""

    labelled: Labelled
    released: list[str]
    parts: Parts

    @property
    def detail(self) -> dict[str, Any]:
        """Counts for every finding."""
        parts = self.parts
        sizes = {"train": len(parts.learn), "test": len(parts.test), "near_duplicates": parts.duplicates}
        return {**self.labelled.detail, **sizes}


def _task(
    labelled: Labelled,
    released: Iterable[pa.RecordBatch] | None,
    crosswalk: Mapping[str, str] | None,
    rng: Generator,
) -> Task:
    if released is None:
        return Task(labelled, labelled.texts, parts_of(labelled, rng))
    kept, texts = paired(labelled, texts_of(labelled, released, crosswalk))
    return Task(kept, texts, parts_of(kept, rng))


def compared(
    task: Task,
    model: str,
    rng: Generator,
    settings: ClassifierSettings,
    *,
    setting: Setting = "protected",
    vectors: Vectors | None = None,
    released_vectors: Vectors | None = None,
    seeds: int = 1,
    control: bool = True,
) -> list[Finding]:
    """The scores of both sides of a task by one model, and what was lost; of networks over several seeds.

    Args:
        vectors, released_vectors: word vectors of the original and of the released text, for networks.
        seeds: runs of a network, whose mean counts.
        control: also train on shuffled labels, once a side.
    """
    runs = [int(rng.integers(2**31)) for _ in range(seeds if model in NEURAL else 1)]
    plain, protected = task.labelled.texts, task.released

    def run(texts: Sequence[str], start: Vectors | None, seeds: Sequence[int], shuffled: bool) -> list[Predictions]:
        given = {"train_texts": texts, "test_texts": texts, "vectors": start, "settings": settings}
        return [predict(model, task.labelled, task.parts, s, shuffled=shuffled, **given) for s in seeds]  # type: ignore[arg-type]

    other = {
        "protected": (protected, released_vectors),
        "vectors-on-plain": (plain, released_vectors),
        "plain-vectors-on-protected": (protected, vectors),
    }[setting]
    ours, theirs = run(plain, vectors, runs, False), run(*other, runs, False)
    shuffled = [run(*side, runs[:1], True) if control else [] for side in ((plain, vectors), other)]
    detail = {**task.detail, "model": model, "setting": setting}
    return compare(task, ours, theirs, rng, detail, shuffled)


def compare(
    task: Task,
    original: Sequence[Predictions],
    released: Sequence[Predictions],
    rng: Generator,
    detail: Mapping[str, Any],
    shuffled: Sequence[Sequence[Predictions]] = ((), ()),
) -> list[Finding]:
    """Findings of predictions that were made already: both sides and the loss, of each metric."""
    targets = task.labelled.targets
    majority = majority_of(targets[task.parts.learn], len(task.parts.test))
    patients = [task.labelled.patients[i] for i in task.parts.test]
    scores = Scores(targets[task.parts.test], patients, majority, detail)
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
    """Read both sides into one task, in order to run several models on it (`compared`).

    Without released notes the original stands on both sides. Raises InputError as `read_labelled`, `texts_of`,
    `parts_of`.
    """
    limit, least = settings.documents, settings.min_class
    labelled = read_labelled(original, label, rng, limit=limit, min_class=least, separator=settings.separator)
    return _task(labelled, released, crosswalk, rng)


def _nothing(detail: Mapping[str, Any], why: str) -> Finding:
    return Finding("utility.classification", None, 0, "higher", source=SOURCE, detail={**detail, "why": why})
