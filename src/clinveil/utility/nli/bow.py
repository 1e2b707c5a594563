"""The bag-of-words inference model in PyTorch, and its training; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.utility.nli.settings import NliSettings

DECAY = 1e-6


class BagOfWords(nn.Module):
    """Sums of projected word vectors, premise beside hypothesis, three layers above them.

    Source: Romanov & Shivade 2018; PyTorchSimpleModel of jgc128/mednli; paper C, section 3.3. The projection is taken
    once a distinct token of a batch and then summed over its places, which is the same sum; padding is a token too.
    """

    def __init__(self, matrix: NDArray[np.float32], n_classes: int, settings: NliSettings) -> None:
        super().__init__()
        self.features, self.dropout = settings.features, nn.Dropout(settings.dropout)
        hidden, width = settings.hidden, 2 * settings.hidden
        self.register_buffer("vectors", torch.from_numpy(matrix))
        self.project = nn.Linear(matrix.shape[1], hidden)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden, affine=False) for _ in range(2))
        first = width if settings.features == "paper" else 2 * width
        layers: list[nn.Module] = []
        for size in (first, width, width):
            layers += [nn.Linear(size, width), nn.ReLU(), self.dropout, nn.BatchNorm1d(width, affine=False)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, n_classes))

    def forward(self, premises: Tensor, hypotheses: Tensor) -> Tensor:
        """(n_pairs, n_classes) scores, from rows of tokens, (n_pairs, n_tokens) each."""
        one, other = (norm(self._bag(rows)) for norm, rows in zip(self.norms, (premises, hypotheses), strict=True))
        both = [one, other] if self.features == "paper" else [one, other, (one - other).abs(), one * other]
        scores: Tensor = self.layers(self.dropout(torch.cat(both, dim=1)))
        return scores

    def _bag(self, rows: Tensor) -> Tensor:
        """(n_pairs, hidden) the sum over all places of ReLU of the projected vector."""
        distinct, places = torch.unique(rows, return_inverse=True)
        table: Tensor = self.get_buffer("vectors")
        projected = functional.relu(self.project(table[distinct]))
        return functional.embedding_bag(places, projected, mode="sum")


@dataclass(frozen=True)
class Rows:
    """Pairs as the model takes them: rows of tokens, (n_pairs, n_tokens), and classes, (n_pairs,)."""

    premises: NDArray[np.int64]
    hypotheses: NDArray[np.int64]
    targets: NDArray[np.int64]


@dataclass(frozen=True)
class Fitted:
    """The model of the lowest dev loss, that loss, and the passes made."""

    model: BagOfWords
    loss: float
    epochs: int


def fit(model: BagOfWords, train: Rows, dev: Rows, settings: NliSettings, device: torch.device) -> Fitted:
    """Train with Adam until the dev loss has not fallen for `patience` passes; call it inside `seeded`.

    Raises:
        InputError: fewer than two training pairs, or a loss that is no number.
    """
    if len(train.targets) < 2:
        raise InputError("one training pair is too few")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=DECAY)
    best, kept, waited, epoch = float("inf"), _copy(model), 0, 0
    for epoch in range(1, settings.epochs + 1):
        _epoch(model, optimizer, train, settings.batch, device)
        loss = _loss(model, dev, settings.batch, device)
        if not np.isfinite(loss):
            raise InputError(f"the loss is no number after pass {epoch}", remedy="vectors of a smaller scale")
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, kept = loss, _copy(model)
        if waited >= settings.patience:
            break
    model.load_state_dict(kept)
    return Fitted(model, best, epoch)


def guesses(model: BagOfWords, rows: Rows, batch: int, device: torch.device) -> NDArray[np.int64]:
    """(n_pairs,) the class of the highest score."""
    model.eval()
    order = torch.arange(len(rows.targets))
    with torch.no_grad():
        found = [
            model(one, other).argmax(dim=1).cpu().numpy() for one, other, _ in _batches(rows, order, batch, device)
        ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _epoch(model: BagOfWords, optimizer: torch.optim.Optimizer, rows: Rows, batch: int, device: torch.device) -> None:
    model.train()
    for one, other, target in _batches(rows, torch.randperm(len(rows.targets)), batch, device):
        optimizer.zero_grad()
        functional.cross_entropy(model(one, other), target).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _loss(model: BagOfWords, rows: Rows, batch: int, device: torch.device) -> float:
    """The mean of the batches' mean losses, as in the released code."""
    model.eval()
    with torch.no_grad():
        losses = [
            float(functional.cross_entropy(model(one, other), target))
            for one, other, target in _batches(rows, torch.arange(len(rows.targets)), batch, device)
        ]
    return float(np.mean(losses))


def _batches(rows: Rows, order: Tensor, size: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches in this order; a last one of a single pair joins the one before, for one pair has no variance."""
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    columns = [torch.from_numpy(column) for column in (rows.premises, rows.hypotheses, rows.targets)]
    for part in parts:
        one, other, target = (column[part].to(device) for column in columns)
        yield one, other, target


def _copy(model: BagOfWords) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
