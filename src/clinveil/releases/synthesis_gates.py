"""Gates of synthetic notes, measured on the notes as written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.text._full_names import NameIndex
from clinveil.attacks.text.copies import copies
from clinveil.core.finding import Detail, Finding
from clinveil.core.tokens import words
from clinveil.lm.notes import PlainNotes
from clinveil.releases.gates import gate, sound
from clinveil.releases.synthesis_model import Floor, TrainHoldoutSplit
from clinveil.report.record import Gate
from clinveil.stats.refusals import ALPHA, fisher_from

SPANS = (10, 20, 50)
NO_POWER = "No power: no pair of known name parts, real or invented, occurs in the notes."
UNSEEN = "Neither this gate nor the gate on long copies could detect a copy on these notes."
SEE = "Hold out more patients (--set synthetic.held_out), or add patients or longer notes."


@dataclass(frozen=True)
class Examined:
    """Findings on the written notes, and the gates derived from them."""

    gates: list[Gate]
    findings: list[Finding]


def examine(
    written: PlainNotes,
    expected: int,
    sides: TrainHoldoutSplit,
    floor: Floor,
    rng: Generator,
    *,
    span: int,
    feed: Path | None,
) -> Examined:
    """Compare written notes with the training notes.

    Args:
        expected: number of generated notes. span: consecutive words that count as a copy. feed: known patients.
    """
    spans = tuple(sorted({*SPANS, span}))
    # Apply the floor to all sides: a rare word that is <unk> in the copy only would split the copy.
    seen, other = (floor.plain(side).as_corpus() for side in (sides.training, sides.held_out))
    found = copies(written.as_corpus(), seen, other, rng, spans=spans)
    gates = [_accounted(written, expected), sound("synthetic_floor", floor.below(written.texts))]
    gates += _seeing([_copied(found, span), _copied_whole(found)])
    if feed is not None:
        finding = known_names(written, feed, rng)
        found.append(finding)
        gates.append(_names(finding))
    return Examined(gates, found)


def _accounted(written: PlainNotes, expected: int) -> Gate:
    return sound("synthetic_accounted", abs(expected - len(set(written.note_ids))))


@dataclass(frozen=True)
class _Rule:
    """Training patients copied (`count`), the number allowed (`may`), and the smallest number refused (`least`)."""

    what: str
    count: int
    may: int
    least: int | None


def _copied(found: Sequence[Finding], span: int) -> Gate:
    runs = {int(f.detail["span"] or 0): f for f in found if f.measure == "attack.copies_own"}
    shorter = [less for less in sorted(runs) if less < span]
    return _copies_gate(
        "copies",
        {"span": span},
        runs[span],
        f"{span} words in a row",
        [_run_test(runs[less], ALPHA / len(shorter)) for less in shorter],
    )


def _run_test(finding: Finding, level: float) -> _Rule:
    detail = finding.detail
    hits = (finding.count or 0, _whole(detail, "held_out_copied"), _whole(detail, "visible"))
    return _test(f"{detail['span']} words in a row", hits, finding, level)


def _copied_whole(found: Sequence[Finding]) -> Gate:
    finding = next(f for f in found if f.measure == "attack.copies_whole")
    detail, least = finding.detail, finding.detail["least_words"]
    hits = _whole(detail, "same_copied"), _whole(detail, "same_held_out_copied"), _whole(detail, "same_visible")
    return _copies_gate(
        "copied_whole",
        {"least": least, "least_same": detail["least_same"]},
        finding,
        f"{least} words in one note",
        [_test(f"a note of {detail['least_same']} words and numbers", hits, finding, ALPHA)],
    )


def _test(what: str, hits: tuple[int, int, int], finding: Finding, level: float) -> _Rule:
    """Run Fisher's exact test on (training patients copied, held-out patients copied, training patients visible)."""
    copied, by_chance, visible = hits
    least = fisher_from(visible, finding.n, _whole(finding.detail, "held_out_patients"), by_chance, level)
    return _Rule(what, copied, visible if least is None else least - 1, least)


