"""The models of an audit, each a task that is done once: of all units, without one of them, with another seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.attacks.models._without_model import written
from clinveil.attacks.models.leaveout.data import AuditData, load_data
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
MOST_FORKS = 4 * 2**30  # bytes of states kept to share beginnings
History = dict[str, Any]  # what training says of itself, ready for JSON


@dataclass(frozen=True, kw_only=True)
class AuditModel(ABC):
    """One model, and what it gives the audited units; `logs.npy` holds that, unit after unit.

    Attributes:
        data: the folder of the audit's data, named by its digest. mode: `exact` or `compat`.
        left_out: which unit, or None.
        write: also write synthetic notes of so many words, and score the units by n-grams of them (`text-logs.npy`).
    """

    data: Path
    kind: str
    mode: str
    seed: int
    left_out: int | None = None
    write: int = 0

    @property
    def name(self) -> str:
        """Of the model, for people."""
        return self.kind

    @property
    def title(self) -> str:
        """For people."""
        which = "of all units" if self.left_out is None else f"without unit {self.left_out + 1}"
        return f"{self.name}, {which}, seed {self.seed}"

    def identity(self) -> Mapping[str, Any]:
        """What the result depends on."""
        own = {"data": self.data.name, "kind": self.kind, "mode": self.mode, "seed": self.seed}
        return own | {"left_out": self.left_out, "write": self.write}

    @abstractmethod
    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """The model, and how its training went; what it leaves behind goes to the folder."""

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, score the units, and write what was asked for."""
        data = load_data(self.data)
        model, history = self.train(data, folder, store)
        with model.ready():
            _save_logs(folder / "logs.npy", _units_logs(model, data))
            if self.write:
                _save_logs(folder / "text-logs.npy", self._logs_from_text(model, data, folder))
        return history

    def _logs_from_text(self, model: LanguageModel, data: AuditData, folder: Path) -> list[Logs]:
        """Write notes under the model, count their n-grams, score the units with those; the text stays in the folder.

        What synthetic notes give away without their model (paper C, footnote 6).
        """
        lengths = data.encoded.lengths
        notes = written(model, self.write, self.seed, SamplingConfig(batch_size_for(len(lengths)), int(lengths.max())))
        save_array(folder / "text-ids.npy", notes.ids)
        return _units_logs(Ngram(notes, data.vocabulary), data)


@dataclass(frozen=True, kw_only=True)
class CountModel(AuditModel):
    """A unigram or an n-gram model: counted, so that nothing is drawn at random."""

    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Count the notes without the unit."""
        kind = kind_of(self.kind)
        if not isinstance(kind, CountedKind):
            raise TypeError(f"{self.kind} is not a model of counts")
        return kind.count(data.without(self.left_out), data.vocabulary), {}


@dataclass(frozen=True, kw_only=True)
class NetworkModel(AuditModel):
    """An LSTM or a GPT.

    Attributes:
        repeat: 1 for the same training once more.
        forks: the model of all units, to share the steps before the unit's first one with; or None.
        shares: leave the states behind that such models go on from.
        keep: keep the weights, as a checkpoint in the task's folder.
        initial: a file of first weights, or None.
    """

    recipe: Recipe
    repeat: int = 0
    forks: NetworkModel | None = None
    shares: bool = False
    keep: bool = False
    initial: Path | None = None
    device: str = "cpu"

    @property
    def name(self) -> str:
        """Of the model, for people."""
        return f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}"

    @property
    def title(self) -> str:
        """For people."""
        return super().title + (", once more" if self.repeat else "")

    def identity(self) -> Mapping[str, Any]:
        """What the result depends on; sharing a prefix changes nothing."""
        own = {"recipe": self.recipe.as_dict(), "repeat": self.repeat, "keep": self.keep, "device": self.device}
        return {**super().identity(), **own, "initial": self.initial.parent.name if self.initial else None}

    def alone(self) -> NetworkModel:
        """The same without a shared beginning, which changes nothing."""
        return replace(self, forks=None)

    def plan(self, data: AuditData) -> Plan:
        """`exact`: all notes in their places, the unit masked. `compat`: its notes taken out, the text cut anew."""
        if self.mode == "compat":
            return plan_of(data.without(self.left_out), self.recipe, self.seed)
        lanes, window, epochs = self.recipe.lanes, self.recipe.window, self.recipe.epochs
        rows = rows_plan(data.encoded, lanes=lanes, window=window, epochs=epochs, seed=self.seed)
        return rows if self.left_out is None else rows.without(data.units[self.left_out])

    def train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, History]:
        """Train: from a shared state where there is one, and leaving such states behind."""
        from clinveil.core.neural import seeded
        from clinveil.lm.checkpoint import save_model
        from clinveil.lm.network import NeuralModel
        from clinveil.lm.states import load_training, read_tensors

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
        """Of the model of all units just before the left-out unit's first step, where it was kept."""
        if self.forks is None or self.left_out is None or not isinstance(plan, Rows):
            return None
        step = plan.first_step_of(data.units[self.left_out])
        state = store.folder(self.forks) / FORKS / f"{step}.safetensors"
        return state if state.exists() else None


def _leave_states(training: Training, plan: Rows, data: AuditData, folder: Path, identity: str) -> None:
    """Write the state just before each unit's first step."""
    from clinveil.lm.states import save_training

    steps = sorted({plan.first_step_of(rows) for rows in data.units} - {0})
    size = sum(p.numel() for p in training.network.parameters()) * 12
    if size * len(steps) > MOST_FORKS:
        return
    private_folder(folder)
    for step in steps:
        training.fit(step)
        save_training(training, folder / f"{step}.safetensors", identity)


def _units_logs(model: LanguageModel, data: AuditData) -> list[Logs]:
    """Of each unit, log P of all tokens of its notes."""
    every = [note for unit in range(len(data.units)) for note in data.notes_of(unit)]
    scored = iter(model.score(every))
    return [np.concatenate([next(scored) for _ in rows]) for rows in data.units]


def _save_logs(path: Path, logs: Sequence[Logs]) -> None:
    """Write them one after another; the data says where each unit begins."""
    save_array(path, np.concatenate(list(logs)))


def load_logs(store: Store, model: AuditModel, data: AuditData, name: str = "logs.npy") -> list[Logs]:
    """What a finished model gave each unit. Raises InputError where that is not readable."""
    lengths = [int(data.encoded.lengths[rows].sum()) for rows in data.units]
    folder = store.folder(model)
    try:
        flat = np.load(folder / name, allow_pickle=False)
        if flat.shape != (sum(lengths),):
            raise ValueError
    except (OSError, ValueError, EOFError):
        remedy = f"remove tasks/{folder.name}, and run the same command again"
        raise InputError(f"has no readable {name}", where=folder.name, remedy=remedy) from None
    return list(np.split(flat, np.cumsum(lengths)[:-1]))
