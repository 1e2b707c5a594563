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
from clinveil.finding import Finding
from clinveil.lm.notes import PlainNotes
from clinveil.release.synthesis.floor import Floor
from clinveil.release.synthesis.sides import Sides
from clinveil.report.record import Gate
from clinveil.tokens import words

SPANS = (10, 20, 50)
SLACK = 0.001  # share of the words
RARE = 0.01  # P of a difference that is not chance
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
    gates += [_copied(found, span), _copied_patients(found, span)]
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
    finding = next(f for f in found if f.measure == "attack.copies" and f.detail["span"] == span)
    matched = float(finding.detail["matched"] or 0.0)
    held_out = float(finding.detail["held_out"] or 0.0)
    # The control is scaled up to as many words as the training notes have: more notes share more stock phrases.
    scale = max(
        1.0, float(finding.detail["training_words"] or 1) / max(1.0, float(finding.detail["held_out_words"] or 1))
    )
    allowed = min(1.0, held_out * scale) + SLACK
    return Gate(
        "no long copies",
        f"Do more words stand in runs of {span} or more of a training note than chance and stock phrases explain?",
        passed=(finding.value or 0.0) <= allowed,
        value=finding.value,
        threshold=round(allowed, 6),
        unit="share of words",
        meaning=f"Against as many words of training notes as were held out: {matched:.4f}; held out: {held_out:.4f}.",
        remedy="More --dropout or fewer --epochs, with --force or another OUT; near-duplicate notes also do this.",
    )


def _copied_patients(found: Sequence[Finding], span: int) -> Gate:
    """Beside `_copied`, whose control grows with the stock phrases: this one knows no sizes of the sets."""
    finding = next(f for f in found if f.measure == "attack.copies_of_patients" and f.detail["span"] == span)
    more, p = finding.value or 0.0, float(finding.detail["p"] or 0.0)
    return Gate(
        "no patient copied for being trained on",
        f"Do more words of training patients than of others stand in the notes in runs of {span} or more?",
        passed=more <= SLACK or p >= RARE,
        value=round(more, 6),
        threshold=SLACK,
        unit="share of words, difference",
        meaning=f"Fails above the threshold where chance is no explanation (P {p:.4f}, against {RARE}).",
        remedy="More --dropout, fewer --epochs, a smaller model.",
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
    detail: dict[str, str | int] = {"unit": "known full names", "most_of_made_up": int(made.max()) if made.size else 0}
    detail |= {"control_is": "made-up pairs of the same name parts, those left out that are somebody's, mean"}
    if not hits.row.size:
        detail["warning"] = NO_POWER
    return Finding(
        "attack.known_names", real, int(index.tested.sum()), "lower", control=float(made.mean()), detail=detail
    )


def _names(finding: Finding) -> Gate:
    most = int(finding.detail["most_of_made_up"] or 0)
    return Gate(
        "known names no more often than made-up ones",
        "Do full names of known patients stand in the notes more often than made-up pairs of the same parts?",
        passed=(finding.value or 0) <= most,
        value=finding.value,
        threshold=most,
        unit="names",
        meaning=str(finding.detail.get("warning") or BY_CHANCE),
        remedy="Replace PHI in the training notes first: clinveil deidentify.",
    )
