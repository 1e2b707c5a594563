"""An audit from notes to findings: plan the models, train missing ones, compare."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.compare import compare
from clinveil.attacks.models.leaveout.data import AuditData, load_data, pick_units, prepare
from clinveil.attacks.models.leaveout.models import Audit, NetworkModel, audit_of
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.core.runfolder import fingerprint
from clinveil.core.tokens import lookup_form
from clinveil.core.types import Floats, Say
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.recipe import Recipe
from clinveil.lm.train import NeuralTask
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Result, Store, perform_all
from clinveil.vectors.table import Vectors

AHEAD = 1_000
TIMED_STEPS = 6
INITIAL = "initial.safetensors"


def train_audits(
    store: Store, audits: Sequence[Audit], over: Map, say: Say, *, workers: int, most_hours: float
) -> None:
    """Train all models not yet trained; reports the estimated hours. Raises UsageError if they exceed the limit."""
    waiting = [one for audit in audits for one in audit.models if not store.done(one)]
    networks = [one for one in waiting if isinstance(one, NetworkModel)]
    if networks:
        _refuse_too_slow(audits[0], networks, say, workers, most_hours)
    first = [one for audit in audits for one in audit.shared]
    rest = [one for audit in audits for one in audit.models if one not in first]
    for stage in (first, rest):
        perform_all(store, stage, over, say)


def _refuse_too_slow(audit: Audit, waiting: Sequence[NetworkModel], say: Say, workers: int, most_hours: float) -> None:
    """Report the estimated training time of the missing models, based on the first audit; refuse if too long."""
    model = audit.full if isinstance(audit.full, NetworkModel) else waiting[0]
    data, epochs = load_data(model.data), model.recipe.epochs
    seconds = seconds_of_one(data, model.recipe, model.device)
    passes = sum(one.recipe.epochs for one in waiting) / epochs
    hours = seconds * max(1.0, passes / workers) / 3600
    tokens = data.encoded.ids.size * epochs / seconds
    say(f"{len(waiting)} models of {tokens:,.0f} tokens a second and {seconds:,.0f} s each: about {duration(hours)}")
    refuse_too_long(hours, most_hours)


def seconds_of_one(data: AuditData, recipe: Recipe, device: str) -> float:
    """Estimate the seconds of one model's training from a few steps of the real network on this machine."""
    from clinveil.core.neural import device_named, seeded
    from clinveil.lm.train import plan_of, refuse_too_large
    from clinveil.lm.training import Training

    refuse_too_large(data.vocabulary.size, recipe, device)
    plan = plan_of(data.encoded, recipe, 0)
    with seeded(0):
        place = device_named(device)
        training = Training(data.vocabulary.size, recipe, plan, seed=0, device=place, validate=lambda network: 1.0)
        training.fit(2)
        began, before = time.monotonic(), training.progress.step
        training.fit(before + TIMED_STEPS)
        made = max(1, training.progress.step - before)
        return (time.monotonic() - began) / made * plan.steps


def duration(hours: float) -> str:
    """Format a duration in hours, minutes or seconds."""
    seconds = 3600 * hours
    if hours >= 0.1:
        return f"{hours:.1f} hours"
    if seconds >= 120:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def refuse_too_long(hours: float, most: float) -> None:
    """Raise UsageError if the plan cannot finish in time."""
    if hours > most:
        hint = f"use fewer --units, a smaller --size, or --max-hours {max(0.1, hours * 1.5):.1f}"
        raise UsageError(f"this would take about {duration(hours)}, more than --max-hours {most:g}", hint=hint)


