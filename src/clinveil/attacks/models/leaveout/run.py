"""An audit from notes to findings: plan, train what is not trained, compare."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout import pdtp
from clinveil.attacks.models.leaveout.arms import INITIAL, Embedded, Pretrained
from clinveil.attacks.models.leaveout.cost import duration, refuse_too_long, seconds_of_one
from clinveil.attacks.models.leaveout.crossfit import Effects, cross_fit, effect_finding
from clinveil.attacks.models.leaveout.data import AuditData, load_data
from clinveil.attacks.models.leaveout.members import Member, load_logs
from clinveil.attacks.models.leaveout.planted_names import name_findings
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.finding import Finding
from clinveil.lm.model import Logs
from clinveil.scale.local import Map
from clinveil.scale.tasks import Store, Work, perform_all

Say = Callable[[str], None]


@dataclass(frozen=True)
class Audit:
    """All models of one arm of an audit.

    Attributes:
        full: of all units. again: the same once more (None for count models). reseeded, left_out: the others.
        name: "" or how the first weights were made.
        other_seeds: what `left_out` is, under each further training seed: the effect is measured across seeds.
    """

    data: Path
    full: Member
    again: Member | None
    reseeded: tuple[Member, ...]
    left_out: tuple[Member, ...]
    name: str = ""
    other_seeds: tuple[tuple[Member, ...], ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        """All of them, the full model first."""
        again = (self.again,) if self.again else ()
        others = (one for models in self.other_seeds for one in models)
        return (self.full, *again, *self.reseeded, *self.left_out, *others)

    @property
    def shared(self) -> tuple[Member, ...]:
        """Those that others go on from: they are trained first."""
        return (self.full, *(one for one in self.reseeded if one.shares))


def audit_of(
    folder: Path,
    settings: LeaveOutSettings,
    *,
    seed: int,
    words: int = 0,
    initial: Path | None = None,
    name: str = "",
    keep: bool = False,
) -> Audit:
    """The models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes a model, 0 for none. initial: first weights.
        keep: keep the model of all units, as a checkpoint.
    """
    recipe, mode = settings.audit_recipe(), settings.mode
    bare = Member(
        folder, settings.lm.model, recipe, mode, seed, write=words, initial=initial, device=settings.lm.device
    )
    full = replace(bare, keep=keep, shares=True)
    units = range(len(load_data(folder).units))
    if recipe is None:
        return Audit(folder, full, None, (), tuple(replace(bare, left_out=unit) for unit in units), name)
    left_out = tuple(replace(bare, left_out=unit, forks=full) for unit in units)
    again = replace(bare, repeat=1, write=0)
    more = settings.seeds - 1
    reseeded = tuple(replace(bare, seed=seed + 1_000 + i, shares=i < more) for i in range(settings.reseeds))
    other_seeds = tuple(
        tuple(replace(bare, left_out=unit, seed=seed + 1_000 + i, forks=forks) for unit in units)
        for i, forks in zip(range(more), (*reseeded, *(None for _ in range(more))), strict=False)
    )
    return Audit(folder, full, again, reseeded, left_out, name, other_seeds)


def arms_of(
    folder: Path, settings: LeaveOutSettings, *, seed: int, words: int, public: Path | None, vectors_sha256: str = ""
) -> list[tuple[Work | None, str]]:
    """What makes first weights, and its name; random ones come first."""
    arms: list[tuple[Work | None, str]] = [(None, "")]
    recipe = settings.audit_recipe()
    if recipe is not None and public is not None:
        start = replace(recipe, plan="rows", schedule="fixed")
        arms.append((Pretrained(public, start, seed, settings.lm.device), "pretrained"))
    if recipe is not None and settings.init_vectors is not None:
        arms.append((Embedded(folder, recipe, seed, settings.init_vectors, vectors_sha256), "word vectors"))
    return arms


def perform_audits(
    store: Store, audits: Sequence[Audit], over: Map, say: Say, *, workers: int, most_hours: float
) -> None:
    """Train all models that are not trained; says the hours first. Raises UsageError where they are too many."""
    recipe = audits[0].full.recipe
    waiting = [one for audit in audits for one in audit.members if not store.done(one)]
    if recipe is not None and waiting:
        data = load_data(audits[0].data)
        one = seconds_of_one(data, recipe, audits[0].full.device)
        passes = sum(member.recipe.epochs for member in waiting if member.recipe) / recipe.epochs
        hours = one * max(1.0, passes / workers) / 3600
        tokens = data.encoded.ids.size * recipe.epochs / one
        each = f"{tokens:,.0f} tokens a second and {one:,.0f} s each"
        say(f"{len(waiting)} models of {each}: about {duration(hours)}")
        refuse_too_long(hours, most_hours)
    first = [one for audit in audits for one in audit.shared]
    rest = [one for audit in audits for one in audit.members if one not in first]
    for stage in (first, rest):
        perform_all(store, stage, over, say)


@dataclass(frozen=True)
class Measured:
    """What an audit found.

    Attributes:
        findings: all numbers. leave_out: the differences they are made from. table: a row a unit, numbers only.
        effects: across training seeds; None where there is one seed, and something was drawn at random.
    """

    findings: list[Finding]
    leave_out: pdtp.LeaveOut
    effects: Effects | None
    table: str = field(repr=False)


def measure(store: Store, audit: Audit, rng: Generator, patients: Sequence[str], *, text: bool = False) -> Measured:
    """Compare the finished models of an audit.

    Args:
        patients: whose each unit is. text: score by n-grams of each model's synthetic notes instead of by the model.
    """
    data = load_data(audit.data)
    name = "text-logs.npy" if text else "logs.npy"

    def read(member: Member) -> list[Logs]:
        logs = load_logs(store, member, data, name)
        return _without_first(logs, data) if audit.full.mode == "compat" else logs

    full = read(audit.full)
    left_out = [read(m) for m in audit.left_out]
    compared = pdtp.leave_out(full, left_out, [read(m) for m in audit.reseeded])
    effects = None
    if audit.other_seeds or (audit.full.recipe is None and not text):
        effects = cross_fit([left_out, *([read(m) for m in models] for models in audit.other_seeds)])
    detail: dict[str, Any] = {"mode": audit.full.mode, "model": audit.full.kind}
    detail |= {"from": "released notes" if text else "the model"}
    detail |= {"first_weights": audit.name or "random"}
    if audit.full.recipe is not None:
        detail["dropout"] = audit.full.recipe.dropout
    found = pdtp.findings(compared, rng, detail, patients=patients)
    if effects is not None:
        found.append(effect_finding(effects, rng, detail, patients))
    if len(compared.reseeded):
        found.append(pdtp.reseed_floor(compared, detail))
    if audit.again is not None and not text:
        found.append(_rerun(full, read(audit.again), detail))
    found += name_findings(data, compared, rng, detail)
    return Measured(found, compared, effects, _table(data, compared, effects))


def _without_first(logs: Sequence[Logs], data: AuditData) -> list[Logs]:
    """The first token of each note counts as no difference: paper C's code scores from the second one on."""
    rows = []
    for unit, own in zip(data.units, logs, strict=True):
        starts = np.cumsum([0, *data.encoded.lengths[unit][:-1]])
        rows.append(np.where(np.isin(np.arange(own.size), starts), 0.0, own))
    return rows


