"""How long an audit will take: measured on a few steps of the real network, before anything else is done."""

from __future__ import annotations

import time

from clinveil.attacks.models.leaveout.data import AuditData
from clinveil.core.errors import UsageError
from clinveil.lm.recipe import Recipe

STEPS = 6


def seconds_of_one(data: AuditData, recipe: Recipe, device: str) -> float:
    """Seconds that one model's training takes, from a few steps on this machine; import-heavy, call it once."""
    from clinveil.core.neural import device_named, seeded
    from clinveil.lm.train import plan_of, refuse_too_large
    from clinveil.lm.training import Training

    refuse_too_large(data.vocabulary.size, recipe, device)
    plan = plan_of(data.encoded, recipe, 0)
    with seeded(0):
        place = device_named(device)
        training = Training(data.vocabulary.size, recipe, plan, seed=0, device=place, validate=lambda network: 1.0)
        training.fit(2)
        began, before = time.monotonic(), training.progress.step
        training.fit(before + STEPS)
        made = max(1, training.progress.step - before)
        return (time.monotonic() - began) / made * plan.steps


def duration(hours: float) -> str:
    """For people: hours with a decimal, below a tenth of one minutes, below two of those seconds."""
    seconds = 3600 * hours
    if hours >= 0.1:
        return f"{hours:.1f} hours"
    if seconds >= 120:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def refuse_too_long(hours: float, most: float) -> None:
    """Raise UsageError where the plan cannot finish in time."""
    if hours > most:
        remedy = f"fewer --units, a smaller --size, or --max-hours {max(0.1, hours * 1.5):.1f}"
        raise UsageError(f"this would take about {duration(hours)}, more than --max-hours {most:g}", remedy=remedy)
