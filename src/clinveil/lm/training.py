"""Train a network on tokens, resumable with bitwise equal results; import it after `need_torch()`.

Dropout masks depend on (seed, step) only. Two trainings with one seed have the same masks at the
same step, whichever notes are left out, and a resumed training needs no state of a random
generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clinveil.core import InputError, Progress, Trainer, Weights, mixed
from clinveil.lm.network import (
    Network,
    State,
    build,
    read_tensors,
    set_weights,
    weights_of,
    write_tensors,
)
from clinveil.lm.plan import Batch, Plan
from clinveil.lm.recipe import Recipe

# warm-up: share of the steps; and the rate at the end as a share
WARM_UP = 0.02
LAST_SHARE = 0.1
DECAY = 0.01
BETAS = (0.9, 0.95)
# Paper C's recipe (plan `stream`): the rate is divided after an epoch whose validation perplexity
# is not this much below the best, but never below the lowest rate.
BACKOFF = 4.0
GAIN = 0.1
LOWEST_RATE = 0.1
CHECK_EVERY = 20  # on a GPU
DIVERGED = 700.0  # nats per token; the perplexity of a larger loss is infinite
# Names in the file of a state -> attributes of `TokenProgress`.
_PROGRESS = {
    "step": "step",
    "rate": "rate",
    "best": "best",
    "best_epoch": "best_validation",
    "losses": "losses",
}
_PROGRESS |= {"perplexities": "looks", "loss_sum": "loss_sum", "loss_tokens": "loss_tokens"}
Validate = Callable[[Network], float]  # returns the perplexity of validation notes


@dataclass
class TokenProgress(Progress):
    """Progress with the annealed rate, the mean loss (nats per token) of each epoch, and sums of
    the current epoch.
    """

    rate: float = 0.0
    losses: list[float] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_tokens: float = 0.0


class Training(Trainer[Network, Batch]):
    """One training, over a vocabulary of `size`; call all methods inside `seeded`. `start`: makes
    the first network.
    """

    progress: TokenProgress
    plan: Plan
    judged_by = "validation perplexity"
    hint = "pass a smaller lm.rate"

    def __init__(
        self,
        size: int,
        recipe: Recipe,
        plan: Plan,
        *,
        seed: int,
        device: torch.device,
        validate: Validate | None = None,
        start: Callable[[], Network] | None = None,
    ) -> None:
        self.anneals = recipe.plan == "stream"
        if self.anneals and validate is None:
            raise InputError("paper C's training requires validation notes", hint="pass more notes")
        torch.manual_seed(mixed(seed, -1))
        network = build(size, recipe) if start is None else start()
        network.to(device)
        super().__init__(
            network,
            _optimizer(network, recipe),
            device,
            steps_per_epoch=plan.steps_per_epoch,
            steps=plan.steps,
        )
        self.recipe = recipe
        self.plan = plan
        self.seed = seed
        self.clip_norm = recipe.clip
        self.precision = recipe.precision
        self.check_every = 1 if device.type == "cpu" else CHECK_EVERY
        self.progress = TokenProgress(rate=recipe.rate)
        self.state: State | None = None
        self._perplexity = validate

    @property
    def history(self) -> dict[str, Any]:
        """Mean losses and validation perplexities by epoch."""
        return {"losses": self.progress.losses, "perplexities": self.progress.validation_losses}

    def batches(self, step: int) -> Iterator[Any]:
        """Return the batches of the plan from a step on."""
        return (self.plan.batch(number) for number in range(step, self.plan.steps))

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step."""
        if self.anneals:
            return self.progress.rate
        warm = max(1, round(WARM_UP * self.plan.steps))
        left = (self.plan.steps - step) / max(1, self.plan.steps - warm)
        return self.recipe.rate * min(
            (step + 1) / warm, LAST_SHARE + (1 - LAST_SHARE) * min(1.0, left)
        )

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean -ln P per token; the next batch continues with the state of the lanes."""
        inputs, targets, weights = (
            torch.from_numpy(part).to(self.device)
            for part in (batch.inputs, batch.targets, batch.weights)
        )
        state = self.state if self.state is not None else self.network.start(inputs.shape[1])
        reset = torch.from_numpy(batch.reset).to(self.device)
        state = tuple(
            part.masked_fill(reset.reshape(1, -1, *[1] * (part.dim() - 2)), 0.0) for part in state
        )
        with self.autocast():
            hidden, state = self.network(inputs, state)
            scores = self.network.scores(hidden)
        losses = functional.cross_entropy(
            scores.float().flatten(0, 1), targets.long().flatten(), reduction="none"
        )
        self.state = tuple(part.detach().float() for part in state)
        return (losses * weights.flatten()).sum() / batch.normaliser

    def checked(self, value: float, batch: Batch) -> None:
        """Record the loss of a step. Raises InputError if it is not finite or too large."""
        super().checked(value, batch)
        if value > DIVERGED:
            raise self.diverged(f"the loss is {value:.3g} nats per token", self.progress.step)
        self.progress.loss_sum += value * batch.normaliser
        self.progress.loss_tokens += float(batch.weights.sum())

    def after_epoch(self) -> None:
        """Record the mean loss. Raises InputError if a weight is not finite."""
        now = self.progress
        # A loss is computed before the update of its step, so the last update has not been checked
        # yet.
        if not all(bool(torch.isfinite(weights).all()) for weights in self.network.parameters()):
            raise self.diverged("a weight is not finite", now.step - 1)
        now.losses.append(now.loss_sum / max(now.loss_tokens, 1.0))
        now.loss_sum = now.loss_tokens = 0.0

    def validate(self) -> float | None:
        """Return the perplexity of the validation notes."""
        return None if self._perplexity is None else self._perplexity(self.network)

    def wins(self, lower: bool) -> bool:
        """Select the lowest perplexity; paper C's training lowers the rate unless the gain is
        large enough.
        """
        now = self.progress
        gained = now.best - now.validation_losses[-1] >= GAIN
        if self.anneals and not gained and now.rate > LOWEST_RATE:
            now.rate = max(now.rate / BACKOFF, LOWEST_RATE)
        return lower

    def keep(self) -> None:
        """Keep the best weights of paper C's training; otherwise the last weights are returned."""
        if self.anneals:
            super().keep()