def _rerun(full: Sequence[Logs], again: Sequence[Logs], detail: Mapping[str, Any]) -> Finding:
    """The same training twice: 0 where it is deterministic."""
    largest = max(float(np.abs(one - other).max()) for one, other in zip(full, again, strict=True))
    more = {**detail, "bit_identical": largest == 0.0, "scale": "nats"}
    n, name = int(sum(logs.size for logs in full)), "attack.pdtp_rerun"
    is_what = "deterministic training"
    source = pdtp.SOURCE
    return Finding(name, largest, n, chance=0.0, source=source, detail=more, unit="tokens", chance_is=is_what)


def _table(data: AuditData, compared: pdtp.LeaveOut, effects: Effects | None) -> str:
    """A row a unit: score and floors, where its largest difference is, how often that token stands in the notes."""
    counts = np.bincount(data.encoded.ids, minlength=data.vocabulary.size)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = ["unit", "notes", "tokens", "score", "placebo", "effect", "reseed", "gap", "sign", "place", "share_of_note"]
    writer.writerow([*heads, "occurrences_of_token", "planted", "on_name"])
    own = np.full(len(data.units), np.nan) if effects is None else effects.own
    for unit, rows in enumerate(data.units):
        tokens = np.concatenate(data.notes_of(unit))
        place = int(compared.places[unit])
        span = data.planted[unit] if data.planted else ()
        numbers = [compared.scores[unit], compared.placebos[unit], own[unit]]
        numbers += [compared.reseeded[:, unit].mean() if len(compared.reseeded) else np.nan, compared.gaps[unit, unit]]
        rarity = [place, f"{place / tokens.size:.3f}", int(counts[tokens[place]])]
        on_name = bool(span) and span[0] <= place < span[1]
        plain = [f"{number:.4f}" for number in numbers] + ["+" if compared.signed[unit] > 0 else "-"]
        writer.writerow([unit + 1, rows.size, tokens.size, *plain, *rarity, bool(span), on_name])
    return out.getvalue()


def initial_of(store: Store, work: Work | None) -> Path | None:
    """The file of first weights that an arm made."""
    return None if work is None else store.folder(work) / INITIAL
