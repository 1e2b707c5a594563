"""Membership inference: can it be told from a model, or from its synthetic notes, whose notes it was trained on?

The patient is the unit: their score is the mean log-probability of all words of all their notes. Two attackers: one
who takes the likeliest for members (loss threshold), and one who first takes away what a model of other notes gives
them (calibrated). Beside them stands a blind attacker, who reads the notes and has no model: where that one is better
than chance, members and non-members differ by themselves, and no figure here means anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.stats.roc import Scores, Separation

RATES = (0.01, 0.001)
NOT_TRIED = "the calibrated attack, the stronger one, was not tried: it needs notes of third patients (--reference)"
HITS_METHOD = "exact of the members and of the threshold, squared and added (Zou and Donner), 95 %"
SOURCE = "loss threshold: Yeom et al. 2018; calibrated: Watson et al. 2022"


@dataclass(frozen=True)
class Scored:
    """What a model gives the notes of members and non-members, a row a note.

    Attributes:
        patients: whose note it is. members: (n_notes,) bool, whether the model was trained on that patient.
        totals: (n_notes,) log-probability (nats) of the whole note. tokens: (n_notes,) how many were scored.
        reference: (n_notes,) the same under a model of other patients' notes, or None.

    Raises:
        InputError: rows that do not agree, a note without tokens, a patient on both sides.
    """

    patients: Sequence[str] = field(repr=False)
    members: NDArray[np.bool_] = field(repr=False)
    totals: Scores = field(repr=False)
    tokens: NDArray[np.int64] = field(repr=False)
    reference: Scores | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shapes = {len(self.patients), self.members.size, self.totals.size, self.tokens.size}
        if self.reference is not None:
            shapes.add(self.reference.size)
        if len(shapes) != 1:
            raise InputError("notes, patients and scores differ in number")
        if (self.tokens <= 0).any():
            raise InputError(f"{int((self.tokens <= 0).sum())} notes have no scored token", remedy="leave them out")
        sides = {(patient, bool(m)) for patient, m in zip(self.patients, self.members, strict=True)}
        if both := len(sides) - len(set(self.patients)):
            raise InputError(f"{both} patients are members and non-members at once", remedy="split by patient")

    def by_patient(self, totals: Scores) -> Separation:
        """Members against non-members, by mean log-probability a token."""
        patient = np.unique(np.array(self.patients, dtype=object), return_inverse=True)[1]
        means = np.bincount(patient, weights=totals) / np.bincount(patient, weights=self.tokens)
        member = np.bincount(patient, weights=self.members) > 0
        return Separation(means[member], means[~member])


def membership(
    scored: Scored, *, blind: Finding | None = None, detail: Mapping[str, Any] | None = None
) -> list[Finding]:
    """AUC, and hits at 1 % and 0.1 % false alarms, of the loss threshold and, given a reference, calibrated.

    Args:
        scored: notes with their scores; the split was made by patient, at random, before training.
        blind: what the blind attacker found on the same notes: the control.
        detail: goes into every finding, for example what was attacked ("model" or "synthetic notes").

    Returns:
        `attack.membership` (AUC, chance 0.5) and `attack.membership_hits` by attacker; a rate of false alarms that so
        few non-members cannot measure has no value, and says so, and so does the calibrated attack without reference.
    """
    attackers = {"loss threshold": scored.by_patient(scored.totals)}
    if scored.reference is not None:
        attackers["calibrated"] = scored.by_patient(scored.totals - scored.reference)
    found = []
    for name, separation in attackers.items():
        more = {**(detail or {}), "attacker": name, "members": separation.members.size}
        more |= {"non_members": separation.others.size}
        found.append(_area(separation, more, blind))
        found += [_hits(separation, rate, more) for rate in RATES]
    return found if scored.reference is not None else [*found, _not_tried(scored, detail or {})]


def _not_tried(scored: Scored, detail: Mapping[str, Any]) -> Finding:
    """The calibrated attack without a reference: said, or a good figure of the weaker one would pass for all."""
    n = len(set(scored.patients))
    more = {**detail, "attacker": "calibrated", "why": NOT_TRIED}
    return Finding("attack.membership", None, n, "lower", chance=0.5, source=SOURCE, detail=more, unit="patients")


def _area(separation: Separation, detail: dict[str, Any], blind: Finding | None) -> Finding:
    more = {"statistic": "area under the curve"}
    if blind is not None and blind.low is not None and blind.low > 0.5:
        more["warning"] = "the blind attacker beats chance: the two sides differ by themselves"
    low, high = separation.auc_interval()
    return Finding(
        "attack.membership",
        separation.auc,
        separation.members.size + separation.others.size,
        "lower",
        low,
        high,
        chance=0.5,
        control=None if blind is None else blind.value,
        source=SOURCE,
        detail={**detail, **more},
        unit="patients",
        method=separation.auc_method,
        chance_is="a score that knows nothing",
        control_is="" if blind is None else "a blind attacker: words of the notes, no model",
        control_kind=None if blind is None else "negative",
    )


def _hits(separation: Separation, rate: float, detail: dict[str, Any]) -> Finding:
    more = {**detail, "false_alarms": rate, "statistic": "share of members found"}
    name, n = "attack.membership_hits", separation.members.size
    try:
        share, (low, high) = separation.hits_at(rate)
    except InputError as error:
        return Finding(name, None, n, "lower", source=SOURCE, detail={**more, "why": error.what}, unit="patients")
    return Finding(
        *(name, share, n, "lower", low, high, rate, None, SOURCE, more),
        unit="patients",
        count=round(share * n),
        method=HITS_METHOD,
        chance_is="as many members as non-members pass",
    )
