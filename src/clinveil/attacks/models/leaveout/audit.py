"""The models of an audit, each a resumable task: of all units, without one of them, or with another seed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.data import AuditData, load_data
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.attacks.models.membership import written
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import save_array
from clinveil.core.types import Say
from clinveil.lm.model import LanguageModel, Logs
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.plan import Plan, rows_plan
from clinveil.lm.recipe import CountedKind, Recipe, kind_of
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.train import NeuralTask, plan_of, refuse_too_large
from clinveil.scale.local import Map
from clinveil.scale.tasks import Result, Store, perform_all

TIMED_STEPS = 6
OTHER_SEEDS = 1_000  # offset of the seeds of further trainings
History = dict[str, Any]  # JSON-serializable training history


@dataclass(frozen=True, kw_only=True)
class AuditModel(ABC):
    """One model, and its log-probabilities of the audited units in `logs.npy`, unit by unit."""

    data: Path  # the folder of the audit's data, named by its digest
    kind: str
    mode: str  # `exact` or `compat`
    seed: int
    left_out: int | None = None  # index of the unit
    write: int = 0  # words of synthetic notes to generate; their n-grams also score the units (`text-logs.npy`)

    @property
    def name(self) -> str:
        """Return the name of the model for progress lines."""
        return self.kind

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        which = "of all units" if self.left_out is None else f"without unit {self.left_out + 1}"
        return f"{self.name}, {which}, seed {self.seed}"

    def identity(self) -> Mapping[str, Any]:
        """Return what the result depends on."""
        own = {"data": self.data.name, "kind": self.kind, "mode": self.mode, "seed": self.seed}
        return own | {"left_out": self.left_out, "write": self.write}

    @abstractmethod
    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Return the model and its training history; other output goes to the folder."""

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, score the units, and write the requested output."""
        data = load_data(self.data)
        model, history = self.train(data, folder, store)
        with model.ready():
            save_array(folder / "logs.npy", _units_logs(model, data))
            if self.write:
                save_array(folder / "text-logs.npy", self._logs_from_text(model, data, folder))
        return history

    def _logs_from_text(self, model: LanguageModel, data: AuditData, folder: Path) -> Logs:
        """Generate notes with the model and score the units by their n-grams; the text stays in the folder.

        Measures what synthetic notes disclose without their model (paper C, footnote 6).
        """
        lengths = data.encoded.lengths
        notes = written(model, self.write, self.seed, SamplingConfig(batch_size_for(len(lengths)), int(lengths.max())))
        save_array(folder / "text-ids.npy", notes.ids)
        return _units_logs(Ngram(notes, data.vocabulary), data)


@dataclass(frozen=True, kw_only=True)
class CountModel(AuditModel):
    """A unigram or n-gram model; its training is deterministic."""

    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Count the notes without the unit."""
        kind = kind_of(self.kind)
        if not isinstance(kind, CountedKind):
            raise TypeError(f"{self.kind} is not a count model")
        return kind.count(data.without(self.left_out), data.vocabulary), {}


@dataclass(frozen=True, kw_only=True)
class NetworkModel(AuditModel):
    """An LSTM or a GPT."""

    recipe: Recipe
    keep: bool = False  # keep the weights as a checkpoint in the task's folder
    device: str = "cpu"

    @property
    def name(self) -> str:
        """Return the name of the model for progress lines."""
        return f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}"

    def identity(self) -> Mapping[str, Any]:
        """Return what the result depends on."""
        own = {"recipe": self.recipe.as_dict(), "keep": self.keep, "device": self.device}
        return {**super().identity(), **own}

    def plan(self, data: AuditData) -> Plan:
        """Return the training plan. `exact`: the unit is masked. `compat`: its notes are removed."""
        if self.mode == "compat":
            return plan_of(data.without(self.left_out), self.recipe, self.seed)
        lanes, window, epochs = self.recipe.lanes, self.recipe.window, self.recipe.epochs
        rows = rows_plan(data.encoded, lanes=lanes, window=window, epochs=epochs, seed=self.seed)
        return rows if self.left_out is None else rows.without(data.units[self.left_out])

    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Train; `keep` also saves the model."""
        from clinveil.core.neural import seeded
        from clinveil.lm.files import save_model
        from clinveil.lm.network import NeuralModel

        about = (data.encoded, data.vocabulary, self.recipe, self.seed, self.device)
        task = NeuralTask(*about, validation=data.validation)
        with seeded(self.seed):
            training = task.training(self.plan(data))
            training.fit()
            model = NeuralModel(data.vocabulary, training.finish())
        if self.keep:
            save_model(model, folder / "model", {"seed": self.seed, **training.history})
        return model, training.history


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
    folder: Path,
    settings: LeaveOutSettings,
    *,
    seed: int,
    words: int = 0,
    name: str = "",
    keep: bool = False,
) -> Audit:
    """Return the models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes per model, 0 for none.
        keep: keep the model of all units as a checkpoint.
    """
    recipe, units = settings.audit_recipe(), range(len(load_data(folder).units))
    own: dict[str, Any] = {"data": folder, "kind": settings.lm.model, "mode": settings.mode}
    own |= {"seed": seed, "write": words}
    if recipe is None:
        counted = CountModel(**own)
        return Audit(folder, counted, (), tuple(replace(counted, left_out=unit) for unit in units), name)
    bare = NetworkModel(**own, recipe=recipe, device=settings.lm.device)
    left_out = tuple(replace(bare, left_out=unit) for unit in units)
    reseeded = tuple(replace(bare, seed=seed + OTHER_SEEDS + i) for i in range(settings.reseeds))
    others = (seed + OTHER_SEEDS + i for i in range(settings.seeds - 1))
    other_seeds = tuple(tuple(replace(one, seed=other) for one in left_out) for other in others)
    return Audit(folder, replace(bare, keep=keep), reseeded, left_out, name, other_seeds)


def train_audits(
    store: Store, audits: Sequence[Audit], over: Map, say: Say, *, workers: int, most_hours: float
) -> None:
    """Train all models not yet trained; reports the estimated hours. Raises UsageError if they exceed the limit."""
    waiting = [one for audit in audits for one in audit.models if not store.done(one)]
    networks = [one for one in waiting if isinstance(one, NetworkModel)]
    if networks:
        _refuse_too_slow(audits[0], networks, say, workers, most_hours)
    perform_all(store, [one for audit in audits for one in audit.models], over, say)


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
