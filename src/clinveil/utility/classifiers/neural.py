"""Training a network: the epoch that is best on the validation notes is kept; the same seed gives the same guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.core.neural import device_named, seeded
from clinveil.utility.classifiers.encode import Encoder, batches, padded
from clinveil.utility.classifiers.networks import Network, network
from clinveil.utility.classifiers.settings import ClassifierSettings
from clinveil.utility.classifiers.thresholds import THRESHOLDS, best_threshold, valid_score
from clinveil.utility.labelled import Parts
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.utility.classifiers.predict import Predictions

BATCH, LEAST, SCORED_AT_ONCE = 50, 5, 200
PATIENCE = 4  # epochs in which validation score and loss are no better, before `small` ends; `paper` runs all


@dataclass(frozen=True)
class _Texts:
    """Rows of word numbers of the training, validation and test notes, and the targets of the first two."""

    train: list[NDArray[np.int64]]
    valid: list[NDArray[np.int64]]
    test: list[NDArray[np.int64]]
    train_targets: NDArray[Any]
    valid_targets: NDArray[Any]


def fit_network(
    model: str,
    learnt: Sequence[str],
    tested: Sequence[str],
    targets: NDArray[Any],
    n_classes: int,
    parts: Parts,
    seed: int,
    vectors: Vectors | None,
    settings: ClassifierSettings,
) -> Predictions:
    """Train on the training notes, choose epoch (and threshold) on validation, guess the test notes.

    Raises UsageError for a device that is not there, InputError where the loss is no number.
    """
    from clinveil.utility.classifiers.predict import Predictions

    device, rng = device_named(settings.device), np.random.default_rng([seed, 3])
    encoder = Encoder.of((learnt[i] for i in parts.train), settings.tokens, vectors)
    train, valid = (encoder.rows([learnt[i] for i in part]) for part in (parts.train, parts.valid))
    test = encoder.rows([tested[i] for i in parts.test])
    texts = _Texts(train, valid, test, targets[parts.train], targets[parts.valid])
    with seeded(seed % 2**63):
        start = torch.from_numpy(encoder.matrix(vectors, rng))

        def fresh() -> Network:
            made = network(model, start, n_classes, several=targets.ndim == 2, static=settings.static)
            return made.to(device)

        net = fresh()
        best = _train(net, model, texts, rng, settings, device)
        if settings.refit:
            net = _trained_on_all(fresh(), model, texts, best.epoch, rng, device)
        else:
            net.load_state_dict(best.state)
        chances = _chances(net, texts.test, targets.ndim == 2, device)
    guess = chances >= best.threshold if targets.ndim == 2 else chances.argmax(axis=1).astype(np.int64)
    detail: dict[str, Any] = {
        "epochs": best.epoch,
        "refit": settings.refit,
        "words": len(encoder),
        "dim": start.shape[1],
        "vectors": vectors is not None,
    }
    return Predictions(guess, best.score, detail | ({"threshold": best.threshold} if targets.ndim == 2 else {}))


@dataclass(frozen=True)
class _Best:
    score: float
    epoch: int
    threshold: float
    state: dict[str, Tensor]


def _train(
    net: Network, model: str, texts: _Texts, rng: Generator, settings: ClassifierSettings, device: torch.device
) -> _Best:
    several = texts.train_targets.ndim == 2
    optimizer = _optimizer(net, model, several)
    best: _Best | None = None
    least, improved = float("inf"), 0
    for epoch in range(1, settings.passes + 1):
        _epoch(net, optimizer, texts, rng, device)
        chances = _chances(net, texts.valid, several, device)
        threshold = best_threshold(texts.valid_targets, chances) if several else THRESHOLDS[-1]
        score = valid_score(texts.valid_targets, chances >= threshold if several else chances.argmax(axis=1))
        loss = _surprise(texts.valid_targets, chances)
        if best is None or score > best.score or (score == best.score and loss < least):
            state = {name: value.detach().clone() for name, value in net.state_dict().items()}
            best, improved = _Best(score, epoch, threshold, state), epoch
        if loss < least:
            least, improved = loss, epoch
        if settings.size == "small" and epoch - improved >= PATIENCE:
            break
    assert best is not None
    return best


def _trained_on_all(
    net: Network, model: str, texts: _Texts, epochs: int, rng: Generator, device: torch.device
) -> Network:
    """A network trained on training and validation notes alike, for the epochs that validation found best."""
    targets = np.concatenate([texts.train_targets, texts.valid_targets])
    both = _Texts([*texts.train, *texts.valid], [], texts.test, targets, targets[:0])
    optimizer = _optimizer(net, model, targets.ndim == 2)
    for _ in range(epochs):
        _epoch(net, optimizer, both, rng, device)
    return net


def _surprise(targets: NDArray[Any], chances: NDArray[np.float64]) -> float:
    """The mean negative log-probability of what is true."""
    right = np.where(targets, chances, 1 - chances) if targets.ndim == 2 else chances[np.arange(len(targets)), targets]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def _optimizer(net: Network, model: str, several: bool) -> torch.optim.Optimizer:
    """Kim's CNN: Adadelta; the MIMIC models: Adam, both as released."""
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    if model == "cnn" and not several:
        return torch.optim.Adadelta(weights, lr=1.0, rho=0.95, eps=1e-6)
    return torch.optim.Adam(weights, lr=1e-3)


def _epoch(net: Network, optimizer: torch.optim.Optimizer, texts: _Texts, rng: Generator, device: torch.device) -> None:
    net.train()
    for rows in batches(texts.train, BATCH, rng):
        ids = torch.from_numpy(padded([texts.train[i] for i in rows], LEAST)).to(device)
        loss = _loss(net(ids), texts.train_targets[rows], device) + net.penalty()
        if not torch.isfinite(loss):
            raise InputError("the loss is no finite number", remedy="vectors with smaller values, or none")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        net.constrain()


def _loss(scores: Tensor, targets: NDArray[Any], device: torch.device) -> Tensor:
    if targets.ndim == 2:
        wanted = torch.from_numpy(targets.astype(np.float32)).to(device)
        return functional.binary_cross_entropy_with_logits(scores, wanted)
    return functional.cross_entropy(scores, torch.from_numpy(targets).to(device))


@torch.no_grad()
def _chances(net: Network, rows: list[NDArray[np.int64]], several: bool, device: torch.device) -> NDArray[np.float64]:
    """(n, n_classes) probabilities."""
    net.eval()
    found: NDArray[np.float64] | None = None
    for part in batches(rows, SCORED_AT_ONCE):
        ids = torch.from_numpy(padded([rows[i] for i in part], LEAST)).to(device)
        scores = net(ids)
        chances = (torch.sigmoid(scores) if several else torch.softmax(scores, dim=1)).double().cpu().numpy()
        found = np.zeros((len(rows), chances.shape[1])) if found is None else found
        found[part] = chances
    if found is None:
        raise InputError("there is no note to guess the class of")
    return found
