"""Gates: conditions that must hold before a release may leave. After a failed gate no `release/` is created."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil, exp, log
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clinveil.channel.channel import Channel
from clinveil.channel.tally import Tally
from clinveil.core.finding import Detail, Finding
from clinveil.corpus.corpus import Accounting
from clinveil.corpus.open import ENTERED_IN_ERROR
from clinveil.releases.check import OutputCheck
from clinveil.releases.new_notes import LEFT_BEFORE
from clinveil.report.numerals import SMALL
from clinveil.report.record import Gate
from clinveil.stats.random_order import SELDOM, found_refused_from
from clinveil.stats.refusals import ALPHA, has_power, leaks_refused_from

SKIPPED_SHARE = 0.01
# Below this number of different words, or effective number of words, a release retains almost nothing.
FEWEST_WORDS, FEWEST_EFFECTIVE = 20, 8
LABEL_TASKS = frozenset({"utility.transfer", "utility.within"})
FAULT = "This is a program error. Do not release; report it."
# Rows left out by request (marked as entered in error, or released before), not because of a failure.
PLANNED = frozenset({ENTERED_IN_ERROR, LEFT_BEFORE})
NUMBERS = frozenset({"attack.own_record_number", "attack.own_phone"})
DROPPED = "Holds by construction: no digit is written (--set numbers=drop)."
DRAWN = "Random draws can produce it too. Where words keep their order, that chance is unknown, so any hit is refused."
MET = "Random words in random order can coincide. Only hits beyond that chance are refused."


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def gate(of: str, *, passed: bool, fill: Mapping[str, Any] = MappingProxyType({}), **fields: Any) -> Gate:
    """Return a gate with its text from `gates.toml`; `fill` replaces the names in braces."""
    words = {name: text.format(**fill) for name, text in _texts()[of].items()}
    return Gate(**{"passed": passed, **words, **fields})


def sound(of: str, faults: int, **more: Any) -> Gate:
    """Return a gate on a guarantee of the program: no fault is allowed."""
    return gate(of, **{"passed": faults == 0, "value": faults, "threshold": 0, "hint": FAULT, **more})


def output_gates(check: OutputCheck, tally: Tally, channel: Channel) -> list[Gate]:
    """Return the gates on the released words, read back from the release."""
    itself = check.self_replaced == 0 and tally.self_replaced == 0
    drawn: dict[str, Any] = {"passed": True, "threshold": "not promised by this mechanism", "blind": True}
    return [
        sound("itself_drawn", check.self_replaced, **drawn)
        if channel.maps_to_itself
        else sound("itself", check.self_replaced, passed=itself),
        sound("unknown", check.out_of_vocabulary + check.stray),
        sound("floor", check.below_floor),
    ]


def copy_gates(check: OutputCheck) -> list[Gate]:
    """Return the gate that each released note has exactly its text after identifier treatment."""
    return [sound("copied_text", check.unaligned)]


def variety_gates(check: OutputCheck, findings: Sequence[Finding]) -> list[Gate]:
    """Return the gates on variety: enough different words, and utility above chance where it was measured.

    The effective number of words is exp(entropy) of the released words' frequencies.
    """
    distinct, effective = len(check.outputs), round(effective_number(check.outputs), 1)
    few = distinct < FEWEST_WORDS
    value, threshold = (distinct, FEWEST_WORDS) if few else (effective, FEWEST_EFFECTIVE)
    unit = "different words" if few else "effective number of words"
    power = (
        f"Exact: refuses fewer than {FEWEST_WORDS} different words, or an effective number below {FEWEST_EFFECTIVE}."
    )
    gates = [gate("variety", passed=value >= threshold, value=value, threshold=threshold, unit=unit, power=power)]
    tested = [f.detail for f in findings if f.measure in LABEL_TASKS and "of_ceiling_high" in f.detail]
    if tested:
        best = max(tested, key=_above_chance)
        chance = round(float(best["chance_score"] or 0.0), 3)
        passed = _above_chance(best) > 0
        gates.append(gate("at_chance", passed=passed, value=best["score"], threshold=f"above {chance} (chance)"))
    return gates


def _above_chance(detail: Detail) -> float:
    """Return the upper end of a released score's interval minus the score with permuted labels."""
    high, ceiling, chance = (float(detail[name] or 0.0) for name in ("of_ceiling_high", "ceiling", "chance_score"))
    return high * ceiling - chance


def effective_number(counts: Mapping[str, int]) -> float:
    """Return exp(entropy) of a frequency table: the size of a uniform vocabulary with equal entropy; 0 if empty."""
    total = sum(counts.values())
    return exp(-sum(n / total * log(n / total) for n in counts.values() if n)) if total else 0.0


