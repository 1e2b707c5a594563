"""The models of an audit, each a resumable task: of all units, without one of them, or with another seed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.data import AuditData, LeaveOutSettings, load_data
from clinveil.attacks.models.membership import written
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import save_array
from clinveil.core.types import Say
from clinveil.lm.model import LanguageModel, Logs
from clinveil.lm.models.ngram import train_ngram
from clinveil.lm.plan import Plan
from clinveil.lm.recipe import CountedKind, Recipe, kind_of
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.train import NeuralTask, notes_plan, plan_of, refuse_too_large
from clinveil.scale.local import Map
from clinveil.scale.tasks import Result, Store, perform_all

TIMED_STEPS = 6
OTHER_SEEDS = 1_000  # offset of the seeds of further trainings
History = dict[str, Any]  # JSON-serializable training history


@dataclass(frozen=True, kw_only=True)
class AuditModel:
    """One model, and its log-probabilities of the audited units in `logs.npy`, unit by unit."""

    data: Path  # the folder of the audit's data, named by its digest
    kind: str
    mode: str  # `exact` or `compat`
    seed: int
    left_out: int | None = None  # index of the unit
    write: int = 0  # words of synthetic notes to generate; their n-grams also score the units (`text-logs.npy`)
    recipe: Recipe | None = None  # of a network; None for a count model, whose training is deterministic
    keep: bool = False  # keep a network's weights as a checkpoint in the task's folder
    device: str = "cpu"

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        name = f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}" if self.recipe else self.kind
        which = "of all units" if self.left_out is None else f"without unit {self.left_out + 1}"
        return f"{name}, {which}, seed {self.seed}"

    def identity(self) -> Mapping[str, Any]:
        """Return what the result depends on."""
        names = ("kind", "mode", "seed", "left_out", "write", "keep", "device")
        recipe = self.recipe.as_dict() if self.recipe else None
        return {"data": self.data.name, "recipe": recipe, **{name: getattr(self, name) for name in names}}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, score the units, and write the requested output."""
        data = load_data(self.data)
        model, history = self.train(data, folder)
        with model.ready():
            save_array(folder / "logs.npy", _units_logs(model, data))
            if self.write:  # what synthetic notes disclose without their model (paper C, footnote 6)
                how = SamplingConfig(batch_size_for(len(data.encoded)), int(data.encoded.lengths.max()))
                notes = written(model, self.write, self.seed, how)
                save_array(folder / "text-ids.npy", notes.ids)
                save_array(folder / "text-logs.npy", _units_logs(train_ngram(notes, data.vocabulary), data))
        return history

    def train(self, data: AuditData, folder: Path) -> tuple[LanguageModel, History]:
        """Return the model and its training history; `keep` writes a network to the folder."""
        kind = kind_of(self.kind)
        if isinstance(kind, CountedKind):
            return kind.count(data.without(self.left_out), data.vocabulary), {}
        from clinveil.core.neural import seeded
        from clinveil.lm.files import save_model
        from clinveil.lm.network import NeuralModel

        assert self.recipe is not None
        about = (data.encoded, data.vocabulary, self.recipe, self.seed, self.device)
        task = NeuralTask(*about, validation=data.validation)
        with seeded(self.seed):
            training = task.training(self.plan(data, self.recipe))
            training.fit()
            model = NeuralModel(data.vocabulary, training.finish())
        if self.keep:
            save_model(model, folder / "model", {"seed": self.seed, **training.history})
        return model, training.history

    def plan(self, data: AuditData, recipe: Recipe) -> Plan:
        """Return the training plan of a network. `exact`: the unit is masked. `compat`: its notes are removed."""
        if self.mode == "compat":
            return plan_of(data.without(self.left_out), recipe, self.seed)
        rows = notes_plan(data.encoded, recipe, self.seed)
        return rows if self.left_out is None else rows.without(data.units[self.left_out])


