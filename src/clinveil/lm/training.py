"""Training a network step by step, so that it can stop anywhere and go on to the same bits; after `need_torch()`.

Dropout masks belong to (seed, step) alone: two trainings with one seed have the same masks at the same step, whatever
was left out, and a training that was taken up again needs no generator's state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.lm.network import Network, State, build, cleared
from clinveil.lm.plan import Batch, Plan
from clinveil.lm.recipe import Recipe

Weights = dict[str, Tensor]
WARM_UP, LAST_SHARE = 0.02, 0.1  # fixed schedule: share of the steps, and of the rate at the end
DECAY, BETAS = 0.01, (0.9, 0.95)
CHECK_EVERY = 20  # steps between looks at the loss: a look makes a GPU wait
DIVERGED = 700.0  # nats a token: the perplexity of more is no number


@dataclass
class Progress:
    """Where a training stands: all that it needs to go on.

    Attributes:
        step: steps made. rate: of an annealed schedule. best: lowest validation perplexity so far, inf without one.
        best_epoch: the epoch after which it was. losses: mean training loss (nats a token) of each epoch so far.
        perplexities: validation perplexity after each epoch. loss_sum, loss_tokens: of the epoch under way.
    """

    step: int = 0
    rate: float = 0.0
    best: float = math.inf
    best_epoch: int = 0
    losses: list[float] = field(default_factory=list)
    perplexities: list[float] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_tokens: float = 0.0


Validate = Callable[[Network], float]  # the perplexity of validation notes


class Training:
    """One training; call everything inside `seeded`.

    Args:
        size: of the vocabulary. initial: first weights, instead of random ones.
    """

    def __init__(
        self,
        size: int,
        recipe: Recipe,
        plan: Plan,
        *,
        seed: int,
        device: torch.device,
        initial: Mapping[str, Tensor] | None = None,
        validate: Validate | None = None,
    ) -> None:
        self.recipe, self.plan, self.seed, self.device, self.validate = recipe, plan, seed, device, validate
        if recipe.schedule == "annealed" and validate is None:
            raise InputError("an annealed schedule needs validation notes", remedy="--schedule fixed")
        torch.manual_seed(_mixed(seed, -1))
        self.network = build(size, recipe)
        if initial is not None:
            self._begin_with(initial)
        self.network.to(device)
        self.optimizer = _optimizer(self.network, recipe)
        self.progress = Progress(rate=recipe.rate)
        self.state: State | None = None
        self.best: Weights | None = None

    def _begin_with(self, initial: Mapping[str, Tensor]) -> None:
        """All weights of a trained model, or its word vectors alone; what is not named stays random."""
        shapes = {k: v.shape for k, v in self.network.state_dict().items()}
        if any(shapes.get(name) != value.shape for name, value in initial.items()):
            raise InputError("the first weights are of another model or vocabulary")
        self.network.load_state_dict(dict(initial), strict=False)

    @property
    def done(self) -> bool:
        """Whether all steps are made."""
        return self.progress.step >= self.plan.steps

    def advance(self, until: int | None = None) -> None:
        """Make steps, up to `until` of them in all (default: to the end).

        Raises:
            InputError: the loss is no number or absurd, or a weight is none; says the step and the learning rate.
                Weights and state are then useless.
        """
        last = self.plan.steps if until is None else min(until, self.plan.steps)
        while self.progress.step < last:
            self._step(self.plan.batch(self.progress.step))
            self.progress.step += 1
            if self.progress.step % self.plan.steps_per_epoch == 0 or self.done:
                self._end_epoch()

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        if self.recipe.schedule == "annealed":
            return self.progress.rate
        warm = max(1, round(WARM_UP * self.plan.steps))
        left = (self.plan.steps - step) / max(1, self.plan.steps - warm)
        return self.recipe.rate * min((step + 1) / warm, LAST_SHARE + (1 - LAST_SHARE) * min(1.0, left))

    def _step(self, batch: Batch) -> None:
        inputs, targets, weights = (
            torch.from_numpy(part).to(self.device) for part in (batch.inputs, batch.targets, batch.weights)
        )
        torch.manual_seed(_mixed(self.seed, self.progress.step))
        self.network.train()
        state = self.state if self.state is not None else self.network.start(inputs.shape[1])
        state = cleared(state, torch.from_numpy(batch.reset).to(self.device))
        low = self.recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            below, state = self.network(inputs, state)
            scores = self.network.scores(below)
        losses = functional.cross_entropy(scores.float().flatten(0, 1), targets.long().flatten(), reduction="none")
        loss = (losses * weights.flatten()).sum() / batch.normaliser
        self.state = tuple(part.detach().float() for part in state)
        self._update(loss)
        self._log(loss, float(batch.weights.sum()), batch.normaliser)

    def _update(self, loss: Tensor) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_at(self.progress.step)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip, foreach=False)
        self.optimizer.step()

    def _log(self, loss: Tensor, tokens: float, normaliser: float) -> None:
        if self.progress.step % CHECK_EVERY == 0 or self.device.type == "cpu":
            value = float(loss.detach())
            if not math.isfinite(value):
                raise self._diverged("the loss is no number", self.progress.step)
            if value > DIVERGED:
                raise self._diverged(f"the loss is {value:.3g} nats a token", self.progress.step)
            self.progress.loss_sum += value * normaliser
            self.progress.loss_tokens += tokens

    def _diverged(self, what: str, step: int) -> InputError:
        at = f"step {step + 1:,} of {self.plan.steps:,}, learning rate {self.rate_at(step):g}"
        return InputError(f"{what} at {at}", remedy="a smaller --rate")

    def _end_epoch(self) -> None:
        now = self.progress
        # The loss of a step is that of the weights before it: the last ones were not looked at.
        if not all(bool(torch.isfinite(weights).all()) for weights in self.network.parameters()):
            raise self._diverged("a weight is no number", now.step - 1)
        now.losses.append(now.loss_sum / max(now.loss_tokens, 1.0))
        now.loss_sum = now.loss_tokens = 0.0
        if self.validate is None:
            return
        found = self.validate(self.network)
        if not math.isfinite(found):
            raise self._diverged("the validation perplexity is no number", now.step - 1)
        now.perplexities.append(found)
        if self.recipe.schedule == "annealed":
            self._anneal(found)
        if found < now.best:
            now.best, now.best_epoch = found, len(now.perplexities)
            if self.recipe.schedule == "annealed":
                self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def _anneal(self, perplexity: float) -> None:
        """Paper C's code: unless perplexity is `gain` below the best so far, a smaller rate; weights stay."""
        recipe, now = self.recipe, self.progress
        if not now.best - perplexity >= recipe.gain and now.rate > recipe.rate_floor:
            now.rate = max(now.rate / recipe.backoff, recipe.rate_floor)

    def finish(self) -> Network:
        """The network: of the last step, or of the best epoch where the schedule is annealed."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        return self.network.eval()


def _optimizer(network: Network, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=recipe.rate, foreach=False)
    # Decay pulls matrices of the layers only: token vectors of rare words would fade between their few updates.
    token = {id(network.input), id(network.output)}
    matrices = [p for p in network.parameters() if p.dim() > 1 and id(p) not in token]
    others = [p for p in network.parameters() if p.dim() <= 1 or id(p) in token]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=BETAS, foreach=False)


def _mixed(seed: int, step: int) -> int:
    """A seed for (seed, step); 63 bits, spread by SplitMix64's constants."""
    mixed = (seed * 0x9E3779B97F4A7C15 + (step + 2) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed ^= mixed >> 31
    return (mixed * 0x94D049BB133111EB & (2**64 - 1)) >> 1
