"""Classifiers on treated notes, and what was lost against the original (Table 4, Figure 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jamia_2020.prepare import Prepare, task_of
from clinveil.study.jamia_2020.similar import Train
from clinveil.study.jamia_2020.treat import Treat, texts_of_treat

if TYPE_CHECKING:
    from clinveil.utility.classifiers import Predictions

TEST = "test.npy"


@dataclass(frozen=True)
class Classify:
    """Train one model on one side, and guess the test notes of that side.

    Attributes:
        treat: whose text. train: whose vectors a network starts from; None for linear models.
        shuffled: labels dealt out anew (control).
    """

    prepare: Prepare
    treat: Treat
    model: str
    train: Train | None
    run: int
    max_tokens: int
    device: str
    size: Literal["small", "paper"] = "small"
    shuffled: bool = False

    @property
    def title(self) -> str:
        """What it does."""
        start = f" on {self.train.title}" if self.train else ""
        return f"{self.model}{start}, text: {self.treat.setting.label}{', shuffled labels' if self.shuffled else ''}"

    def identity(self) -> dict[str, Any]:
        """Text, model, vectors and run."""
        said = {"treat": name_of(self.treat), "model": self.model, "run": self.run, "shuffled": self.shuffled}
        train = name_of(self.train) if self.train else None
        return {
            **said,
            "train": train,
            "max_tokens": self.max_tokens,
            "device": self.device,
            "size": self.size,
            "version": 1,
        }

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the guesses."""
        from time import monotonic

        from clinveil.core.files import save_array
        from clinveil.utility.classifiers import ClassifierSettings, Side, predict

        began, task = monotonic(), task_of(self.prepare, store)
        texts = texts_of_treat(self.treat, store, task.labelled.note_ids)
        settings = ClassifierSettings(size=self.size, max_tokens=self.max_tokens, device=self.device)
        found = predict(
            self.model,
            task.labelled,
            task.parts,
            self.run,
            Side(texts, texts, self.train.load(store) if self.train else None),
            settings=settings,
            shuffled=self.shuffled,
        )
        save_array(folder / TEST, found.test)
        said = {"valid": found.valid_score, "detail": dict(found.detail)}
        return {**said, "seconds": round(monotonic() - began, 1)}

    def load(self, store: Store) -> Predictions:
        """What a finished task guessed."""
        from clinveil.utility.classifiers import Predictions

        said = store.result(self)
        return Predictions(np.load(store.folder(self) / TEST, allow_pickle=False), said["valid"], said["detail"])


@dataclass(frozen=True)
class Compare:
    """One model's runs on one treatment against its runs on the original, on the same test notes."""

    original: tuple[Classify, ...]
    treated: tuple[Classify, ...]
    controls: tuple[Classify, ...]
    transfer: str = ""
    seed: int = 1

    @property
    def title(self) -> str:
        """What it does."""
        return f"compare {self.treated[0].title}"

    def identity(self) -> dict[str, Any]:
        """All runs."""
        runs = {name: [name_of(run) for run in getattr(self, name)] for name in ("original", "treated", "controls")}
        return {**runs, "seed": self.seed, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of both sides and of the loss."""
        from clinveil.utility.classification import compare

        task, first = task_of(self.original[0].prepare, store), self.treated[0]
        ours, theirs = ([run.load(store) for run in side] for side in (self.original, self.treated))
        controls = [run.load(store) for run in self.controls]
        detail = {**task.detail, "model": first.model, "setting": first.treat.setting.label, **self._of()}
        rng = np.random.default_rng([self.seed, 8])
        found = compare(task, ours, theirs, rng, detail, (controls, ()))
        return {"findings": [f.as_dict() for f in found]}

    def _of(self) -> dict[str, Any]:
        setting, start = self.treated[0].treat.setting, self.treated[0].train
        said = {f"treated_{name}": value for name, value in asdict(setting).items()}
        return {**said, "transfer": self.transfer, "vectors": start.training.algorithm if start else ""}
