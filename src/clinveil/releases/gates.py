"""The gates: what must hold before anything may leave. A failed gate means that no `release/` is made."""

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
# A release with fewer different words, or an effective number below this, carries almost nothing of any note.
FEWEST_WORDS, FEWEST_EFFECTIVE = 20, 8
LABEL_TASKS = frozenset({"utility.transfer", "utility.within"})
FAULT = "This is a fault of the program. Do not release; report it."
# Rows left out because the source says so, or they left before, not because something went wrong.
PLANNED = frozenset({ENTERED_IN_ERROR, LEFT_BEFORE})
NUMBERS = frozenset({"attack.own_record_number", "attack.own_phone"})
DROPPED = "Holds by construction: no digit is written (--numbers drop), so there is nothing that this could find."
DRAWN = "Draws can put it there too; where words keep an order nobody can say how often, so any is refused."
MET = "Words drawn at random and put in a random order can meet: no more may be found than that brings."


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def gate(of: str, *, passed: bool, fill: Mapping[str, Any] = MappingProxyType({}), **told: Any) -> Gate:
    """A gate with its words of `gates.toml`, in which `fill` stands for the names in braces."""
    words = {name: text.format(**fill) for name, text in _texts()[of].items()}
    return Gate(**{"passed": passed, **words, **told})


def sound(of: str, faults: int, **more: Any) -> Gate:
    """A gate of what the program itself promises: not one fault is allowed."""
    return gate(of, **{"passed": faults == 0, "value": faults, "threshold": 0, "hint": FAULT, **more})


def output_gates(check: OutputCheck, tally: Tally, channel: Channel) -> list[Gate]:
    """What reading the release back must show."""
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
    """Whether each released note has the text that it had after its identifiers were treated."""
    return [sound("copied_text", check.unaligned)]


def variety_gates(check: OutputCheck, findings: Sequence[Finding]) -> list[Gate]:
    """Whether anything can come out: enough different words, and utility above chance where it was measured.

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
    """How far the upper end of a released score's interval is above the score of permuted labels."""
    high, ceiling, chance = (float(detail[name] or 0.0) for name in ("of_ceiling_high", "ceiling", "chance_score"))
    return high * ceiling - chance


def effective_number(counts: Mapping[str, int]) -> float:
    """exp(entropy) of a frequency table: the size of a uniform vocabulary with the same entropy; 0 if empty."""
    total = sum(counts.values())
    return exp(-sum(n / total * log(n / total) for n in counts.values() if n)) if total else 0.0


def accounting_gates(rows: Accounting, check: OutputCheck, *, balanced: bool = True) -> list[Gate]:
    """Every note must be accounted for, and few may be missing; `balanced`: so is every token."""
    lost = abs(rows.read - rows.written - sum(rows.skipped.values()))
    strangers = check.unmatched + abs(check.notes - rows.written)
    failed = sum(n for reason, n in rows.skipped.items() if reason not in PLANNED)
    share = failed / rows.read if rows.read else 0.0
    faults = lost + strangers + check.unaligned
    return [
        sound("accounted", faults, passed=faults == 0 and balanced),
        gate("failed", passed=share <= SKIPPED_SHARE, value=share, threshold=SKIPPED_SHARE),
    ]


def patient_gates(findings: Sequence[Finding], *, digits: bool = True, shuffled: bool = False) -> list[Gate]:
    """What the known-patient feed must not find in the patients' own notes; empty without a feed.

    What could not be looked for, because the feed knows none of it, has no gate: the report warns instead.

    Args:
        digits: whether the release can hold any; without, the gates of numbers hold by construction and say so.
        shuffled: whether the words of every note stand in a random order, so that it is known how often two meet.
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
    """Not one may stand there."""
    count = finding.count or 0
    return gate(
        "own",
        passed=count == 0,
        value=count,
        threshold=0,
        unit=finding.unit,
        fill={"kind": _kind(finding)},
        meaning=DROPPED if certain else f"{_looked(finding)} {why}".rstrip(),
        power="" if certain else "Refuses from 1 on, among those that were looked for.",
        by_construction=certain,
    )


def _met(finding: Finding) -> Gate:
    """A test against the words of each note in random orders: no more may be found than that explains."""
    expected, alone = (float(finding.detail.get(name) or 0.0) for name in ("expected", "one_refused_below"))
    many = found_refused_from(expected)
    return gate(
        "own_met",
        passed=finding.p is not None and finding.p >= ALPHA,
        value=finding.count,
        threshold=f"what chance explains, P {ALPHA} or more",
        unit=finding.unit,
        fill={"kind": _kind(finding)},
        meaning=f"{_looked(finding)} {MET}",
        power=f"Refuses a single one whose words would meet in fewer than one of {ceil(1 / alone):,} orders of its "
        f"patient's notes, and {many} patients' or more if each would in fewer than one of {1 / SELDOM:,.0f}.",
    )


def _kind(finding: Finding) -> str:
    return finding.measure.removeprefix("attack.own_").replace("_", " ")


def _looked(finding: Finding) -> str:
    what = f"{_many(finding.n)} {finding.unit} of the known-patient feed"
    return f"{what} were looked for in the released notes of their own patient."


def _many(people: int) -> str:
    """The number, for a sentence that the external report prints too; small ones stand in the findings alone."""
    return f"{people:,}" if people >= SMALL else f"Fewer than {SMALL}"


def _own_name(finding: Finding) -> Gate:
    """A test where one leak could be refused; among fewer patients any own name that chance does not explain."""
    if has_power(finding.n):
        return _tested_name(finding)
    count = int(finding.detail.get("alone") or 0)
    return gate(
        "own_name",
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
    return gate(
        "own_name",
        passed=finding.p is None or finding.p >= ALPHA,
        value=finding.p,
        threshold=ALPHA,
        unit="P value, owners permuted",
        meaning="A name can be drawn by chance for anybody. It must not be drawn for its owner more often than that.",
        power=f"Refuses with 95 % from {least} leaked name{'s'[: least != 1]} of {finding.n:,} on.",
    )


def seed_gate(public: Sequence[str]) -> Gate:
    """What comes from a public seed can be repeated by anyone; `public`: what does, in words."""
    secret = not public
    return gate("seed", passed=secret, value="secret key" if secret else "public seed", threshold="secret key")
