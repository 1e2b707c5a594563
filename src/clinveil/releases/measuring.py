"""What attacks and utility find in a release, alone and together with what it was added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, of_release
from clinveil.attacks.channel.channel_figures import single_names
from clinveil.core.finding import Finding, write_findings
from clinveil.releases.added import ALONE, OnBoth
from clinveil.releases.attack_gates import linkage_gates, reading_gates, single_gates
from clinveil.releases.both import Both
from clinveil.releases.gates import patient_gates
from clinveil.releases.publish import NEW_ALONE
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stages import Job
from clinveil.report.record import Gate
from clinveil.utility.classification import classification

UTILITY_SEED = 20260101  # of the split and of what is trained; it says nothing of the release
NOT_TRIED = (
    "A reader of context with more text, or a larger model, than word pairs of other notes of this corpus; three words "
    "in a row and what adapts read a few points more (clinveil attack inversion, benchmarks/context.md). One "
    "measurement outside this repository read .77 of the words of N 3-14, memo patient, where one draw gives .48.",
    "An attacker without the vectors, who trains their own on other notes or on the release (clinveil attack inversion "
    "--reader own-vectors, release-vectors, decipher).",
    "Linkage with public texts about the patients, or by vectors trained on them (clinveil attack linkage).",
    "Inference of attributes that are no kept column (clinveil attack inference).",
    "Linkage by the order of the rows, where --order source keeps it.",
)
_AT_HAND = {
    "known": "no known-patient feed was given",
    "keep": "no column is kept",
    "earlier": "the ledger holds no other release, or its vault is gone",
}


def attacked(context: Context, rng: Generator) -> list[Finding]:
    """The findings of all attacks that can be tried, in the order of the report, with one generator in a row."""
    tried = [attack for attack in of_release() if context.has(attack.needs)]
    return [_in_its_words(attack, finding) for attack in tried for finding in attack()(context, rng)]


UNITS = frozenset({"notes", "patients", "words", "tokens", "pairs"})


def _in_its_words(attack: type[Attack], finding: Finding) -> Finding:
    """The finding; of an attack that is not ours its numbers alone, for what it writes might hold words of a note.

    Findings stand in the manifest and the report that leave. Raises ValueError for a measure that the attack has no
    words for: its name would be free text too.
    """
    if attack.__module__.startswith("clinveil.attacks."):
        return finding
    if finding.measure not in attack.words:
        raise ValueError("an attack of a release finds only measures that it has words for")
    unit = finding.unit if finding.unit in UNITS else ""
    detail = {} if finding.value is not None else {"why": "it was not measured"}
    told: dict[str, Any] = dict.fromkeys(("source", "method", "question", "p_is", "chance_is", "control_is"), "")
    return replace(finding, unit=unit, detail=detail, **told)


def not_tried(context: Context) -> tuple[str, ...]:
    """What no attack of this version tries, and the attacks of every release that lacked what they need here."""
    known = [field.name for field in fields(context)]
    lacking = []
    for attack in of_release():
        missing = [need for need in known if need in attack.needs and not context.has(frozenset({need}))]
        if missing:
            why = " and ".join(_AT_HAND.get(need, f"no {need.replace('_', ' ')}") for need in missing)
            lacking.append(f"{attack.help().rstrip('.')}: {why}.")
    return (*NOT_TRIED, *lacking)


def useful(context: Context, labels: tuple[str, ...], models: tuple[str, ...]) -> list[Finding]:
    """Utility on each label. The seed is public and the same for every key, so that two releases compare."""
    original, released = context.original, context.released
    if original is None or released is None:
        raise ValueError("utility compares the notes of both sides")
    found: list[Finding] = []
    for label in labels:
        rng, sides = np.random.default_rng(UTILITY_SEED), (original.batches(), released.batches())
        found += classification(*sides, label, rng, crosswalk=context.notes, models=models)
    return found


def of_both(job: Job, both: Both | None, alone: Context, seed: int) -> tuple[list[Finding], OnBoth]:
    """What is found in the release and what it was added to together, as far as that is at hand."""
    if both is None:
        return [], ALONE
    context = both.context(job, alone)
    found = attacked(context, np.random.default_rng([seed, 1]))
    if context.original is not None:
        found += [*single_names(context), *useful(context, job.settings.label, job.settings.model)]
    return found, both.said(context)


def gates_of_both(settings: ReleaseSettings, shared: Sequence[Finding]) -> list[Gate]:
    """What is held against both parts together, beside what is held against the new one."""
    made = [
        *patient_gates(shared, digits=settings.channel.numbers != "drop"),
        *reading_gates(shared, settings.max_names),
        *single_gates(shared, settings.max_names),
        *linkage_gates(shared, settings.max_linkage),
    ]
    return [replace(gate, name=f"{gate.name}, with what it adds to") for gate in made]


def together(job: Job, alone: Sequence[Finding], shared: Sequence[Finding], seed: int) -> list[Finding]:
    """Of each measure the findings on both parts, where it was taken on both; those of the new one go to the vault."""
    if shared:
        write_findings(job.folder.vault / NEW_ALONE, "release", list(alone), seed=seed)
    on_both = {finding.measure for finding in shared}
    return [*shared, *(finding for finding in alone if finding.measure not in on_both)]
