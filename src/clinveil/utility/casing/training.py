"""Training the character model: columns of text, RMSprop, the weights of the lowest dev loss; after `need_torch()`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.utility.casing import OnLook
from clinveil.utility.casing.lstm import CharacterLstm
from clinveil.utility.casing.settings import CasingSettings

SMOOTHING, CLAMP, EXPLODED = 0.95, 5.0, 3.0


@dataclass(frozen=True)
class Trained:
    """The model of the lowest dev loss (nats a character), and how training went.

    Attributes:
        steps, epochs: made in all; `epochs` with fractions. best_epoch: where the kept weights come from.
        seconds: of training, without looks at the dev text. stopped: `all epochs`, `time limit` or `loss exploded`.
    """

    model: CharacterLstm
    dev_loss: float
    steps: int
    epochs: float
    best_epoch: float
    seconds: float
    stopped: str


def train_characters(
    model: CharacterLstm,
    text: NDArray[np.int64],
    dev: NDArray[np.int64],
    settings: CasingSettings,
    device: torch.device,
    on_look: OnLook | None = None,
) -> Trained:
    """Train on a text (numbers of characters); call it inside `seeded`.

    Args:
        text, dev: (n_characters,) int64.
        on_look: called with (step, epochs made, dev loss) at each look.

    Raises:
        InputError: fewer than two characters, or a loss that is no number or explodes before the first look.
    """
    columns, dev_columns = _columns(text, settings.batch), _columns(dev, settings.batch)
    run = _Run(model.to(device), columns.to(device), dev_columns.to(device), settings, on_look)
    stopped = run.train()
    if run.best is None:
        raise InputError("the loss grows or is no number from the start", remedy="a smaller --learning-rate")
    model.load_state_dict(run.best)
    made = run.steps / run.per_epoch
    return Trained(model, run.lowest, run.steps, made, run.best_step / run.per_epoch, run.seconds, stopped)


def _columns(text: NDArray[np.int64], batch: int) -> Tensor:
    """(n_steps + 1, columns): the text cut into equal columns, fewer of them where it is short."""
    if len(text) < 2:
        raise InputError("a text of fewer than two characters is too short")
    columns = min(batch, len(text) // 2)
    length = len(text) // columns
    return torch.from_numpy(text[: columns * length].reshape(columns, length).T.copy())


class _Run:
    """The state of one training."""

    def __init__(
        self, model: CharacterLstm, text: Tensor, dev: Tensor, settings: CasingSettings, on_look: OnLook | None
    ) -> None:
        self.model, self.text, self.dev, self.settings, self.on_look = model, text, dev, settings, on_look
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=settings.learning_rate, alpha=SMOOTHING)
        self.per_epoch = math.ceil((len(text) - 1) / settings.sequence)
        self.steps, self.best_step, self.lowest, self.seconds = 0, 0, math.inf, 0.0
        self.best: dict[str, Tensor] | None = None
        self.first = 0.0
        self.began = time.monotonic()

    def train(self) -> str:
        """Train to the end, the time limit or an explosion; says which."""
        for epoch in range(1, self.settings.epochs + 1):
            stopped = self._epoch()
            if stopped != "loss exploded":
                self._look()
            if stopped:
                return stopped
            if epoch >= self.settings.decay_after:
                for group in self.optimizer.param_groups:
                    group["lr"] *= self.settings.decay
        return "all epochs"

    def _epoch(self) -> str:
        """One pass; the state goes on from batch to batch. "" unless it ends early."""
        state = self.model.start(self.text.shape[1])
        for rows, targets in _pieces(self.text, self.settings.sequence):
            began = time.monotonic()
            self.model.train()
            scores, state = self.model(rows, (state[0].detach(), state[1].detach()))
            loss = functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
            self._update(loss)
            now, value = time.monotonic(), float(loss.detach())
            self.seconds += now - began
            self.first = self.first or value
            if not value <= EXPLODED * self.first:  # also where it is no number
                return "loss exploded"
            if self.settings.max_minutes and now - self.began > 60 * self.settings.max_minutes:
                return "time limit"
            if self.steps % self.settings.evaluate_every == 0:
                self._look()
        return ""

    def _update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(self.model.parameters(), CLAMP)
        self.optimizer.step()
        self.steps += 1

    def _look(self) -> None:
        """Measure the dev loss, and keep the weights where it is the lowest."""
        loss = dev_loss(self.model, self.dev, self.settings.sequence)
        if loss < self.lowest:
            self.lowest, self.best_step = loss, self.steps
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        if self.on_look:
            self.on_look(self.steps, self.steps / self.per_epoch, loss)


def dev_loss(model: CharacterLstm, columns: Tensor, sequence: int) -> float:
    """The mean of -ln P over all characters but the first of each column."""
    model.eval()
    state, total = model.start(columns.shape[1]), 0.0
    with torch.no_grad():
        for rows, targets in _pieces(columns, sequence):
            scores, state = model(rows, state)
            total += float(functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum"))
    return total / ((len(columns) - 1) * columns.shape[1])


def _pieces(columns: Tensor, sequence: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Characters and those that follow them, (n_steps, columns) each."""
    for start in range(0, len(columns) - 1, sequence):
        rows = columns[start : start + sequence + 1]
        yield rows[:-1], rows[1:]
