"""Tasks that measure utility: retrained vectors on word pairs (Table 3), classifiers on protected notes (Table 4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from clinveil.core.files import save_array
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task, found
from clinveil.study.inputs import File, Train
from clinveil.study.jamia_2020.treat import Prepare, Treat
from clinveil.utility.classifiers import ClassifierSettings, Predictions, Side, predict
from clinveil.utility.evaluations.classification import compare
from clinveil.utility.evaluations.similarity import SimilarityTask, pair_similarities, similarity
from clinveil.utility.pairs import PairList, read_pairs
from clinveil.vectors.files import load_vectors

TEST = "test.npy"
DRAWS = 200  # bootstrap draws over pairs in each repetition


@dataclass(frozen=True)
class Lists:
    """Word-pair lists."""

    files: tuple[File, ...]

    def read(self) -> list[PairList]:
        """Read all lists. Raises InputError for an invalid one."""
        return [read_pairs(file.path) for file in self.files]


@dataclass(frozen=True)
class Similar(Task):
    """Score retrained vectors on every list with protocol jamia; `fast`: fastText vectors for unknown words."""

    treat: Treat
    train: Train
    fast: Train | None
    lists: Lists

    stage = "word pairs"
    template = "word pairs of {train.title}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of all lists."""
        vectors, fast = self.train.load(store), self.fast.load(store) if self.fast else None
        findings = []
        for pairs in self.lists.read():
            rng = np.random.default_rng([self.treat.seed, 5])
            findings += similarity(vectors, pairs, rng, SimilarityTask(subwords=fast, draws=DRAWS))
        own = [finding for finding in findings if finding.measure == "utility.similarity"]
        detail = {"algorithm": self.train.settings.algorithm, "n": self.treat.setting.n or "0"}
        return found(own, **detail, repetition=self.treat.repetition)


@dataclass(frozen=True)
class References(Task):
    """Compare out-of-domain vectors with those of the original on common pairs (horizontal lines of Figure 1)."""

    train: Train
    lists: Lists
    vectors: tuple[tuple[str, File], ...]
    seed: int

    stage = "word pairs"
    template = "out-of-domain vectors on the same pairs"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return both values and the number of common pairs for each reference and list."""
        ours, rows = self.train.load(store), []
        for name, file in self.vectors:
            theirs = load_vectors(file.path)
            for pairs in self.lists.read():
                both = ~np.isnan(pair_similarities(ours, pairs)) & ~np.isnan(pair_similarities(theirs, pairs))
                rng = np.random.default_rng([self.seed, 6])
                task = SimilarityTask(only=both, draws=DRAWS)
                values = [similarity(v, pairs, rng, task)[0].value for v in (ours, theirs)]
                row = {"reference": name, "list": pairs.name, "pairs": int(both.sum())}
                rows.append({**row, "original": values[0], "value": values[1]})
        return {"rows": rows}


@dataclass(frozen=True)
class Classify(Task):
    """Train one model on one side, and predict the test notes of that side.

    Attributes:
        treat: source of the text. train: source of a network's initial vectors; None for linear models.
        shuffled: train on permuted labels (control).
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

    stage = "classify"

    @property
    def title(self) -> str:
        """Description for messages."""
        start = f" on {self.train.title}" if self.train else ""
        return f"{self.model}{start}, text: {self.treat.setting.label}{', shuffled labels' if self.shuffled else ''}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the predictions."""
        labels, treated = self.prepare.labels(store), self.treat.texts(store)
        # A note that the remover could not process is empty.
        texts = [treated.get(note) or "" for note in labels.labelled.note_ids]
        settings = ClassifierSettings(size=self.size, max_tokens=self.max_tokens, device=self.device)
        side = Side(texts, texts, self.train.load(store) if self.train else None)
        guesses = predict(
            self.model, labels.labelled, labels.parts, self.run, side, settings=settings, shuffled=self.shuffled
        )
        save_array(folder / TEST, guesses.test)
        return {"valid": guesses.valid_score, "detail": dict(guesses.detail)}

    def load(self, store: Store) -> Predictions:
        """Return the predictions of the finished task."""
        result = store.result(self)
        return Predictions(np.load(store.folder(self) / TEST, allow_pickle=False), result["valid"], result["detail"])


@dataclass(frozen=True)
class Compare(Task):
    """Compare the runs of a model on protected text with its runs on the original, on the same test notes."""

    original: tuple[Classify, ...]
    treated: tuple[Classify, ...]
    controls: tuple[Classify, ...]
    transfer: str = ""
    seed: int = 1

    stage = "compare"
    template = "compare {treated[0].title}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of both sides and of the loss."""
        first = self.treated[0]
        labels, setting = first.prepare.labels(store), first.treat.setting
        ours, theirs, controls = (
            [run.load(store) for run in side] for side in (self.original, self.treated, self.controls)
        )
        detail: dict[str, Any] = {**labels.detail, "model": first.model, "setting": setting.label}
        detail |= {f"treated_{name}": value for name, value in asdict(setting).items()}
        detail |= {"transfer": self.transfer, "vectors": first.train.settings.algorithm if first.train else ""}
        rng = np.random.default_rng([self.seed, 8])
        return found(compare(labels, ours, theirs, rng, detail, (controls, ())))
