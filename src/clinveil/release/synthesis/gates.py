"""What must hold before synthetic notes may leave; each is measured on the notes as they were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.attack.audits.canary_run import as_corpus
from clinveil.attack.copies import copies
from clinveil.attack.full_names import NameIndex
from clinveil.attack.own_copies import ALPHA
from clinveil.finding import Detail, Finding
from clinveil.lm.notes import PlainNotes
from clinveil.release.synthesis.floor import Floor
from clinveil.release.synthesis.sides import Sides
from clinveil.report.record import Gate
from clinveil.tokens import words

SPANS = (10, 20, 50)
NO_POWER = "No power: no pair of known name parts occurs in the notes, real or made up, so nothing could be found."
BY_CHANCE = "A model can put a first and a last name together by chance. It must not know which belong together."
NOT_TRIED = (
    "membership inference, canaries and S-PDTP: clinveil attack membership, canaries and leaveout",
    "copies with a word changed here and there; facts about a patient told in other words",
)


@dataclass(frozen=True)
class Looked:
    """What was measured, and the gates made of it."""

    gates: list[Gate]
    findings: list[Finding]


def look(
    written: PlainNotes, expected: int, sides: Sides, floor: Floor, rng: Generator, *, span: int, feed: Path | None
) -> Looked:
    """Measure written notes against those of training.

    Args:
        expected: how many notes were drawn. span: words in a row that count as a copy. feed: known patients, or None.
    """
    spans = tuple(sorted({*SPANS, span}))
    # Below the floor on all sides: or each rare word, <unk> in the copy alone, would cut a copy to pieces.
    seen, other = (as_corpus(floor.plain(side)) for side in (sides.training, sides.held_out))
    found = copies(as_corpus(written), seen, other, rng, spans=spans)
    gates = [_accounted(written, expected), _floor(floor.below(written.texts))]
    gates += [_copied(found, span), _copied_whole(found)]
    if feed is not None:
        finding = known_names(written, feed, rng)
        found.append(finding)
        gates.append(_names(finding))
    return Looked(gates, found)


def _accounted(written: PlainNotes, expected: int) -> Gate:
    lost = abs(expected - len(set(written.note_ids)))
    return Gate(
        "every note accounted for",
        "Is each note that was drawn written once, under an id of its own?",
        passed=lost == 0,
        value=lost,
        threshold=0,
        unit="notes",
        meaning="Read back = drawn.",
        remedy="This is a fault of the program. Do not release; report it.",
    )


def _floor(below: int) -> Gate:
    return Gate(
        "rare-word floor held",
        "Is any written word one that too few training patients used?",
        passed=below == 0,
        value=below,
        threshold=0,
        unit="words",
        meaning="A word of fewer patients than --min-patients is never written, nor one that the model made up.",
        remedy="This is a fault of the program. Do not release; report it.",
    )


def _copied(found: Sequence[Finding], span: int) -> Gate:
    finding = next(f for f in found if f.measure == "attack.copies_own" and f.detail["span"] == span)
    return _copies_gate(
        finding,
        "no long copies",
        f"Does a run of the notes hold {span} words or more that are one training patient's own?",
        f"{span} words in a row",
    )


def _copied_whole(found: Sequence[Finding]) -> Gate:
    finding = next(f for f in found if f.measure == "attack.copies_whole")
    least = finding.detail["least_words"]
    return _copies_gate(
        finding,
        "no note copied whole",
        f"Does a whole note of a training patient, with {least} words of their own or more, stand in the notes?",
        f"{least} words in one note",
    )


def _copies_gate(finding: Finding, name: str, question: str, what: str) -> Gate:
    detail, may = finding.detail, int(finding.detail["allowed"] or 0)
    rule = "One training patient is one too many"
    if may:
        rule = f"Some held-out patients have that by chance: refused at P {ALPHA} (Fisher's exact test)"
    return Gate(
        name,
        question,
        passed=(finding.count or 0) <= may,
        value=finding.count,
        threshold=may,
        unit="patients",
        meaning=f"Own words stand in no held-out note and with two training patients at most. {rule}.",
        remedy="More --dropout, fewer --epochs or a smaller model, with --force or another OUT; with many copies by "
        "chance more --held-out.",
        power=_copies_power(detail, finding.n, what),
        blind=detail["refused_from"] is None,
    )


def _copies_power(detail: Detail, patients: int, what: str) -> str:
    seen = f"{int(detail['visible'] or 0) / patients:.0%} of the training patients have {what} of their own"
    if detail["refused_from"] is None:
        return f"No power: no number of patients copied whole would be refused; {seen}."
    least = detail["refused_from"]
    return (
        f"Refuses with 95 % from {least} patient{'s'[: least != 1]} copied whole on: {seen}. Changed words hide a copy."
    )


def known_names(written: PlainNotes, feed: Path, rng: Generator) -> Finding:
    """`attack.known_names`: full names of known patients in the notes, against made-up pairs of the same parts."""
    from clinveil.corpus.people import read_patients

    names = [person.name for person in read_patients(feed).values()]
    index = NameIndex(names, rng)
    hits = index.find([words(text) for text in written.texts])
    # Shuffled pairs are real ones now and then: of few names often, and then the worst leak would look like chance.
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
        control_is="made-up pairs of the same name parts, those left out that are somebody's, mean",
        control_kind="negative",
    )


def _names(finding: Finding) -> Gate:
    most = int(finding.detail["most_of_made_up"] or 0)
    unseen = finding.detail.get("warning")
    return Gate(
        "known names no more often than made-up ones",
        "Do full names of known patients stand in the notes more often than made-up pairs of the same parts?",
        passed=(finding.value or 0) <= most,
        value=finding.value,
        threshold=most,
        unit="names",
        meaning=BY_CHANCE,
        remedy="Replace PHI in the training notes first: clinveil deidentify.",
        power=str(unseen) if unseen else f"Refuses from {most + 1} places with a known full name on.",
        blind=unseen is not None,
    )
