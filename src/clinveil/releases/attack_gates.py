"""Gates on what adversaries recover and link, and on which files leave.

Gates judge recipients (with shadow vectors, with 20 known pairs). 200 known pairs are reported;
stolen vectors too, unless a limit is set for them.

A gate on an estimate refuses a release if the estimate is above the limit and there are enough
cases that a release at half the limit is refused in at most 5 % of runs. With fewer cases it
refuses only if the whole interval is above the limit; otherwise it has no power. So a small
hospital is not refused for lack of data, and a clear breach always is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import cast

from clinveil.attacks import KNOWN, Target, above_chance, holding_of, target_of
from clinveil.core import Finding, KnownList
from clinveil.corpus import Columns
from clinveil.releases.gates import FAULT, gate
from clinveil.report import ONE_SIDED, SMALL, SPACE, Gate, effective, enough, share, too_small
from clinveil.stats import ALPHA, has_power, leaks_refused_from

LINKAGE_WARNED = 0.05  # points above chance
# Above chance; measured: benchmarks/adversaries.md.
MOST_BY_NOTES = 0.75  # linked by the patient's other notes
# linked by ten words, with shadow vectors trained on hundreds of other notes of the source
MOST_BY_SHADOW = 0.30
SINGLE = "attack.channel_single"
LINKAGE = "attack.linkage"
KEPT_UNIQUE = "attack.kept_columns_unique"
KEPT_OWN = "attack.kept_own_identifiers"
NAMES: tuple[Target, ...] = ("names", "planted names")
TEN_WORDS: Target = "note by ten words"
OTHER_NOTES: Target = "note by the patient's other notes"
PUBLIC: Target = "note by public knowledge"
WHOLE: Target = "note by its whole text"
RECIPIENTS = ("recipient", "shadow")
NUMBERS = frozenset({"attack.own_record_number", "attack.own_phone"})
DROPPED = "Holds by construction: no digit is written (--set channel.numbers=drop)."
DRAWN = "Random draws can produce it too; any hit is refused."
# First bytes of files of arrays, tables and models; notes never begin with them.
MAGIC = (b"\x93NUMPY", b"ARROW1", b"\x80\x04\x95", b"\x80\x05\x95", b"PK\x03\x04", b"\x89HDF")

# Of a release of part files.
PART = re.compile(r"part-[0-9a-f]+\.(?!npy$|npz$|arrow$|bin$|vec$)[a-z0-9.]+")


def adversary_gates(
    findings: Sequence[Finding], names: float, linkage: float, stolen: float | None = None
) -> list[Gate]:
    """Return all gates on what adversaries recover and link; the limits are those of the functions
    below.
    """
    return [
        *reading_gates(findings, names),
        *linkage_gates(findings, linkage),
        *stolen_gates(findings, stolen),
    ]


def reading_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Return a gate on names and one on planted names, as far as adversaries attacked them.

    They judge recipients: with shadow vectors, and with 20 known pairs. The decisive attack is the
    one furthest above chance (always naming the most frequent name, which needs no release).

    Args:
        most: share recovered at most, above chance; with 1 the gates are listed as switched off.
    """
    gated = _measured_and_gated(findings)
    return [
        _decisive("read", attacks, most, {"stratum": target, "attacks": len(attacks)})
        for target in NAMES
        if (attacks := [f for f in gated if target_of(f) == target])
    ]


