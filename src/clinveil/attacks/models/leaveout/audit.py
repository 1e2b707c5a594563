"""An audit from notes to findings: plan the models, train missing ones, compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clinveil.attacks.models.leaveout.compare import compare
from clinveil.attacks.models.leaveout.data import AuditData, load_data, pick_units, prepare
from clinveil.attacks.models.leaveout.models import Audit, NetworkModel, audit_of
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import UsageError
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.core.types import Say
from clinveil.lm.notes import PlainNotes
from clinveil.lm.recipe import Recipe
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Store, perform_all

AHEAD = 1_000
TIMED_STEPS = 6


def train_audits(
    store: Store, audits: Sequence[Audit], over: Map, say: Say, *, workers: int, most_hours: float
) -> None:
    """Train all models not yet trained; reports the estimated hours. Raises UsageError if they exceed the limit."""
    waiting = [one for audit in audits for one in audit.models if not store.done(one)]
    networks = [one for one in waiting if isinstance(one, NetworkModel)]
    if networks:
        _refuse_too_slow(audits[0], networks, say, workers, most_hours)
    first = [one for audit in audits for one in audit.shared]
    rest = [one for audit in audits for one in audit.models if one not in first]
    for stage in (first, rest):
        perform_all(store, stage, over, say)


def _refuse_too_slow(audit: Audit, waiting: Sequence[NetworkModel], say: Say, workers: int, most_hours: float) -> None:
    """Report the estimated training time of the missing models, based on the first audit; refuse if too long."""
    model = audit.full if isinstance(audit.full, NetworkModel) else waiting[0]
    data, epochs = load_data(model.data), model.recipe.epochs
    seconds = seconds_of_one(data, model.recipe, model.device)
    passes = sum(one.recipe.epochs for one in waiting) / epochs
    hours = seconds * max(1.0, passes / workers) / 3600
    tokens = data.encoded.ids.size * epochs / seconds
    say(f"{len(waiting)} models of {tokens:,.0f} tokens a second and {seconds:,.0f} s each: about {duration(hours)}")
    refuse_too_long(hours, most_hours)


def seconds_of_one(data: AuditData, recipe: Recipe, device: str) -> float:
    """Estimate the seconds of one model's training from a few steps of the real network on this machine."""
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
        training.fit(before + TIMED_STEPS)
        made = max(1, training.progress.step - before)
        return (time.monotonic() - began) / made * plan.steps


def duration(hours: float) -> str:
    """Format a duration in hours, minutes or seconds."""
    seconds = 3600 * hours
    if hours >= 0.1:
        return f"{hours:.1f} hours"
    if seconds >= 120:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def refuse_too_long(hours: float, most: float) -> None:
    """Raise UsageError if the plan cannot finish in time."""
    if hours > most:
        hint = f"use fewer --units, a smaller --size, or --max-hours {max(0.1, hours * 1.5):.1f}"
        raise UsageError(f"this would take about {duration(hours)}, more than --max-hours {most:g}", hint=hint)


def audit_notes(
    notes: PlainNotes,
    settings: LeaveOutSettings,
    seed: int,
    store: Store,
    out: Path,
    say: Say,
    *,
    over: Map | None = None,
) -> list[Finding]:
    """Select units, train missing models, compare; writes `units-*.csv` (numbers only) to `out`.

    Args:
        over: how tasks are distributed (default: one process per worker).

    Raises:
        InputError, UsageError: as in the steps; completed steps are kept.
    """
    rng, by_note = np.random.default_rng(seed), settings.unit == "note"
    units = pick_units(notes, settings.units, rng, by_note=by_note)
    data = prepare(notes, units, settings, rng)
    say(f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in the vocabulary")
    over = over or processes(settings.workers, ahead=AHEAD)
    words = data.encoded.ids.size if settings.from_text else 0
    audit = audit_of(data.save(store.root), settings, seed=seed, words=words)
    train_audits(store, [audit], over, say, workers=settings.workers, most_hours=settings.max_hours)
    owners = [notes.patients[rows[0]] if by_note else f"unit {unit}" for unit, rows in enumerate(units)]
    found: list[Finding] = []
    for text in (False, True) if settings.from_text else (False,):
        compared = compare(store, audit, np.random.default_rng(seed), owners, text=text)
        found += compared.findings
        private_text(out / f"units-{'text' if text else 'model'}.csv", compared.table)
    return found
