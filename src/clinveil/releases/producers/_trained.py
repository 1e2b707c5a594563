"""Private releases by a network trained with noise (DP-SGD); vocabulary, labels and number of notes
are public.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from clinveil.core.errors import UsageError
from clinveil.core.neural import device_named, need_torch
from clinveil.lm.layout import LayoutVocabulary, train_layout
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import EncodedNotes, PlainNotes, SyntheticNote, encode
from clinveil.lm.pretrained import PublicModel
from clinveil.lm.private.audit import Audit
from clinveil.lm.private.public_text import SEEN, PublicText
from clinveil.lm.private.sgd import SgdPlan
from clinveil.lm.recipe import PRETRAINED, Recipe
from clinveil.lm.sampling import SamplingConfig, Steering, batch_size_for
from clinveil.lm.sequences import PlannedNote
from clinveil.lm.train import NeuralTask
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.spending import Spending, spend
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.synthesis_model import STATE, Counts, draw_notes, labelled
from clinveil.releases.synthesis_rows import LabelColumns

DEFAULTS = {
    "optimizer": "adamw",
    "rate": 2e-3,
    "dropout": 0.0,
    "clip": 1.0,
    "schedule": "fixed",
    "plan": "rows",
}


def refuse_network(settings: ReleaseSettings) -> None:
    """Raise UsageError or MissingExtra for a network that cannot be trained privately."""
    need_torch()
    if settings.lm.plan == "stream" or settings.lm.schedule == "annealed":
        raise UsageError("synthetic.epsilon requires lm.plan rows and lm.schedule fixed")
    device_named(settings.lm.device)
    recipe_of(settings)


def recipe_of(settings: ReleaseSettings) -> Recipe:
    """Return the recipe, with defaults for noisy gradients."""
    given = settings.lm.model_fields_set
    rest = {"rate", "optimizer"} if settings.lm.model == PRETRAINED else set()
    defaults = {k: v for k, v in DEFAULTS.items() if k not in given | rest}
    return replace(settings.lm.recipe(), **defaults)  # type: ignore[arg-type]


def sgd_plan(patients: int, settings: ReleaseSettings) -> SgdPlan:
    """Return the plan: lm.lanes patients in a step, lm.epochs passes."""
    how = settings.synthetic
    lm = settings.lm
    assert how.epsilon is not None
    start = lm.model == PRETRAINED
    return SgdPlan.of(patients, how.epsilon, how.delta, lm.lanes, lm.epochs, pretrained=start)


@dataclass(frozen=True)
class PrivateRelease:
    """What was spent, entries for the manifest, the notes, how many they are, and the audit of a
    noisy table.
    """

    spending: Spending
    about: dict[str, Any]
    notes: Iterator[SyntheticNote] = field(repr=False)
    count: int
    audit: Audit | None = None


def _drawn(
    job: ReleaseContext, model: LanguageModel, labels: LabelColumns, count: int
) -> Iterator[SyntheticNote]:
    """Yield notes of a privately trained model, label after label in turn; each is a patient of its
    own.
    """
    how = job.settings.synthetic
    counts = Counts()
    vocabulary = model.vocabulary
    n = len(labels.labels)
    assert isinstance(vocabulary, LayoutVocabulary)
    steering = Steering(np.zeros((n, vocabulary.size)), np.ones((n, 1)), vocabulary)
    drawing = SamplingConfig(
        batch_size_for(count, how.batch), how.longest, how.temperature, steering
    )
    plan = (PlannedNote(number, 0, number % n) for number in range(2**31))
    with model.ready(double=how.doubles(model.kind), threads=how.threads):
        yield from draw_notes(
            model, job.key, drawing, lambda: counts.notes >= count, counts, plan, labels.named
        )


def trained_release(
    job: ReleaseContext,
    plan: SgdPlan,
    public: PublicText,
    labels: LabelColumns,
    training: PlainNotes,
) -> PrivateRelease:
    """Print the expected time, enter the spending in the ledger, train (or resume), and yield notes
    of the model.
    """
    from clinveil.lm.private.training import PatientPlan, Randomness

    settings = job.settings
    prefixes = labels.prefixes
    lines = [line for text in public.texts for line in text.splitlines(keepends=True)]
    texts = [*lines, *prefixes * SEEN]
    # Pieces that occur in two lines of the public text, and those of the labels.
    vocabulary = train_layout(texts, [str(row) for row in range(len(texts))], SEEN)
    counted = encode(public.texts, vocabulary)
    # One patient at a time is in memory.
    recipe = replace(
        recipe_of(settings), lanes=1, epochs=-(-plan.steps * plan.batch // plan.patients)
    )
    start = None
    if settings.synthetic.init is not None:
        model = PublicModel.open(settings.synthetic.init)
        recipe = model.recipe(recipe)
        start = partial(model.network, vocabulary, recipe, counted)
    entered = labelled(training, prefixes)
    by_patient: dict[str, list[str]] = {}
    for patient, text in zip(entered.patients, entered.texts, strict=True):
        by_patient.setdefault(patient, []).append(text)
    patients = [encode(texts, vocabulary) for texts in by_patient.values()]
    described = repr((recipe, plan, plan.noise)).encode()
    question = sha256(described + b"".join(one.ids.tobytes() for one in patients)).hexdigest()
    batches = PatientPlan(patients, plan, Randomness(job.key, question), recipe.window)
    task = NeuralTask(
        counted,
        vocabulary,
        recipe,
        0,
        settings.lm.device,
        settings.synthetic.threads,
        state=job.folder.vault / STATE,
        start=start,
        prefixes=[vocabulary.encode(prefix).tolist()[:-1] for prefix in prefixes],
        private=batches,
    )
    job.say(f"about {_minutes(task, counted, plan):,.0f} minutes of training")
    spending = spend(job, plan.noise, plan.delta, question)
    trained, _ = task.run(job.say)
    about = {
        "noise": plan.noise.sigma,
        "rate": plan.noise.rate,
        "steps": plan.noise.steps,
        "clip": recipe.clip,
    }
    count = settings.synthetic.count or plan.patients
    return PrivateRelease(spending, about, _drawn(job, trained, labels, count), count)


def _minutes(task: NeuralTask, public: EncodedNotes, plan: SgdPlan) -> float:
    """Return the expected minutes of the training, from gradients of public text."""
    from clinveil.core.neural import seeded
    from clinveil.lm.private.training import PrivateTraining, patient_batch

    with seeded(0, threads=task.threads):
        training = task.training()
        assert isinstance(training, PrivateTraining)
        batches = [patient_batch(public, task.recipe.window, step) for step in range(3)]
        training.clipped_sum(batches[:1])
        began = time.monotonic()
        training.clipped_sum(batches[1:])
        return (time.monotonic() - began) / 2 * plan.batch * plan.steps / 60