def _measured_and_gated(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with a value that gates judge."""
    return [f for f in findings if f.value is not None and f.gated]


def linkage_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Return a gate for each kind of knowledge by which recipients were tried to link notes.

    Judged are ten words in a row of a note, public texts about the patients, and the patient's
    other notes. Other notes state the same diagnoses, which a useful release keeps, so their limit
    is higher: it refuses notes that are identified almost as well as in plain text. Shadow vectors
    need hundreds of other notes of the same source, which few recipients have, so their limit is
    higher too (about one note in four is linked by ten words; without background one in two).
    Linkage by the whole text is a warning (`linkage_warnings`): an attacker with the text learns
    nothing else from the release.

    Args:
        most: share linked at most, above chance; with 1 the gates are listed as switched off.
    """
    gated = _measured_and_gated(findings)
    by_words = [f for f in gated if target_of(f) == TEN_WORDS]
    views = [
        ("linked", [f for f in by_words if holding_of(f) != "shadow"], most),
        (
            "linked_by_shadow",
            [f for f in by_words if holding_of(f) == "shadow"],
            max(most, MOST_BY_SHADOW),
        ),
        ("linked", [f for f in gated if target_of(f) == PUBLIC], most),
        (
            "linked_by_notes",
            [f for f in gated if target_of(f) == OTHER_NOTES],
            max(most, MOST_BY_NOTES),
        ),
    ]
    judged = [view for view in views if view[1]]
    return [
        _decisive(of, attacks, limit, {"known": _known(attacks[0])})
        for of, attacks, limit in judged
    ]


def _known(finding: Finding) -> str:
    """Return what the attacker of a linkage knows."""
    return KNOWN[cast(Target, target_of(finding))]


def stolen_gates(findings: Sequence[Finding], most: float | None) -> list[Gate]:
    """Return gates on an attacker with the vault's vectors; none unless a limit is set
    (`--max-stolen`).

    They judge names, planted names, linkage by ten words, and names with an output of their own:
    the attacker needs the channel to know such an output, so a recipient gains nothing by it.

    Args:
        most: share recovered or linked at most, above chance; None or 1: no gate.
    """
    if most is None or most >= 1:
        return []
    stolen = [f for f in findings if f.value is not None and holding_of(f) == "stolen-vectors"]
    targets = (
        (target, [f for f in stolen if target_of(f) == target]) for target in (*NAMES, TEN_WORDS)
    )
    made = [
        _decisive("stolen", attacks, most, {"stratum": target})
        for target, attacks in targets
        if attacks
    ]
    return [*made, *single_gates(findings, most)]


def _decisive(of: str, tried: Sequence[Finding], most: float, fill: Mapping[str, object]) -> Gate:
    """Return one gate for several attacks: the first that fails; if none fails, that of the
    strongest attack that has enough cases.

    Args:
        fill: words for the names in braces of the gate's text.
    """
    gates = list[Gate]()
    for finding in sorted(tried, key=above_chance, reverse=True):
        attack = (finding.attack or "an attack").replace("_", " ")
        gates.append(_estimated(of, finding, most, {**fill, "attack": attack}))
    return min(gates, key=lambda gate: (gate.passed, gate.blind))


def switched_off(names: float, linkage: float) -> Iterator[str]:
    """Yield one sentence per group of gates that the settings disable."""
    if names >= 1:
        yield (
            "The gates on names are switched off (--set max_names=1). See the adversaries for the"
            " names recovered."
        )
    if linkage >= 1:
        yield (
            "The gates on linkage are switched off (--set max_linkage=1). See the adversaries for"
            " the notes linked."
        )


def linkage_warnings(findings: Sequence[Finding], most: float) -> Iterator[str]:
    """Yield one warning for each kind of knowledge beyond ten words that links notes."""
    views: dict[str, Finding] = {}
    linked = (
        f for f in findings if f.measure == LINKAGE and f.value is not None and f.chance is not None
    )
    for finding in (f for f in linked if holding_of(f) in RECIPIENTS):
        known = _known(finding)
        limit = (finding.chance or 0.0) + most
        if target_of(finding) not in (TEN_WORDS, PUBLIC) and (finding.low or 0.0) > limit:
            views[known] = max(views.get(known, finding), finding, key=above_chance)
    for known, finding in views.items():
        much = "some" if too_small(finding) else f"{finding.value:.0%}"
        text = "the whole text of a note" if target_of(finding) == WHOLE else known
        yield f"A recipient with {text} links {much} of the notes to the right patient."


def _estimated(of: str, finding: Finding, most: float, fill: Mapping[str, object]) -> Gate:
    """Return the gate of one estimate; `most` is a share above chance, and 1 switches the gate
    off.
    """
    value = finding.value or 0.0
    cases = effective(finding)
    limit = min(1.0, (finding.chance or 0.0) + most)
    if most >= 1:
        power = "Switched off: the settings allow any share."
        return gate(
            of, passed=True, value=value, threshold=1.0, fill=fill, power=power, switched_off=True
        )
    sees = cases >= enough(limit, finding.chance or 0.0) or (
        finding.high is not None and finding.high <= limit
    )
    certain = finding.low is not None and finding.low > limit
    passed = value <= limit + 1e-9 if sees else not certain  # a share equal to the limit passes
    power = (
        f"Refuses with 95{SPACE}% probability a release with a true share of"
        f" {share(refused_from(limit, cases))}."
    )
    if not sees:
        power = "Too few cases: refuses only if the whole interval is above the limit."
    return gate(
        of, passed=passed, value=value, threshold=limit, fill=fill, power=power, blind=not sees
    )


def refused_from(most: float, cases: float) -> float:
    """Return the smallest share refused with 95 % probability from this many cases (normal
    approximation).
    """
    # solves p - z sqrt(p (1 - p) / n) = most for p
    z = ONE_SIDED
    n = max(cases, 1.0)
    return (most + z * z / (2 * n) + z * sqrt(most * (1 - most) / n + (z / (2 * n)) ** 2)) / (
        1 + z * z / n
    )


def single_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Return the gate on names with an output of their own, which only an attacker with the channel
    knows.

    Exact, so always with power; with `most` = 1 there is no gate.
    """
    found = [f for f in findings if f.measure == SINGLE and f.value is not None and most < 1]
    power = "Exact: refuses from one word on."
    return [
        gate("single", passed=f.value == 0, value=f.value, threshold=0, power=power) for f in found
    ]


def kept_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Return the gates on kept columns: few unique values, and no own identifier; exact, so always
    with power.

    Args:
        most: allowed share of notes with a combination of kept values of a single patient; 1: no
            limit.
    """
    values = {f.measure: f for f in findings if f.value is not None}
    gates = []
    if (unique := values.get(KEPT_UNIQUE)) is not None:
        share_of = unique.value or 0.0
        off = most >= 1
        power = (
            "Switched off: the settings allow any share." if off else "Exact: counts every note."
        )
        passed = share_of <= most
        gates.append(
            gate(
                "kept", passed=passed, value=share_of, threshold=most, power=power, switched_off=off
            )
        )
    if (own := values.get(KEPT_OWN)) is not None:
        power = "Exact, for the identifiers on the known-patient list."
        gates.append(
            gate("kept_own", passed=not own.count, value=own.count, threshold=0, power=power)
        )
    return gates


def contents_gate(folder: Path, notes: str, columns: Columns) -> Gate:
    """Return the gate that only notes in the requested columns leave: no vectors, tables or models.

    Args:
        folder: the staged release, before card, manifest and report are written. notes: name of the
            notes in it.
    """
    asked = {columns.text, columns.note_id, columns.patient_id, *columns.keep}
    faults = sum(1 for _ in _foreign(folder, notes)) + len({*_columns(folder / notes)} - asked)
    return gate(
        "contents", passed=faults == 0, value=faults, threshold=0, hint=FAULT, by_construction=True
    )


def _foreign(folder: Path, notes: str) -> Iterator[Path]:
    """Return files that are not notes, by name or by their first bytes."""
    for path in sorted(p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()):
        inside = path.relative_to(folder)
        below = inside.parts[0] == notes and len(inside.parts) == 2
        named = str(inside) == notes or (
            below and (path.suffix == ".txt" or PART.fullmatch(path.name))
        )
        if path.is_symlink() or not named:
            yield path
            continue
        with path.open("rb") as file:
            if file.read(8).startswith(MAGIC):
                yield path


def _columns(notes: Path) -> Sequence[str]:
    """Return the columns of one or several Parquet files; the output check reads other formats."""
    if notes.is_dir():
        return [name for path in sorted(notes.glob("*.parquet")) for name in _columns(path)]
    if notes.suffix != ".parquet" or not notes.is_file():
        return ()
    import pyarrow.parquet as pq

    return list(pq.read_schema(notes).names)


def patient_gates(findings: Sequence[Finding], *, digits: bool = True) -> list[Gate]:
    """Return the gates on patients' own identifiers in their released notes; empty without a
    known-patient list.

    Identifiers that the list does not contain have no gate; the report warns about them.

    Args:
        digits: whether the release can contain digits; otherwise gates on numbers hold by
            construction.
    """
    gates = list[Gate]()
    own = [f for f in findings if f.measure.startswith("attack.own_")]
    for finding in (f for f in own if f.measure == "attack.own_name"):
        known = finding.known_list or KnownList(in_feed=0, in_release=0)
        passed = known.in_feed == 0 or known.in_release > 0
        gates.append(gate("feed", passed=passed, value=known.in_release, threshold="at least 1"))
    for finding in (f for f in own if f.value is not None):
        if finding.measure == "attack.own_name":
            gates.append(_own_name(finding))
        else:
            gates.append(_none(finding, certain=not digits and finding.measure in NUMBERS))
    return gates


def _none(finding: Finding, *, certain: bool) -> Gate:
    """Return the gate that no such identifier occurs; `certain`: none can be written."""
    count, kind, searched = finding.count or 0, *_searched(finding)
    return gate(
        "own",
        passed=count == 0,
        value=count,
        threshold=0,
        unit=finding.unit,
        fill={"kind": kind},
        meaning=(
            DROPPED
            if certain
            else searched
            if finding.measure in NUMBERS
            else f"{searched} {DRAWN}"
        ),
        power="" if certain else "Refuses any hit among the identifiers searched for.",
        by_construction=certain,
    )


def _searched(finding: Finding) -> tuple[str, str]:
    """Return the kind of identifier, and how many were searched for."""
    kind = finding.measure.removeprefix("attack.own_").replace("_", " ")
    return (
        kind,
        (
            f"{_many(finding.n)} {finding.unit} of the known-patient list were searched for in"
            " their patients' notes."
        ),
    )


def _many(people: int) -> str:
    """Return a number for a sentence of the external report; small numbers are in the findings
    only.
    """
    return f"{people:,}" if people >= SMALL else f"Fewer than {SMALL}"


def _own_name(finding: Finding) -> Gate:
    """Return the gate on own names: a test if it could refuse one leak; with fewer patients, any
    leak fails.
    """
    if not has_power(finding.n):
        count = finding.known_list.alone if finding.known_list else 0
        return gate(
            "own_name",
            passed=count == 0,
            value=count,
            threshold=0,
            unit="own names",
            meaning=(
                f"With {_many(finding.n).lower()} patients, no test can tell one leak from chance."
                " Any name is refused unless it also occurs in the notes of two other patients:"
                " then its words are drawn for anyone."
            ),
            power=(
                "Refuses from 1 leaked name on, if the notes of fewer than two other patients"
                " contain it."
            ),
        )
    # Own names detected may be leaks, so chance is estimated from the names of others.
    detected = (finding.chance or 0.0) * finding.n**2
    others = max(0.0, detected - (finding.count or 0))
    least = leaks_refused_from(finding.n, others / (finding.n - 1))
    return gate(
        "own_name",
        passed=finding.p is None or finding.p >= ALPHA,
        value=finding.p,
        threshold=ALPHA,
        unit="P value (owners permuted)",
        meaning=(
            "Any name can be drawn by chance. P: probability of as many own names with owners"
            " permuted."
        ),
        power=f"Refuses with 95 % from {least} leaked name{'s'[: least != 1]} of {finding.n:,} on.",
    )
