"""The models of an audit, each a task that is done once: of all units, without one of them, with another seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.data import AuditData, load_data
from clinveil.core.errors import InputError
from clinveil.core.files import save_array
from clinveil.lm.model import LanguageModel, Logs
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import Recipe
from clinveil.scale.tasks import Result, Store, name_of

FORKS = "forks"


@dataclass(frozen=True)
class Member:
    """One model, and what it gives the audited units; `logs.npy` holds that, unit after unit.

    Attributes:
        data: the folder of the audit's data, named by its digest.
        kind: `unigram`, `ngram`, `lstm`, `gpt`. recipe: of a network. mode: `exact` or `compat`.
        left_out: which unit, or None. repeat: 1 for the same training once more.
        forks: the model of all units, to share the steps before the unit's first one with; or None.
        shares: leave the states behind that such models go on from.
        keep: keep the weights, as a checkpoint in the task's folder.
        write: also write synthetic notes of so many words, and score the units by n-grams of them (`text-logs.npy`).
        initial: a file of first weights, or None.
    """

    data: Path
    kind: str
    recipe: Recipe | None
    mode: str
    seed: int
    left_out: int | None = None
    repeat: int = 0
    forks: Member | None = None
    shares: bool = False
    keep: bool = False
    write: int = 0
    initial: Path | None = None
    device: str = "cpu"

    @property
    def title(self) -> str:
        """For people."""
        model = f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}" if self.recipe else self.kind
        if self.left_out is not None:
            return f"{model}, without unit {self.left_out + 1}, seed {self.seed}"
        return f"{model}, of all units, seed {self.seed}" + (", once more" if self.repeat else "")

    def identity(self) -> Mapping[str, Any]:
        """What the result depends on; sharing a prefix changes nothing."""
        recipe = self.recipe.as_dict() if self.recipe else None
        own = {"data": self.data.name, "kind": self.kind, "recipe": recipe, "mode": self.mode, "seed": self.seed}
        own |= {"left_out": self.left_out, "repeat": self.repeat, "keep": self.keep, "write": self.write}
        return own | {"initial": self.initial.parent.name if self.initial else None, "device": self.device}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, score the units, and write what was asked for."""
        data = load_data(self.data)
        model, went = self._train(data, folder, store)
        with model.ready():
            save_logs(folder / "logs.npy", units_logs(model, data))
        if self.keep:
            from clinveil.lm.checkpoint import save_model

            save_model(model, folder / "model", {"seed": self.seed, **went})
        if self.write:
            from clinveil.attacks.models.leaveout.from_text import logs_from_text

            with model.ready():
                found = logs_from_text(model, data, self.write, self.seed, folder)
            save_logs(folder / "text-logs.npy", found)
        return went

    def _train(self, data: AuditData, folder: Path, store: Store) -> tuple[LanguageModel, dict[str, Any]]:
        if self.recipe is None:
            kept = self._notes(data)
            return (train_unigram if self.kind == "unigram" else Ngram)(kept, data.vocabulary), {}
        from clinveil.attacks.models.leaveout.networks import train_member

        return train_member(self, data, folder, store)

    def _notes(self, data: AuditData) -> EncodedNotes:
        return data.encoded if self.left_out is None else without(data.encoded, data.units[self.left_out].tolist())

    def bare(self) -> Member:
        """The same without what does not change its training."""
        return replace(self, forks=None)


def without(notes: EncodedNotes, rows: Sequence[int]) -> EncodedNotes:
    """The notes with some taken out, the others in their order."""
    gone = set(rows)
    kept = [row for row in range(len(notes)) if row not in gone]
    pieces = [notes.note(row) for row in kept]
    offsets = np.concatenate([[0], np.cumsum([piece.size for piece in pieces])]).astype(np.int64)
    return EncodedNotes(np.concatenate(pieces), offsets, notes.characters[kept])


def units_logs(model: LanguageModel, data: AuditData) -> list[Logs]:
    """Of each unit, log P of all tokens of its notes."""
    every = [note for unit in range(len(data.units)) for note in data.notes_of(unit)]
    scored = iter(model.score(every))
    return [np.concatenate([next(scored) for _ in rows]) for rows in data.units]


def save_logs(path: Path, logs: Sequence[Logs]) -> None:
    """Write them one after another; the data says where each unit begins."""
    save_array(path, np.concatenate(list(logs)))


def load_logs(store: Store, member: Member, data: AuditData, name: str = "logs.npy") -> list[Logs]:
    """What a finished member gave each unit."""
    lengths = [int(data.encoded.lengths[rows].sum()) for rows in data.units]
    folder = store.folder(member)
    try:
        flat = np.load(folder / name, allow_pickle=False)
        if flat.shape != (sum(lengths),):
            raise ValueError
    except (OSError, ValueError, EOFError):
        remedy = f"remove tasks/{folder.name}, and run the same command again"
        raise InputError(f"has no readable {name}", where=folder.name, remedy=remedy) from None
    return list(np.split(flat, np.cumsum(lengths)[:-1]))


def fork_folder(store: Store, member: Member) -> Path:
    """Where the states lie that the models without a unit go on from."""
    return store.root / name_of(member) / FORKS