def accounting_gates(rows: Accounting, check: OutputCheck, *, balanced: bool = True) -> list[Gate]:
    """Return the gates that every note is accounted for and few failed; `balanced`: so is every token."""
    lost = abs(rows.read - rows.written - sum(rows.skipped.values()))
    foreign = check.unmatched + abs(check.notes - rows.written)
    failed = sum(n for reason, n in rows.skipped.items() if reason not in PLANNED)
    share = failed / rows.read if rows.read else 0.0
    faults = lost + foreign + check.unaligned
    return [
        sound("accounted", faults, passed=faults == 0 and balanced),
        gate("failed", passed=share <= SKIPPED_SHARE, value=share, threshold=SKIPPED_SHARE),
    ]


def patient_gates(findings: Sequence[Finding], *, digits: bool = True, shuffled: bool = False) -> list[Gate]:
    """Return the gates on patients' own identifiers in their released notes; empty without a known-patient list.

    Identifiers that the list does not contain have no gate; the report warns about them.

    Args:
        digits: whether the release can contain digits; otherwise gates on numbers hold by construction.
        shuffled: whether the words of every note are in random order, so that the chance of coincidence is known.
    """
    own = [f for f in findings if f.measure.startswith("attack.own_")]
    return [
        *(_feed(f) for f in own if f.measure == "attack.own_name"),
        *(_own(f, digits, shuffled) for f in own if f.value is not None),
    ]


def _feed(finding: Finding) -> Gate:
    known, met = int(finding.detail.get("in_feed") or 0), int(finding.detail.get("in_release") or 0)
    return gate("feed", passed=known == 0 or met > 0, value=met, threshold="at least 1")


def _own(finding: Finding, digits: bool, shuffled: bool) -> Gate:
    if finding.measure == "attack.own_name":
        return _own_name(finding)
    if finding.measure in NUMBERS:
        return _none(finding, certain=not digits)
    return _met(finding) if shuffled else _none(finding, DRAWN)


def _none(finding: Finding, why: str = "", *, certain: bool = False) -> Gate:
    """Return the gate that no such identifier occurs."""
    count = finding.count or 0
    return gate(
        "own",
        passed=count == 0,
        value=count,
        threshold=0,
        unit=finding.unit,
        fill={"kind": _kind(finding)},
        meaning=DROPPED if certain else f"{_searched(finding)} {why}".rstrip(),
        power="" if certain else "Refuses any hit among the identifiers searched for.",
        by_construction=certain,
    )


def _met(finding: Finding) -> Gate:
    """Return the gate of a permutation test: no more hits than random word orders of each note explain."""
    expected, alone = (float(finding.detail.get(name) or 0.0) for name in ("expected", "one_refused_below"))
    many = found_refused_from(expected)
    return gate(
        "own_met",
        passed=finding.p is not None and finding.p >= ALPHA,
        value=finding.count,
        threshold=f"P ≥ {ALPHA}",
        unit=finding.unit,
        fill={"kind": _kind(finding)},
        meaning=f"{_searched(finding)} {MET}",
        power=f"Refuses a single hit whose words coincide in fewer than one of {ceil(1 / alone):,} orders of its "
        f"patient's notes, and {many} or more patients if each coincides in fewer than one of {1 / SELDOM:,.0f}.",
    )


def _kind(finding: Finding) -> str:
    return finding.measure.removeprefix("attack.own_").replace("_", " ")


def _searched(finding: Finding) -> str:
    return f"{_many(finding.n)} {finding.unit} of the known-patient list were searched for in their patients' notes."


def _many(people: int) -> str:
    """Return a number for a sentence of the external report; small numbers are in the findings only."""
    return f"{people:,}" if people >= SMALL else f"Fewer than {SMALL}"


def _own_name(finding: Finding) -> Gate:
    """Return the gate on own names: a test if it could refuse one leak; with fewer patients, any leak fails."""
    if has_power(finding.n):
        return _tested_name(finding)
    count = int(finding.detail.get("alone") or 0)
    return gate(
        "own_name",
        passed=count == 0,
        value=count,
        threshold=0,
        unit="own names",
        meaning=f"With {_many(finding.n).lower()} patients, no test can tell one leak from chance. Any name is refused "
        "unless it also occurs in the notes of two other patients: then its words are drawn for anyone.",
        power="Refuses from 1 leaked name on, if the notes of fewer than two other patients contain it.",
    )


def _tested_name(finding: Finding) -> Gate:
    found = float(finding.detail.get("expected") or 0.0) * finding.n
    # Own names found may be leaks, so chance is estimated from the names of others.
    least = leaks_refused_from(finding.n, max(0.0, found - (finding.count or 0)) / (finding.n - 1))
    return gate(
        "own_name",
        passed=finding.p is None or finding.p >= ALPHA,
        value=finding.p,
        threshold=ALPHA,
        unit="P value (owners permuted)",
        meaning="Any name can be drawn by chance. P: probability of as many own names with owners permuted.",
        power=f"Refuses with 95 % from {least} leaked name{'s'[: least != 1]} of {finding.n:,} on.",
    )


def seed_gate(public: Sequence[str]) -> Gate:
    """Return the gate that nothing was derived from a public seed; `public` names what was."""
    secret = not public
    return gate("seed", passed=secret, value="secret key" if secret else "public seed", threshold="secret key")