def audit_notes(
    notes: PlainNotes,
    settings: LeaveOutSettings,
    seed: int,
    store: Store,
    out: Path,
    say: Say,
    *,
    public: PlainNotes | None = None,
    over: Map | None = None,
) -> list[Finding]:
    """Select units, train missing models, compare; writes `units-*.csv` (numbers only) to `out`.

    Args:
        public: notes to pretrain on. over: how tasks are distributed (default: one process per worker).

    Raises:
        InputError, UsageError: as in the steps; completed steps are kept.
    """
    rng, by_note = np.random.default_rng(seed), settings.unit == "note"
    units = pick_units(notes, settings.units, rng, by_note=by_note)
    data = prepare(notes, units, settings, rng, public=public)
    say(f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in the vocabulary")
    over = over or processes(settings.workers, ahead=AHEAD)
    weights = _first_weights(data, settings, seed, store, public)
    perform_all(store, list(weights.values()), over, say)
    files = {"": None, **{name: store.folder(work) / INITIAL for name, work in weights.items()}}
    folder, words = data.save(store.root), data.encoded.ids.size if settings.from_text else 0
    audits = [audit_of(folder, settings, seed=seed, words=words, initial=at, name=name) for name, at in files.items()]
    train_audits(store, audits, over, say, workers=settings.workers, most_hours=settings.max_hours)
    owners = [notes.patients[rows[0]] if by_note else f"unit {unit}" for unit, rows in enumerate(units)]
    found: list[Finding] = []
    for audit in audits:
        for text in (False, True) if settings.from_text else (False,):
            compared = compare(store, audit, np.random.default_rng(seed), owners, text=text)
            found += compared.findings
            name = "-".join(["units", audit.name.replace(" ", "-") or "random", "text" if text else "model"])
            private_text(out / f"{name}.csv", compared.table)
    return found


def _first_weights(
    data: AuditData, settings: LeaveOutSettings, seed: int, store: Store, public: PlainNotes | None
) -> dict[str, Pretrained | Embedded]:
    """Return the tasks that create non-random initial weights, by name."""
    recipe, made = settings.audit_recipe(), dict[str, Pretrained | Embedded]()
    if recipe is not None and public is not None:
        place = AuditData(encode(public.texts, data.vocabulary), data.vocabulary, ()).save(store.root)
        start = replace(recipe, plan="rows", schedule="fixed")
        made["pretrained"] = Pretrained(place, start, seed, settings.lm.device)
    if recipe is not None and settings.init_vectors is not None:
        hashed = fingerprint(settings.init_vectors)
        made["word vectors"] = Embedded(data.save(store.root), recipe, seed, settings.init_vectors, hashed)
    return made


@dataclass(frozen=True)
class Pretrained:
    """Train on public notes (the training part of `data`), and keep the weights."""

    data: Path
    recipe: Recipe
    seed: int
    device: str = "cpu"

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        return f"{self.recipe.kind} of public notes"

    def identity(self) -> Mapping[str, Any]:
        """Return what the weights depend on."""
        return {"data": self.data.name, "recipe": self.recipe.as_dict(), "seed": self.seed, "device": self.device}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, and write the weights."""
        from clinveil.lm.network import weights_of, write_tensors

        data = load_data(self.data)
        task = NeuralTask(data.encoded, data.vocabulary, self.recipe, self.seed, self.device)
        model, history = task.run()
        write_tensors(folder / INITIAL, weights_of(model.network), {})
        return history


@dataclass(frozen=True)
class Embedded:
    """Random initial weights, except that tokens with a word vector get it, rescaled to the usual spread."""

    data: Path
    recipe: Recipe
    seed: int
    vectors: Path
    vectors_sha256: str

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        return f"first weights from {self.vectors.name}"

    def identity(self) -> Mapping[str, Any]:
        """Return what the weights depend on."""
        own = {"data": self.data.name, "recipe": self.recipe.as_dict(), "seed": self.seed}
        return own | {"vectors": self.vectors_sha256}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the weights."""
        from clinveil.core.neural import seeded
        from clinveil.lm.network import build, weights_of, write_tensors
        from clinveil.vectors.files import load_vectors

        data, vectors = load_data(self.data), load_vectors(self.vectors)
        words = data.vocabulary.as_dict()["words"]
        with seeded(self.seed):
            weights = weights_of(build(data.vocabulary.size, self.recipe))
        found = _use_vectors(weights["input"].numpy(), words, vectors)
        write_tensors(folder / INITIAL, weights, {})
        return {"words": len(words), "found": found}


def _use_vectors(matrix: Floats, words: list[str], vectors: Vectors) -> int:
    """Overwrite the rows of words that have a vector; returns their number."""
    if vectors.dim != matrix.shape[1]:
        hint = f"pass --width {vectors.dim}, or vectors of {matrix.shape[1]} dimensions"
        raise InputError(f"the vectors have {vectors.dim} dimensions, the model {matrix.shape[1]}", hint=hint)
    rows = [(row, vectors.ids[form]) for row, word in enumerate(words, 3) if (form := lookup_form(word)) in vectors.ids]
    if not rows:
        raise InputError("no word of the notes has a vector", hint="pass vectors of the same language")
    to, of = (np.array(column) for column in zip(*rows, strict=True))
    own = vectors.matrix.astype(np.float64)
    spread = float(own.std())
    if not np.isfinite(spread) or spread == 0:
        raise InputError("all vectors are equal, or their values are too large", hint="pass trained vectors")
    matrix[to] = own[of] * (float(matrix.std()) / spread)
    return len(rows)
