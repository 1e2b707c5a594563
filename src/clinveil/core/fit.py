"""The training loop of all neural networks; import it after `need_torch()`, and call it inside
`seeded`.

A subclass of `Trainer` defines the batches, their loss and the loss on validation data.
"""

from __future__ import annotations

import math
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
    """The state of a training.

    Attributes:
        step: steps done. best: lowest validation loss so far, inf without one. best_validation:
            number of the best validation, from 1. validation_losses: of all validations.
    """

    step: int = 0
    best: float = math.inf
    best_validation: int = 0
    validation_losses: list[float] = field(default_factory=list)


class Trainer(ABC, Generic[N, B]):
    """Train one network.

    Attributes:
        clip_norm, clip_value: largest norm of the gradient, or largest value in it; None for no
            limit.
        validate_every: steps between validations; each epoch ends with one in any case.
        patience: validations without improvement before training ends.
        check_every: steps between checks of the training loss; a check makes a GPU wait.
        seed: each step draws its dropout from (seed, step) alone; None uses the current state of
            PyTorch's generator.
        precision: `float32` or `bfloat16`, inside `autocast`.
        judged_by: name of the validation loss in messages. hint: how to fix a training that
            diverges.
        best: the weights of the best validation. stopped: why training ended early, or "".
    """

    clip_norm: float | None = None
    clip_value: float | None = None
    validate_every: int | None = None
    patience: float = math.inf
    check_every: int = 1
    seed: int | None = None
    precision: str = "float32"
    judged_by: str = "validation loss"
    hint: str = ""

    def __init__(
        self,
        network: N,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
        *,
        steps_per_epoch: int,
        steps: int,
    ) -> None:
        self.network = network
        self.optimizer = optimizer
        self.device = device
        self.steps_per_epoch = steps_per_epoch
        self.steps = steps
        self.progress = Progress()
        self.best: Weights | None = None
        self.stopped = ""
        self._waited = 0
        self._batches: Iterator[B] | None = None

    @abstractmethod
    def batches(self, step: int) -> Iterator[B]:
        """Yield the batches from a step to the last one, created lazily."""

    @abstractmethod
    def loss(self, batch: B) -> Tensor:
        """Return the loss of a batch, to be minimised."""

    def validate(self) -> float | None:
        """Return the loss on validation data, or None if there are none."""
        return None

    def rate_at(self, step: int) -> float | None:
        """Return the learning rate of a step, or None to leave it unchanged."""
        return None

    def wins(self, lower: bool) -> bool:
        """Return whether the weights of this validation are the best; `lower`: its loss is the
        lowest so far.
        """
        return lower

    def checked(self, value: float, batch: B) -> None:
        """Check the loss of a step. Raises InputError if it is not finite."""
        if not math.isfinite(value):
            raise self.diverged("the loss is not finite", self.progress.step)

    def after_step(self) -> None:
        """Apply constraints to the weights."""

    def after_epoch(self) -> None:
        """Run after an epoch, before its validation."""

    def keep(self) -> None:
        """Store the current weights as the best ones."""
        self.best = {
            name: value.detach().clone() for name, value in self.network.state_dict().items()
        }

    @property
    def done(self) -> bool:
        """Whether all steps are done, or training ended early."""
        return bool(self.stopped) or self.progress.step >= self.steps

    def fit(self, until: int | None = None) -> Self:
        """Train up to step `until` (default: to the end).

        Raises:
            InputError: a loss or a weight is not finite; weights and state are then unusable.
        """
        last = self.steps if until is None else min(until, self.steps)
        while self.progress.step < last and not self.done:
            check_interrupt()
            self._step()
        return self

    def finish(self) -> N:
        """Return the network, with the best weights if any were stored."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        return self.network.eval()

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which the network runs in the chosen precision."""
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"
        )

    def validate_now(self) -> None:
        """Measure the validation loss, store the weights if they are the best, and stop when
        patience is exhausted.
        """
        value = self.validate()
        if value is None:
            return
        progress = self.progress
        if not math.isfinite(value):
            raise self.diverged(f"the {self.judged_by} is not finite", progress.step - 1)
        progress.validation_losses.append(value)
        lower = value < progress.best
        wins = self.wins(lower)
        if lower:
            progress.best = value
        if wins:
            progress.best_validation = len(progress.validation_losses)
            self.keep()
        self._waited = 0 if lower or wins else self._waited + 1
        if self._waited >= self.patience:
            self.stopped = "patience"

    def diverged(self, problem: str, step: int) -> InputError:
        """Return an error that names the step at which training diverged."""
        rate = self.optimizer.param_groups[0]["lr"]
        progress = f"step {step + 1:,} of {self.steps:,}, learning rate {rate:g}"
        return InputError(f"{problem} at {progress}", hint=self.hint)

    def _step(self) -> None:
        progress = self.progress
        if self._batches is None:
            self._batches = self.batches(progress.step)
        batch = next(self._batches)
        if self.seed is not None:
            torch.manual_seed(mixed(self.seed, progress.step))
        self.network.train()
        loss = self.loss(batch)
        self._update(loss)
        self.after_step()
        if progress.step % self.check_every == 0:
            self.checked(float(loss.detach()), batch)
        progress.step += 1
        if self.stopped:
            return
        epoch = progress.step % self.steps_per_epoch == 0 or progress.step == self.steps
        if epoch:
            self.after_epoch()
        if (
            epoch
            or self.stopped
            or (self.validate_every is not None and progress.step % self.validate_every == 0)
        ):
            self.validate_now()

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


def mixed(seed: int, step: int) -> int:
    """Return a 63-bit seed for (seed, step), mixed with SplitMix64's constants."""
    spread = (seed * 0x9E3779B97F4A7C15 + (step + 2) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    spread ^= spread >> 31
    return (spread * 0x94D049BB133111EB & (2**64 - 1)) >> 1
