"""Train on a release and test on real notes.

The utility tasks of every release, in the order of the report. Each finding is a share of the gap
between a floor (words without order, or drawn at random) and a ceiling (real notes): 0 is useless,
and 1 is as good as real notes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from clinveil.core import (
    LABEL,
    WORKERS,
    Finding,
    InputError,
    NotesSettings,
    Say,
    UsageError,
    group,
    setting,
)
from clinveil.corpus import Corpus, SourceIds, rows
from clinveil.stats import MeasureSpec
from clinveil.utility.classifiers import CLASSIFIERS
from clinveil.utility.evaluations import (
    VAULT,
    Evaluated,
    Evaluation,
    EvaluationInput,
    as_corpus,
    as_crosswalk,
    name_of,
)
from clinveil.utility.labelled import WrongNotes
from clinveil.utility.shares import SOURCE
from clinveil.utility.tasks.fidelity import two_sample
from clinveil.utility.tasks.labels import ArmPredictions, Label
from clinveil.utility.tasks.models import language_model, vectors
from clinveil.utility.tasks.notes import Sides, read_texts
from clinveil.utility.tasks.sequence import sequence

UTILITY_SEED = 20260101  # public, and the same for every release, so that releases can be compared


def useful(
    context: Any, labels: Sequence[str], models: Sequence[str], pairs: Sequence[Path] = ()
) -> list[Finding]:
    """Measure what a recipient can do with a release.

    Args:
        context: `Sides`, or an object with the same attributes. Without `notes` the released notes
            describe no particular real notes.
        labels: columns to classify by. models: classifiers. pairs: files of word pairs with human
            scores.

    Returns:
        `utility.transfer`, `utility.sequence`, `utility.language_model`, `utility.two_sample`
        (without a crosswalk), `utility.vectors` (with pairs) and `utility.within`. A finding that
        cannot be measured has no value, but a reason.

    Raises WrongNotes if the original lacks a label column or the crosswalk lacks a released note;
    ValueError without both sides.
    """
    release = Sides.of(context)
    arms: list[ArmPredictions] = []
    missing: list[tuple[str, InputError]] = []
    for label in labels:
        try:
            read = Label.of(release, label, _rng())
        except WrongNotes:
            raise
        except InputError as error:
            missing.append((label, error))
        else:
            arms += [ArmPredictions(read, model) for model in models]

    def by_label(measure: str) -> list[Finding]:
        def task(each: ArmPredictions) -> list[Finding]:
            return [each.finding(measure, _rng())]

        tried = [_tried(measure, partial(task, each), each.label.real.label) for each in arms]
        return [
            *(f for each in tried for f in each),
            *(_unmeasured(measure, error, label) for label, error in missing),
        ]

    return [
        *by_label("utility.transfer"),
        *_without_labels(release, pairs),
        *by_label("utility.within"),
    ]


def _without_labels(release: Sides, pairs: Sequence[Path]) -> list[Finding]:
    """Run the tasks without labels: word order, language model and word vectors."""
    try:
        texts = read_texts(release, _rng())
    except WrongNotes:
        raise
    except InputError as error:
        return [_unmeasured(name, error) for name in ("utility.sequence", "utility.language_model")]
    # Notes that were written, not changed, are compared with the real ones.
    unpaired = (
        [] if release.paired else _tried("utility.two_sample", lambda: two_sample(texts, _rng()))
    )
    return [
        *_tried("utility.sequence", lambda: sequence(release, texts, _rng())),
        *_tried("utility.language_model", lambda: language_model(release, texts, _rng())),
        *unpaired,
        *vectors(release, texts, pairs, _rng()),
    ]


def _rng() -> np.random.Generator:
    return np.random.default_rng(UTILITY_SEED)


def _tried(measure: str, task: Callable[[], list[Finding]], label: str = "") -> list[Finding]:
    """Run a task; return a finding without value if the notes do not suffice."""
    try:
        return task()
    except InputError as error:
        return [_unmeasured(measure, error, label)]


def _unmeasured(measure: str, error: InputError, label: str = "") -> Finding:
    why = f"Column {label!r} cannot be used: {error.problem}." if label else f"{error.problem}."
    spec = MeasureSpec(measure=measure, better="higher", source=SOURCE)
    return spec.missing(why, labels=(label,) if label else ())


class Transfer(Evaluation):
    """Train on a release, test on real notes: classifiers, negation, language model, word vectors.

    Each value is a share of the gap between a floor and a ceiling (models trained on real notes).
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "original": EvaluationInput(
            "Real notes to test on: a file or a folder.", "--original", required=True
        ),
        "released": EvaluationInput("Released notes to train on.", "--released", required=True),
        "pairs": EvaluationInput("Word pairs with human scores; repeatable.", "--pairs", many=True),
        "crosswalk": VAULT,
    }
    shown = "label model unpaired"
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    workers: int = WORKERS
    model: tuple[str, ...] = setting(
        ("tfidf-lr",), "Classifiers; repeatable.", flag="classifier", members=CLASSIFIERS
    )
    unpaired: bool = setting(
        False, "Released notes are of other patients; both files have the label."
    )

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return the utility tasks of every release; their seed is fixed."""
        if self.unpaired and arguments.get("crosswalk") is not None:
            raise UsageError("--unpaired and --vault exclude each other", hint="pass one of them")
        crosswalk = as_crosswalk(arguments.get("crosswalk"))
        split = crosswalk.split if isinstance(crosswalk, SourceIds) else None
        unpaired = self.unpaired or (split is not None and not crosswalk)
        real = as_corpus(arguments["original"], self.notes, label=self.label)
        label = self.label if unpaired else ()
        other = as_corpus(arguments["released"], self.notes.but(preset="none"), label=label)
        notes = None if unpaired else crosswalk if crosswalk is not None else _same_ids(real, other)
        sides = Sides(
            real,
            other,
            notes=notes,
            workers=self.workers,
            test_patients=None if split is None else split.patients,
            unread=split is not None and split.unread,
        )
        findings = useful(sides, self.label, self.model, arguments.get("pairs") or ())
        title = (
            f"{name_of(arguments['released'], 'released notes')} tested on"
            f" {name_of(arguments['original'], 'real notes')}"
        )
        return Evaluated(findings, title, UTILITY_SEED, tuple(filter(None, map(_scores, findings))))


def _same_ids(real: Corpus, released: Corpus) -> dict[str, str]:
    """Map each released id to itself. Raises InputError if the original notes have none of them."""
    ids = {note.note_id for note in rows(released)}
    if not any(note.note_id in ids for note in rows(real)):
        hint = "pass the release's vault with --vault, or --unpaired for notes of other patients"
        raise InputError("original and released have no note id in common", hint=hint)
    return {note: note for note in ids}


def _scores(finding: Finding) -> str:
    """Return the scores behind a share in one line, or "" if there are none."""
    scores = finding.scores
    if scores is None or scores.score is None:
        return ""
    name = ", ".join((finding.measure.partition(".")[2], *finding.labels))
    line = f"{name}: {scores.metric} {scores.score:.3f}, floor {scores.floor:.3f}"
    line += f", ceiling {scores.ceiling:.3f}"
    if scores.of_ceiling is not None:
        ends = f"{scores.of_ceiling_low:.1%} to {scores.of_ceiling_high:.1%}"
        line += f"; {scores.of_ceiling:.1%} of real ({ends})"
    return f"{line}; tested on {finding.tested_on}" if finding.tested_on else line
