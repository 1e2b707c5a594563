"""Compare classifiers on original and protected notes (paper A).

Both sides have the same notes, split and seeds; as in paper A, the released side trains and tests
on protected text. Chance is the majority class, and the control is trained on shuffled labels.
Intervals resample test patients; differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from numpy.random import Generator, default_rng

from clinveil.core import (
    LABEL,
    NO_NUMBERS,
    SEED,
    Finding,
    NotesSettings,
    Numbers,
    Say,
    UsageError,
    group,
    setting,
)
from clinveil.utility.classifiers import (
    CLASSIFIERS,
    ClassifierSettings,
    Predictions,
    TrainTestTexts,
    predict,
)
from clinveil.utility.evaluations import (
    VAULT,
    Evaluated,
    Evaluation,
    EvaluationInput,
    as_corpus,
    as_crosswalk,
    name_of,
)
from clinveil.utility.labelled import (
    ClassifiedNotes,
    RowsOfSplit,
    paired,
    parts_of,
    read_labelled,
    texts_of,
)
from clinveil.utility.scores import ORIGINAL, RELEASED, Scores, majority_of


@dataclass(frozen=True)
class Task:
    """Labelled notes, their released texts in the same order, and the split that all settings
    share.
    """

    labelled: ClassifiedNotes
    released: list[str]
    parts: RowsOfSplit

    @property
    def numbers(self) -> Numbers:
        """Counts for every finding."""
        return {
            **self.labelled.numbers,
            "train": len(self.parts.learn),
            "test": len(self.parts.test),
            "near_duplicates": self.parts.duplicates,
        }


def evaluate(
    original: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch] | None,
    label: str,
    rng: Generator,
    settings: ClassifierSettings,
    *,
    crosswalk: Mapping[str, str] | None = None,
) -> Task:
    """Read both sides into a task for `compared`; without released notes, the original is used for
    both.

    Args:
        label: column of the original. crosswalk: released note id -> source id; None if the ids are
            equal.

    Raises InputError as `read_labelled`, `texts_of` and `parts_of`.
    """
    labelled = read_labelled(
        original,
        label,
        rng,
        limit=settings.max_documents,
        min_class=settings.min_class,
        separator=settings.separator,
    )
    texts = labelled.texts
    if released is not None:
        labelled, texts = paired(labelled, texts_of(labelled, released, crosswalk))
    return Task(labelled, texts, parts_of(labelled, rng))


def compared(
    task: Task,
    model: str,
    rng: Generator,
    *,
    control: bool = True,
) -> list[Finding]:
    """Return the scores of a model on both sides of a task, and the loss.

    `control`: also train on shuffled labels, once per side.
    """
    seed = int(rng.integers(2**31))

    def run(side: TrainTestTexts, *, shuffled: bool = False) -> list[Predictions]:
        return [predict(model, task.labelled, task.parts, seed, side, shuffled=shuffled)]

    sides = [TrainTestTexts(texts, texts) for texts in (task.labelled.texts, task.released)]
    original, released = (run(side) for side in sides)
    controls = [run(side, shuffled=True) if control else [] for side in sides]
    labels = ("protected", task.labelled.label, model)
    return compare(task, original, released, rng, labels, shuffled=controls)


def compare(
    task: Task,
    original: Sequence[Predictions],
    released: Sequence[Predictions],
    rng: Generator,
    labels: tuple[str, ...],
    numbers: Numbers = NO_NUMBERS,
    shuffled: Sequence[Sequence[Predictions]] = ((), ()),
) -> list[Finding]:
    """Return the findings of given predictions: both sides and the loss, for each metric.

    Args:
        labels: the setting, the label and the model. numbers: further numbers of every finding.
    """
    targets = task.labelled.targets
    tested = task.parts.test
    majority = majority_of(targets[task.parts.learn], len(tested))
    patients = [task.labelled.patients[i] for i in tested]
    scores = Scores(targets[tested], patients, majority, labels, {**task.numbers, **numbers})
    ours, theirs = ([p.test for p in side] for side in (original, released))
    controls = [[p.test for p in side] for side in shuffled]
    findings = []
    for metric in scores.metrics:
        findings.append(scores.side(metric, ORIGINAL, ours, controls[0], rng, _chosen(original)))
        findings.append(scores.side(metric, RELEASED, theirs, controls[1], rng, _chosen(released)))
        findings.append(scores.loss(metric, ours, theirs, rng))
    return findings


def _chosen(runs: Sequence[Predictions]) -> dict[str, float]:
    if len(runs) != 1:
        return {}
    return {f"chosen_{name}": value for name, value in runs[0].chosen.items()}


class Classification(Evaluation):
    """Train classifiers on both sides with one split by patient; report F1, accuracy, loss, chance
    and control.
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "original": EvaluationInput("Original notes with the label.", "--original", required=True),
        "released": EvaluationInput(
            "Protected notes (default: score the original notes).", "--released"
        ),
        "crosswalk": VAULT,
    }
    shown = "label model seed"
    training: ClassifierSettings = group(ClassifierSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    seed: int | None = SEED
    model: tuple[str, ...] = setting(
        ("lr",), "Classifiers; repeatable.", flag="classifier", members=CLASSIFIERS
    )
    control: bool = setting(True, "Also train on shuffled labels.")

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return the scores of every label and model on both sides, and the losses."""
        if not self.label:
            raise UsageError("no label to classify by", hint="pass --label COLUMN")
        released = arguments.get("released")
        crosswalk = as_crosswalk(arguments.get("crosswalk"))
        findings = list[Finding]()
        for label in self.label:
            rng = default_rng(seed)
            other = (
                None
                if released is None
                else as_corpus(released, self.notes.but(preset="none")).batches()
            )
            original = as_corpus(arguments["original"], self.notes, label=self.label).batches()
            task = evaluate(original, other, label, rng, self.training, crosswalk=crosswalk)
            for model in self.model:
                say(f"{label}: {model} on {len(task.labelled)} notes")
                findings += compared(task, model, rng, control=self.control)
        if released is None:
            findings = [finding for finding in findings if finding.series == ORIGINAL]
        against = "itself" if released is None else name_of(released, "released notes")
        return Evaluated(
            findings, f"{name_of(arguments['original'], 'notes')} against {against} (seed {seed})"
        )
