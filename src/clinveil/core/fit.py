"""The training loop of every network here; import it after `need_torch()`, and call it inside `seeded`.

A subclass of `Trainer` says what a batch is, its loss and the loss on validation data; the loop is the same for all.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from clinveil.core.errors import InputError, check_interrupt

N = TypeVar("N", bound=nn.Module)
B = TypeVar("B")
Weights = dict[str, Tensor]


@dataclass
class Progress:
    """Where a training stands.

    Attributes:
        step: steps made. best: lowest validation loss so far, inf without one. best_look: the look that won, from 1.
        looks: the validation loss at each look.
    """

    step: int = 0
    best: float = math.inf
    best_look: int = 0
    looks: list[float] = field(default_factory=list)


class Trainer(ABC, Generic[N, B]):
    """One training of a network.

    Attributes:
        clip_norm, clip_value: largest norm of the gradient, or largest value in it; None for no limit.
        look_every: steps between looks at the validation loss; there is one after each pass anyway.
        patience: looks without improvement before training ends.
        check_every: steps between looks at the training loss: a look makes a GPU wait.
        max_seconds: of training, or None.
        seed: each step draws its dropout from (seed, step) alone; None: from PyTorch's generator as it stands.
        precision: `float32` or `bfloat16`, inside `autocast`.
        judged_by, remedy: what the validation loss is called, and what helps a training that diverges.
        best: the weights of the best look. stopped: why training ended before all steps, or "".
    """

    clip_norm: float | None = None
    clip_value: float | None = None
    look_every: int | None = None
    patience: float = math.inf
    check_every: int = 1
    max_seconds: float | None = None
    seed: int | None = None
    precision: str = "float32"
    judged_by: str = "validation loss"
    hint: str = ""

    def __init__(
        self, network: N, optimizer: torch.optim.Optimizer, device: torch.device, *, steps_per_epoch: int, steps: int
    ) -> None:
        self.network, self.optimizer, self.device = network, optimizer, device
        self.steps_per_epoch, self.steps = steps_per_epoch, steps
        self.progress = Progress()
        self.best: Weights | None = None
        self.stopped = ""
        self._waited = 0
        self._batches: Iterator[B] | None = None
        self._began = time.monotonic()

    @abstractmethod
    def batches(self, step: int) -> Iterator[B]:
        """The batches from a step on, to the last one; made when they are asked for."""

    @abstractmethod
    def loss(self, batch: B) -> Tensor:
        """The loss of a batch, to be made smaller."""

    def validate(self) -> float | None:
        """The loss on validation data, None where there are none."""
        return None

    def rate_at(self, step: int) -> float | None:
        """The learning rate of a step; None: as it is."""
        return None

    def wins(self, lower: bool) -> bool:
        """Whether the weights at this look are the best; `lower`: its loss is the lowest so far."""
        return lower

    def checked(self, value: float, batch: B) -> None:
        """Look at the loss of a step. Raises InputError where it is no number."""
        if not math.isfinite(value):
            raise self.diverged("the loss is no number", self.progress.step)

    def after_step(self) -> None:
        """What the weights have to keep to."""

    def after_epoch(self) -> None:
        """What follows a pass, before the look at the validation loss."""

    def keep(self) -> None:
        """Keep the weights as the best ones."""
        self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    @property
    def done(self) -> bool:
        """Whether all steps are made, or training ended before."""
        return bool(self.stopped) or self.progress.step >= self.steps

    def fit(self, until: int | None = None) -> Self:
        """Make steps, up to `until` of them in all (default: to the end).

        Raises:
            InputError: a loss or a weight is no number; weights and state are then useless.
        """
        last = self.steps if until is None else min(until, self.steps)
        while self.progress.step < last and not self.done:
            check_interrupt()
            self._step()
        return self

    def finish(self) -> N:
        """The network, with the best weights where such were kept."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        return self.network.eval()

    def autocast(self) -> AbstractContextManager[object]:
        """A block in which the network runs in the precision that was asked for."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")

    def look(self) -> None:
        """Measure the validation loss, keep the weights if they win, end if patience is over."""
        value = self.validate()
        if value is None:
            return
        now = self.progress
        if not math.isfinite(value):
            raise self.diverged(f"the {self.judged_by} is no number", now.step - 1)
        now.looks.append(value)
        lower = value < now.best
        wins = self.wins(lower)
        if lower:
            now.best = value
        if wins:
            now.best_look = len(now.looks)
            self.keep()
        self._waited = 0 if lower or wins else self._waited + 1
        if self._waited >= self.patience:
            self.stopped = "patience"

    def diverged(self, what: str, step: int) -> InputError:
        """An error that says where training broke."""
        rate = self.optimizer.param_groups[0]["lr"]
        at = f"step {step + 1:,} of {self.steps:,}, learning rate {rate:g}"
        return InputError(f"{what} at {at}", hint=self.hint)

    def _step(self) -> None:
        now = self.progress
        if self._batches is None:
            self._batches = self.batches(now.step)
        batch = next(self._batches)
        if self.seed is not None:
            torch.manual_seed(mixed(self.seed, now.step))
        self.network.train()
        loss = self.loss(batch)
        self._update(loss)
        self.after_step()
        if now.step % self.check_every == 0:
            self.checked(float(loss.detach()), batch)
        now.step += 1
        if not self.stopped:
            self._after(now.step)

    def _update(self, loss: Tensor) -> None:
        rate = self.rate_at(self.progress.step)
        if rate is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.clip_norm, foreach=False)
        if self.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.network.parameters(), self.clip_value)
        self.optimizer.step()

    def _after(self, step: int) -> None:
        """The end of a pass, of the time, or a look between."""
        epoch = step % self.steps_per_epoch == 0 or step == self.steps
        if self.max_seconds is not None and time.monotonic() - self._began > self.max_seconds:
            self.stopped = "time limit"
        if epoch:
            self.after_epoch()
        if epoch or self.stopped or (self.look_every is not None and step % self.look_every == 0):
            self.look()


def mixed(seed: int, step: int) -> int:
    """A seed for (seed, step); 63 bits, spread by SplitMix64's constants."""
    spread = (seed * 0x9E3779B97F4A7C15 + (step + 2) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    spread ^= spread >> 31
    return (spread * 0x94D049BB133111EB & (2**64 - 1)) >> 1