def _optimizer(network: Network, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=recipe.rate, foreach=False)
    # Weight decay applies to matrices of the layers only: it would shrink the rarely updated
    # vectors of rare words.
    token = {id(network.input), id(network.output)}
    matrices = [p for p in network.parameters() if p.dim() > 1 and id(p) not in token]
    others = [p for p in network.parameters() if p.dim() <= 1 or id(p) in token]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=BETAS, foreach=False)


def save_training(training: Training, path: Path, identity: str) -> None:
    """Write the state of a training: weights, optimizer, state of the lanes and progress."""
    tensors = {f"weights.{k}": v for k, v in weights_of(training.network).items()}
    shared = {"output"} if training.recipe.tied else set()
    tensors |= {f"best.{k}": v.cpu() for k, v in (training.best or {}).items() if k not in shared}
    tensors |= {f"state.{i}": part.cpu() for i, part in enumerate(training.state or ())}
    for row, values in training.optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{row}.{name}": torch.as_tensor(value).cpu()
            for name, value in values.items()
        }
    progress = {
        name: getattr(training.progress, attribute) for name, attribute in _PROGRESS.items()
    }
    progress["best"] = (
        None
        if training.best is None and not training.progress.validation_losses
        else progress["best"]
    )
    write_tensors(path, tensors, {"identity": identity, "progress": progress})


def load_training(training: Training, path: Path, identity: str) -> None:
    """Restore the state of a training.

    Raises InputError: the file is damaged, or belongs to another training (notes, vocabulary,
    recipe or seed differ).
    """
    tensors, about = read_tensors(path)
    if about.get("identity") != identity:
        raise InputError(
            "belongs to another training",
            where=path.name,
            hint="remove it or pass the same settings",
        )
    device = training.device
    set_weights(training.network, {k: v.to(device) for k, v in _below(tensors, "weights").items()})
    state = _below(tensors, "state")
    training.state = tuple(state[str(i)].to(device) for i in range(len(state))) or None
    best = _below(tensors, "best")
    training.best = {k: v.to(device) for k, v in best.items()} or None
    if training.best is not None and training.recipe.tied:
        training.best["output"] = training.best["input"]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _below(tensors, "optimizer").items():
        row, _, part = name.partition(".")
        moments.setdefault(int(row), {})[part] = value if part == "step" else value.to(device)
    known = training.optimizer.state_dict()
    training.optimizer.load_state_dict({**known, "state": moments})
    progress = TokenProgress()
    for name, attribute in _PROGRESS.items():
        setattr(progress, attribute, about["progress"][name])
    if about["progress"]["best"] is None:
        progress.best = float("inf")
    training.progress = progress


def _below(tensors: Mapping[str, Tensor], head: str) -> Weights:
    start = f"{head}."
    return {
        name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)
    }
