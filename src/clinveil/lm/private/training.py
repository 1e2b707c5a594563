"""Differentially private training of a network (DP-SGD) with the patient as unit; import it after
`need_torch()`.

A step computes one gradient per sampled patient, clips it, adds the gradients and noise, and
divides by the expected number of patients. Poisson samples can be empty. Samples and noise are
keyed: they depend on key, question and step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, Philox
from torch import Tensor

from clinveil.core.fit import Trainer
from clinveil.core.keys import Key
from clinveil.core.types import Mask
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.plan import Batch, packed_plan
from clinveil.lm.private.sgd import SgdPlan
from clinveil.lm.training import Training

TOKENS = 256  # of a patient in a step


@dataclass(frozen=True)
class Randomness:
    """Keyed random numbers of a training; another question (other notes or settings) has other
    numbers.
    """

    key: Key = field(repr=False)
    question: str

    def generator(self, purpose: str, step: int) -> Generator:
        """Return the generator of one step."""
        stream = self.key.stream(f"private training: {purpose}", self.question, str(step))
        return Generator(Philox(key=[stream.uint64(), stream.uint64()]))

    def sample(self, patients: int, rate: float, step: int) -> Mask:
        """Return which patients take part in a step, (patients,): each independently, with
        probability `rate`.
        """
        return self.generator("sample", step).random(patients) < rate


@dataclass(frozen=True)
class PatientPlan:
    """Steps of a private training; the batch of a step has one batch for each sampled patient.

    patients: the notes of each patient.
    """

    patients: Sequence[EncodedNotes] = field(repr=False)
    sgd: SgdPlan
    random: Randomness
    window: int

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.sgd.steps

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one expected pass over the patients."""
        return -(-self.sgd.patients // self.sgd.batch)

    def batch(self, step: int) -> list[Batch]:
        """Return the batches of the sampled patients."""
        sampled = self.random.sample(len(self.patients), self.sgd.noise.rate, step)
        return [
            patient_batch(self.patients[row], self.window, step)
            for row in np.flatnonzero(sampled).tolist()
        ]


def patient_batch(notes: EncodedNotes, window: int, step: int) -> Batch:
    """Return about `TOKENS` tokens of a patient; in the next step, the tokens after them."""
    lanes = max(1, min(TOKENS // window, -(-int(notes.offsets[-1]) // window)))
    plan = packed_plan(notes, lanes=lanes, window=window, epochs=1, seed=0)
    return plan.batch(step % plan.steps)


class PrivateTraining(Training):
    """Training with noise; `recipe.clip` is the largest norm of a patient's gradient."""

    plan: PatientPlan

    @property
    def trained(self) -> list[torch.nn.Parameter]:
        """The weights that are trained."""
        return [weights for weights in self.network.parameters() if weights.requires_grad]

    def clipped_sum(self, batch: Iterable[Batch]) -> tuple[list[Tensor], float]:
        """Return the sum of the clipped gradients of patients, and the sum of their losses."""
        weights = self.trained
        total = 0.0
        sums = [torch.zeros_like(one) for one in weights]
        for patient in batch:
            self.state = None
            loss = super().loss(patient)
            gradients = torch.autograd.grad(loss, weights)
            norm = float(
                torch.stack([one.double().square().sum() for one in gradients]).sum().sqrt()
            )
            if np.isfinite(norm):  # else the patient contributes 0
                factor = self.recipe.clip / max(norm, self.recipe.clip)
                for sum_, one in zip(sums, gradients, strict=True):
                    sum_.add_(one, alpha=factor)
                total += float(loss.detach())
        self.state = None
        return sums, total

    def loss(self, batch: Any) -> Tensor:
        """Set the noisy gradients; return the mean loss of the patients."""
        sums, total = self.clipped_sum(batch)
        generator = self.plan.random.generator("noise", self.progress.step)
        deviation = self.plan.sgd.noise.sigma * self.recipe.clip
        for weights, sum_ in zip(self.trained, sums, strict=True):
            noise = torch.from_numpy(generator.standard_normal(tuple(sum_.shape))).to(sum_)
            weights.grad = (sum_ + deviation * noise) / self.plan.sgd.batch
        return torch.tensor(total / max(1, len(batch)))

    def _update(self, loss: Tensor) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_at(self.progress.step)
        self.optimizer.step()

    def checked(self, value: float, batch: Any) -> None:
        """Record the loss of a step. Raises InputError if it is not finite."""
        Trainer.checked(self, value, batch)
        self.progress.loss_sum += value * len(batch)
        self.progress.loss_tokens += len(batch)
