"""The bag-of-words inference model in PyTorch, and its training; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil.core import Floats, InputError, Ints, Trainer
from papers.clinicalnlp_2019.nli import InferenceSettings

DECAY = 1e-6


class BagOfWords(nn.Module):
    """Sums of projected word vectors of premise and hypothesis, followed by three layers.

    The projection is computed once per distinct token of a batch. Padding is a token, as in the
    released code. Source:
    Romanov & Shivade 2018; PyTorchSimpleModel of jgc128/mednli; paper C, section 3.3.
    """

    def __init__(self, matrix: Floats, n_classes: int, settings: InferenceSettings) -> None:
        super().__init__()
        self.dropout = nn.Dropout(settings.dropout)
        hidden = settings.hidden
        width = 2 * settings.hidden
        self.register_buffer("vectors", torch.from_numpy(matrix))
        self.project = nn.Linear(matrix.shape[1], hidden)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden, affine=False) for _ in range(2))
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [
                nn.Linear(width, width),
                nn.ReLU(),
                self.dropout,
                nn.BatchNorm1d(width, affine=False),
            ]
        self.layers = nn.Sequential(*layers, nn.Linear(width, n_classes))

    def forward(self, premises: Tensor, hypotheses: Tensor) -> Tensor:
        """Return scores (n_pairs, n_classes) from rows of tokens, (n_pairs, n_tokens) each."""
        one, other = (
            norm(self._bag(rows))
            for norm, rows in zip(self.norms, (premises, hypotheses), strict=True)
        )
        scores: Tensor = self.layers(self.dropout(torch.cat([one, other], dim=1)))
        return scores

    def _bag(self, rows: Tensor) -> Tensor:
        """Return the sum over tokens of ReLU of the projected vector, (n_pairs, hidden)."""
        distinct, inverse = torch.unique(rows, return_inverse=True)
        table: Tensor = self.get_buffer("vectors")
        projected = functional.relu(self.project(table[distinct]))
        return functional.embedding_bag(inverse, projected, mode="sum")


@dataclass(frozen=True)
class PairRows:
    """Input of the model: rows of tokens, (n_pairs, n_tokens), and classes, (n_pairs,)."""

    premises: Ints
    hypotheses: Ints
    targets: Ints


class PairTraining(Trainer[BagOfWords, tuple[Tensor, Tensor, Tensor]]):
    """Adam until the dev loss has not fallen for `patience` epochs; call it inside `seeded`.

    Raises InputError for fewer than two training pairs.
    """

    judged_by = "loss on the dev pairs"
    hint = "pass vectors of a smaller scale"

    def __init__(
        self,
        model: BagOfWords,
        train: PairRows,
        dev: PairRows,
        settings: InferenceSettings,
        device: torch.device,
    ) -> None:
        if len(train.targets) < 2:
            raise InputError("at least two training pairs are required")
        optimizer = torch.optim.Adam(model.to(device).parameters(), weight_decay=DECAY)
        per_epoch = len(_parts(torch.arange(len(train.targets)), settings.batch))
        super().__init__(
            model, optimizer, device, steps_per_epoch=per_epoch, steps=settings.epochs * per_epoch
        )
        self.train = train
        self.dev = dev
        self.settings = settings
        self.patience = settings.patience

    def batches(self, step: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield batches in a new order in each epoch."""
        for _ in range(self.settings.epochs):
            order = torch.randperm(len(self.train.targets))
            yield from _batches(self.train, order, self.settings.batch, self.device)

    def loss(self, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the cross entropy."""
        one, other, target = batch
        return functional.cross_entropy(self.network(one, other), target)

    def validate(self) -> float:
        """Return the mean of the mean losses of batches, as in the released code."""
        self.network.eval()
        order = torch.arange(len(self.dev.targets))
        with torch.no_grad():
            parts = _batches(self.dev, order, self.settings.batch, self.device)
            return float(np.mean([float(self.loss(part)) for part in parts]))

    @property
    def epochs(self) -> float:
        """Number of completed epochs."""
        return self.progress.step / self.steps_per_epoch


def predictions(model: BagOfWords, rows: PairRows, batch: int, device: torch.device) -> Ints:
    """Return the class with the highest score, (n_pairs,)."""
    model.eval()
    order = torch.arange(len(rows.targets))
    with torch.no_grad():
        classes = [
            model(one, other).argmax(dim=1).cpu().numpy()
            for one, other, _ in _batches(rows, order, batch, device)
        ]
    return np.concatenate(classes) if classes else np.zeros(0, dtype=np.int64)


def _batches(
    rows: PairRows, order: Tensor, size: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield batches in the given order."""
    columns = [
        torch.from_numpy(column) for column in (rows.premises, rows.hypotheses, rows.targets)
    ]
    for part in _parts(order, size):
        one, other, target = (column[part].to(device) for column in columns)
        yield one, other, target


def _parts(order: Tensor, size: int) -> list[Tensor]:
    """Split an order into batches; a last batch of one pair joins the previous one, because it has
    no variance.
    """
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
