"""The models of an audit, each a resumable task: of all units, without one of them, or with another seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.attacks.models._without_model import written
from clinveil.attacks.models.leaveout.data import AuditData, load_data
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import InputError
from clinveil.core.files import private_folder, save_array
from clinveil.lm.model import LanguageModel, Logs
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.plan import Plan, Rows, rows_plan
from clinveil.lm.recipe import CountedKind, Recipe, kind_of
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.train import NeuralTask, identity_of, plan_of
from clinveil.scale.tasks import Result, Store

if TYPE_CHECKING:
    from clinveil.lm.training import Training

FORKS = "forks"
OTHER_SEEDS = 1_000  # offset of the seeds of further trainings
MOST_FORKS = 4 * 2**30  # maximum bytes of states kept to share prefixes
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
    repeat: int = 0  # 1 for a second run of the same training
    forks: NetworkModel | None = None  # the model of all units, to share the steps before the unit's first one
    shares: bool = False  # save the states that such models resume from
    keep: bool = False  # keep the weights as a checkpoint in the task's folder
    initial: Path | None = None  # a file of initial weights
    device: str = "cpu"

    @property
    def name(self) -> str:
        """Return the name of the model for progress lines."""
        return f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}"

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        return super().title + (", second run" if self.repeat else "")

    def identity(self) -> Mapping[str, Any]:
        """Return what the result depends on; sharing a prefix has no effect."""
        own = {"recipe": self.recipe.as_dict(), "repeat": self.repeat, "keep": self.keep, "device": self.device}
        return {**super().identity(), **own, "initial": self.initial.parent.name if self.initial else None}

    def plan(self, data: AuditData) -> Plan:
        """Return the training plan. `exact`: the unit is masked. `compat`: its notes are removed."""
        if self.mode == "compat":
            return plan_of(data.without(self.left_out), self.recipe, self.seed)
        lanes, window, epochs = self.recipe.lanes, self.recipe.window, self.recipe.epochs
        rows = rows_plan(data.encoded, lanes=lanes, window=window, epochs=epochs, seed=self.seed)
        return rows if self.left_out is None else rows.without(data.units[self.left_out])

    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Train, from a shared state if there is one, and save such states."""
        from clinveil.core.neural import seeded
        from clinveil.lm.files import save_model
        from clinveil.lm.network import NeuralModel, read_tensors
        from clinveil.lm.training import load_training

        first = read_tensors(self.initial)[0] if self.initial else None
        about = (data.encoded, data.vocabulary, self.recipe, self.seed)
        task = NeuralTask(*about, self.device, validation=data.validation, initial=first)
        identity = identity_of(*about)
        with seeded(self.seed):
            training = task.training(self.plan(data))
            if (state := self._state_to_share(training.plan, data, store)) is not None:
                load_training(training, state, identity)
            if self.shares and isinstance(training.plan, Rows):
                _leave_states(training, training.plan, data, folder / FORKS, identity)
            training.fit()
            model = NeuralModel(data.vocabulary, training.finish())
        if self.keep:
            save_model(model, folder / "model", {"seed": self.seed, **training.history})
        return model, training.history

    def _state_to_share(self, plan: Plan, data: AuditData, store: Store) -> Path | None:
        """Return the state of the full model just before the left-out unit's first step, if it was kept."""
        if self.forks is None or self.left_out is None or not isinstance(plan, Rows):
            return None
        step = plan.first_step_of(data.units[self.left_out])
        state = store.folder(self.forks) / FORKS / f"{step}.safetensors"
        return state if state.exists() else None


def _leave_states(training: Training, plan: Rows, data: AuditData, folder: Path, identity: str) -> None:
    """Write the state just before each unit's first step."""
    from clinveil.lm.training import save_training

    steps = sorted({plan.first_step_of(rows) for rows in data.units} - {0})
    size = sum(p.numel() for p in training.network.parameters()) * 12
    if size * len(steps) > MOST_FORKS:
        return
    private_folder(folder)
    for step in steps:
        training.fit(step)
        save_training(training, folder / f"{step}.safetensors", identity)


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
    again: AuditModel | None  # a second run of it; None for count models
    reseeded: tuple[AuditModel, ...]
    left_out: tuple[AuditModel, ...]
    name: str = ""  # or the kind of initial weights
    other_seeds: tuple[tuple[AuditModel, ...], ...] = ()  # `left_out` under each further training seed

    @property
    def models(self) -> tuple[AuditModel, ...]:
        """Return all models, the full model first."""
        again = (self.again,) if self.again else ()
        others = (one for models in self.other_seeds for one in models)
        return (self.full, *again, *self.reseeded, *self.left_out, *others)

    @property
    def shared(self) -> tuple[AuditModel, ...]:
        """Return the models that others resume from, which are trained first."""
        return (self.full, *(one for one in self.reseeded if isinstance(one, NetworkModel) and one.shares))


def audit_of(
    folder: Path,
    settings: LeaveOutSettings,
    *,
    seed: int,
    words: int = 0,
    initial: Path | None = None,
    name: str = "",
    keep: bool = False,
) -> Audit:
    """Return the models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes per model, 0 for none. initial: initial weights.
        keep: keep the model of all units as a checkpoint.
    """
    recipe, units = settings.audit_recipe(), range(len(load_data(folder).units))
    own: dict[str, Any] = {"data": folder, "kind": settings.lm.model, "mode": settings.mode}
    own |= {"seed": seed, "write": words}
    if recipe is None:
        counted = CountModel(**own)
        return Audit(folder, counted, None, (), tuple(replace(counted, left_out=unit) for unit in units), name)
    bare = NetworkModel(**own, recipe=recipe, initial=initial, device=settings.lm.device)
    full, more = replace(bare, keep=keep, shares=True), settings.seeds - 1
    reseeded = tuple(replace(bare, seed=seed + OTHER_SEEDS + i, shares=i < more) for i in range(settings.reseeds))

    def without_each(of: NetworkModel, forks: NetworkModel | None) -> tuple[NetworkModel, ...]:
        return tuple(replace(of, left_out=unit, forks=forks) for unit in units)

    forks = [*reseeded[:more], *[None] * (more - len(reseeded))]
    seeded = [replace(bare, seed=seed + OTHER_SEEDS + i) for i in range(more)]
    other_seeds = tuple(without_each(*pair) for pair in zip(seeded, forks, strict=True))
    again = replace(bare, repeat=1, write=0)
    return Audit(folder, full, again, reseeded, without_each(bare, full), name, other_seeds)
