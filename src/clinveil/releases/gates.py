"""The gates: what must hold before anything may leave. A failed gate means that no `release/` is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clinveil.channel.channel import Channel
from clinveil.channel.tally import Tally
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.corpus.corpus import Accounting
from clinveil.corpus.open import ENTERED_IN_ERROR
from clinveil.releases.check import OutputCheck
from clinveil.report.numerals import SMALL
from clinveil.report.record import Gate
from clinveil.stats.refusals import ALPHA, has_power, leaks_refused_from

SKIPPED_SHARE = 0.01
FAULT = "This is a fault of the program. Do not release; report it."
# Rows left out because the source says so, not because something went wrong.
PLANNED = frozenset({ENTERED_IN_ERROR})
NUMBERS = frozenset({"attack.own_record_number", "attack.own_phone"})
DROPPED = "Holds by construction: no digit is written (--numbers drop), so there is nothing that this could find."
DRAWN = "Only random draws can put it there, word for word in a row, for PHI is replaced before."


def sound(name: str, question: str, faults: int, unit: str, meaning: str, **more: Any) -> Gate:
    """A gate of what the program itself promises: not one fault is allowed."""
    told: dict[str, Any] = {"passed": faults == 0, "threshold": 0, "remedy": FAULT}
    return Gate(name, question, value=faults, unit=unit, meaning=meaning, **{**told, **more})


def output_gates(check: OutputCheck, tally: Tally, channel: Channel) -> list[Gate]:
    """What reading the release back must show."""
    itself = channel.maps_to_itself
    return [
        sound(
            "no word stands for itself",
            "Does any released word stand where the same word stood in the source?",
            check.self_replaced,
            "words",
            "The mechanism promises never to draw the word itself; words kept on request are counted apart.",
            passed=itself or (check.self_replaced == 0 and tally.self_replaced == 0),
            threshold="not promised by this mechanism" if itself else 0,
        ),
        sound(
            "no unknown word passed",
            "Is every released word one that the channel can write, and every other character one of the layout's?",
            check.out_of_vocabulary + check.stray,
            "words and characters",
            "A word without a vector is replaced by a draw from common words, or dropped; it never passes.",
        ),
        sound(
            "rare-word floor held",
            "Is any released word one that too few patients used?",
            check.below_floor,
            "words",
            "A word seen in fewer patients than --min-patients is never written, whoever's note it came from.",
        ),
    ]


def accounting_gates(rows: Accounting, check: OutputCheck, tally: Tally) -> list[Gate]:
    """Every note must be accounted for, and few may be missing."""
    lost = abs(rows.read - rows.written - sum(rows.skipped.values()))
    strangers = check.unmatched + abs(check.notes - rows.written)
    failed = sum(n for reason, n in rows.skipped.items() if reason not in PLANNED)
    share = failed / rows.read if rows.read else 0.0
    faults = lost + strangers + check.unaligned
    return [
        sound(
            "every note accounted for",
            "Is each note read either written once under its own new id, or skipped for a stated reason?",
            faults,
            "notes",
            "Read = written + skipped, and each released id leads to one source note in the crosswalk.",
            passed=faults == 0 and tally.balanced,
        ),
        Gate(
            "few notes failed",
            "What share of the notes had no text or could not be processed?",
            passed=share <= SKIPPED_SHARE,
            value=share,
            threshold=SKIPPED_SHARE,
            unit="share of notes",
            meaning="A note that cannot be processed is left out, never passed through.",
            remedy="Look at the reasons in the internal report, mend the source, and run again.",
        ),
    ]


def patient_gates(findings: Sequence[Finding], *, digits: bool = True) -> list[Gate]:
    """What the known-patient feed must not find in the patients' own notes; empty without a feed.

    What could not be looked for, because the feed knows none of it, has no gate: the report warns instead.

    Args:
        digits: whether the release can hold any; without, the gates of numbers hold by construction and say so.
    """
    own = [f for f in findings if _is_own(f)]
    return [
        *(_feed(f) for f in own if f.measure == "attack.own_name"),
        *(_own_name(f) if f.measure == "attack.own_name" else _own(f, digits) for f in own if f.value is not None),
    ]


def _feed(finding: Finding) -> Gate:
    known, met = int(finding.detail.get("in_feed") or 0), int(finding.detail.get("in_release") or 0)
    return Gate(
        "the known-patient feed is that of these notes",
        "Does the feed know any patient of these notes?",
        passed=known == 0 or met > 0,
        value=met,
        threshold="at least 1",
        unit="patients",
        meaning="Where the feed is of other patients, finding nothing in the release says nothing.",
        remedy="Bring the feed of these patients, under the patient ids that the notes use, or leave --patients out.",
    )


def _is_own(finding: Finding) -> bool:
    return finding.measure.startswith("attack.own_")


def _own(finding: Finding, digits: bool) -> Gate:
    kind = finding.measure.removeprefix("attack.own_").replace("_", " ")
    count = finding.count or 0
    certain = finding.measure in NUMBERS and not digits
    how = "" if finding.measure in NUMBERS else f" {DRAWN}"
    looked = f"{_many(finding.n)} of the known-patient feed were looked for in the released notes of their own patient."
    return Gate(
        f"no own {kind}",
        f"Does a patient's own {kind} stand in their own released notes?",
        passed=count == 0,
        value=count,
        threshold=0,
        unit=f"own {kind}s",
        meaning=DROPPED if certain else looked + how,
        remedy="Find the stage that let it pass, mend the feed or the detectors, and release again.",
        power="" if certain else "Refuses from 1 on, among those that were looked for.",
        by_construction=certain,
    )


def _many(people: int) -> str:
    """The number, for a sentence that the external report prints too; small ones stand in the findings alone."""
    return f"{people:,}" if people >= SMALL else f"Fewer than {SMALL}"


def _own_name(finding: Finding) -> Gate:
    """A test where one leak could be refused; among fewer patients any own name that chance does not explain."""
    if has_power(finding.n):
        return _tested_name(finding)
    count = int(finding.detail.get("alone") or 0)
    return _name_gate(
        passed=count == 0,
        value=count,
        threshold=0,
        unit="own names",
        meaning=f"Among {_many(finding.n).lower()} patients no test can tell one leaked name from chance, so any is "
        "refused, unless it also stands in the notes of two other patients: then its words are drawn for anybody.",
        power="Refuses from 1 leaked name on, if fewer than two other patients' notes hold it.",
    )


def _tested_name(finding: Finding) -> Gate:
    found = float(finding.detail.get("expected") or 0.0) * finding.n
    # Own names that are there may be leaks: what chance brings is read off the others'.
    least = leaks_refused_from(finding.n, max(0.0, found - (finding.count or 0)) / (finding.n - 1))
    return _name_gate(
        passed=finding.p is None or finding.p >= ALPHA,
        value=finding.p,
        threshold=ALPHA,
        unit="P value, owners permuted",
        meaning="A name can be drawn by chance for anybody. It must not be drawn for its owner more often than that.",
        power=f"Refuses with 95 % from {least} leaked name{'s'[: least != 1]} of {finding.n:,} on.",
    )


def _name_gate(**told: Any) -> Gate:
    return Gate(
        "own name no more often than others'",
        "Does a patient's own full name stand in their own released notes more often than other patients' names do?",
        remedy="Check that PHI replacement ran before the channel and that the feed is that of these notes. A name of "
        "ordinary words that was drawn by chance is gone with the next run's draws: release again, under a new key.",
        **told,
    )


def seed_gate(key: Key) -> Gate:
    """A key from a public seed can be replayed by anyone."""
    return Gate(
        "no test seed",
        "Was the key drawn in secret?",
        passed=key.test_seed is None,
        value="secret key" if key.test_seed is None else "public seed",
        threshold="secret key",
        meaning="With a public seed anybody can replay the draws and undo the release.",
        remedy="Run again without --seed.",
    )