def _units_logs(model: LanguageModel, data: AuditData) -> Logs:
    """Return log P of all tokens of the units' notes, unit by unit."""
    return np.concatenate(list(model.score([note for unit in range(len(data.units)) for note in data.notes_of(unit)])))


def load_logs(store: Store, model: AuditModel, data: AuditData, name: str = "logs.npy") -> list[Logs]:
    """Return a finished model's log-probabilities of each unit. Raises InputError if they are not readable."""
    lengths = [int(data.encoded.lengths[rows].sum()) for rows in data.units]
    folder = store.folder(model)
    try:
        flat = np.load(folder / name, allow_pickle=False)
        if flat.shape != (sum(lengths),):
            raise ValueError
    except (OSError, ValueError, EOFError):
        hint = f"remove tasks/{folder.name}, and run the same command again"
        raise InputError(f"contains no readable {name}", where=folder.name, hint=hint) from None
    return list(np.split(flat, np.cumsum(lengths)[:-1]))


@dataclass(frozen=True)
class Audit:
    """All models of one audit."""

    data: Path
    full: AuditModel  # of all units
    reseeded: tuple[AuditModel, ...]
    left_out: tuple[AuditModel, ...]
    name: str = ""  # of an audit that differs from the others of a study
    other_seeds: tuple[tuple[AuditModel, ...], ...] = ()  # `left_out` under each further training seed

    @property
    def models(self) -> tuple[AuditModel, ...]:
        """Return all models, the full model first."""
        others = (one for models in self.other_seeds for one in models)
        return (self.full, *self.reseeded, *self.left_out, *others)


def audit_of(
    folder: Path, settings: LeaveOutSettings, *, seed: int, words: int = 0, name: str = "", keep: bool = False
) -> Audit:
    """Return the models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes per model, 0 for none.
        keep: keep the model of all units as a checkpoint.
    """
    recipe, units = settings.audit_recipe(), range(len(load_data(folder).units))
    own: dict[str, Any] = {"data": folder, "kind": settings.lm.model, "mode": settings.mode, "write": words}
    full = AuditModel(**own, seed=seed, recipe=recipe, device=settings.lm.device)
    left_out = tuple(replace(full, left_out=unit) for unit in units)
    if recipe is None:
        return Audit(folder, full, (), left_out, name)
    reseeded = tuple(replace(full, seed=seed + OTHER_SEEDS + i) for i in range(settings.reseeds))
    others = (seed + OTHER_SEEDS + i for i in range(settings.seeds - 1))
    other_seeds = tuple(tuple(replace(one, seed=other) for one in left_out) for other in others)
    return Audit(folder, replace(full, keep=keep), reseeded, left_out, name, other_seeds)


def train_audits(
    store: Store, audits: Sequence[Audit], over: Map, say: Say, *, workers: int, most_hours: float
) -> None:
    """Train all models not yet trained; reports the estimated hours. Raises UsageError if they exceed the limit."""
    models = [one for audit in audits for one in audit.models]
    networks = [(one, one.recipe) for one in models if one.recipe is not None and not store.done(one)]
    if networks:
        model, recipe = next(((one.full, one.full.recipe) for one in audits[:1] if one.full.recipe), networks[0])
        data, epochs = load_data(model.data), recipe.epochs
        seconds = seconds_of_one(data, recipe, model.device)
        passes = sum(own.epochs for _, own in networks) / epochs
        tokens, hours = data.encoded.ids.size * epochs / seconds, seconds * max(1.0, passes / workers) / 3600
        each = f"{tokens:,.0f} tokens a second and {seconds:,.0f} s each"
        say(f"{len(networks)} models of {each}: about {duration(hours)}")
        refuse_too_long(hours, most_hours)
    perform_all(store, models, over, say)


def seconds_of_one(data: AuditData, recipe: Recipe, device: str) -> float:
    """Estimate the seconds of one model's training from a few steps of the real network on this machine."""
    from clinveil.core.neural import device_named, seeded
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