def _whole(detail: Detail, name: str) -> int:
    return int(detail[name] or 0)


def _copies_gate(of: str, fill: Mapping[str, Any], finding: Finding, what: str, tests: list[_Rule]) -> Gate:
    detail, may = finding.detail, _whole(finding.detail, "allowed")
    first = _Rule(what, finding.count or 0, may, None if detail["refused_from"] is None else may + 1)
    rules = [first, *tests]
    shown = next((rule for rule in rules if rule.count > rule.may), first)
    rule = "No training patient may be copied"
    if may:
        rule = (
            f"Some held-out patients match by chance: refused at P < {ALPHA} (Fisher's exact test), and above their "
            "share or a tenth of the patients"
        )
    found = "" if shown is first else f" Refused for {shown.what}."
    return gate(
        of,
        passed=shown.count <= shown.may,
        value=shown.count,
        threshold=shown.may,
        fill=fill,
        meaning=f"Own words occur in no held-out note and with at most two training patients. {rule}.{found}",
        power=_copies_power(detail, finding.n, what, tests),
        blind=all(rule.least is None for rule in rules),
    )


def _copies_power(detail: Detail, patients: int, what: str, tests: list[_Rule]) -> str:
    seen = f"{_whole(detail, 'visible') / patients:.0%} of the training patients have {what} of their own"
    tested = "; ".join(f"from {test.least} patients on with {test.what}" for test in tests if test.least is not None)
    tested = f" Tested against held-out patients at {ALPHA} in all: refuses {tested}." if tested else ""
    if detail["refused_from"] is None:
        return (
            f"No power: no number of copied patients would be refused; {seen}."
            if not tested
            else f"Without the test none would be refused: {seen}.{tested}"
        )
    least = detail["refused_from"]
    return (
        f"Refuses with 95 % from {least} copied patient{'s'[: least != 1]} on: {seen}.{tested} "
        "A copy with changed words is not detected."
    )


def _seeing(gates: list[Gate]) -> list[Gate]:
    """Return the copy gates; if neither could detect a copy, the last one fails."""
    if not all(gate.passed and gate.blind for gate in gates):
        return gates
    unseen = replace(gates[-1], passed=False, meaning=UNSEEN, hint=SEE)
    return [*gates[:-1], unseen]


def known_names(written: PlainNotes, feed: Path, rng: Generator) -> Finding:
    """Return `attack.known_names`: full names of known patients, compared with invented pairs of the same parts."""
    from clinveil.corpus.people import read_patients

    names = [person.name for person in read_patients(feed).values()]
    index = NameIndex(names, rng)
    hits = index.find([words(text) for text in written.texts])
    # Shuffled pairs can be real names, often so with few names; counting these would hide the worst leak.
    known = np.isin(hits.code, np.concatenate([index.real.whole, index.real.ends]))
    by_set = np.bincount(hits.replicate[(hits.replicate == 0) | ~known], minlength=index.replicates + 1)
    real, made = int(by_set[0]), by_set[1:]
    detail: dict[str, str | int] = {"most_of_made_up": int(made.max()) if made.size else 0}
    if not hits.row.size:
        detail["warning"] = NO_POWER
    return Finding(
        "attack.known_names",
        real,
        int(index.tested.sum()),
        "lower",
        control=float(made.mean()),
        detail=detail,
        unit="known full names",
        control_is="invented pairs of the same name parts, without pairs that are real names, mean",
        control_kind="negative",
    )


def _names(finding: Finding) -> Gate:
    most = int(finding.detail["most_of_made_up"] or 0)
    unseen = finding.detail.get("warning")
    return gate(
        "known_names",
        passed=(finding.value or 0) <= most,
        value=finding.value,
        threshold=most,
        power=str(unseen) if unseen else f"Refuses from {most + 1} occurrences of a known full name on.",
        blind=unseen is not None,
    )
