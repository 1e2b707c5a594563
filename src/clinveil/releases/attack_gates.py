"""Gates on what adversaries recover and link, on identifiers, and on which files leave.

Gates judge recipients (with shadow vectors, with 20 known pairs). 200 known pairs and stolen
vectors are reported only.

A gate on an estimate refuses a release if the estimate is above the limit and there are enough
cases that a release at half the limit is refused in at most 5 % of runs. With fewer cases it
refuses only if the whole interval is above the limit; otherwise it is not decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path

from clinveil.attacks import NOT_APPLICABLE, Target, above_chance, is_area, target_of
from clinveil.core import Finding, KnownList
from clinveil.corpus import Columns
from clinveil.releases.gates import FAULT, PASS_LIST, SPANS, gate
from clinveil.report import SMALL, SPACE, Gate, Limit, share
from clinveil.stats import ALPHA, clopper_pearson, has_power, leaks_refused_from

ONE_SIDED = 1.645  # normal quantile of 95 %
KEPT_UNIQUE = "attack.kept_columns_unique"
KEPT_OWN = "attack.kept_own_identifiers"
RECALL = "validate.recall"
# The text of its gate, and the targets of attacks, of each risk that attacks measure.
TARGETS_OF: Mapping[str, tuple[str, tuple[Target, ...]]] = {
    "names": ("read", ("names",)),
    "planted_names": ("read_planted", ("planted names",)),
    "words": ("read_words", ("words", "rare words")),
    "ten_words": ("linked", ("note by ten words",)),
    "other_notes": ("linked_by_notes", ("note by the patient's other notes",)),
    "public_texts": ("linked_by_public_texts", ("note by public knowledge",)),
    "membership": ("membership", ("membership",)),
}
NOT_READ = {
    "obfuscated": "A missed identifier is replaced like every word: see names disclosed.",
    "synthetic": "A missed identifier is written only if patients share it: see names disclosed and"
    " copies.",
}
WITHOUT_INPUT = {
    "other_notes": "Too few patients have several notes.",
    "public_texts": "No public texts about the patients were given.",
}
NUMBERS = frozenset({"attack.own_record_number", "attack.own_phone"})
DROPPED = "Holds by construction: no digit is written (--set channel.numbers=drop)."
DRAWN = "Random draws can produce it too; any hit is refused."
NO_LIST = (
    "No known-patient list was given (--patients), so no patient's identifiers were searched for."
)
NOWHERE = (
    "No identifier of the known-patient list occurs in the original notes either, so the search"
    " could find nothing."
)
# First bytes of files of arrays, tables and models; notes never begin with them.
MAGIC = (b"\x93NUMPY", b"ARROW1", b"\x80\x04\x95", b"\x80\x05\x95", b"PK\x03\x04", b"\x89HDF")

# Of a release of part files.
PART = re.compile(r"part-[0-9a-f]+\.(?!npy$|npz$|arrow$|bin$|vec$)[a-z0-9.]+")


def adversary_gates(
    findings: Sequence[Finding], rules: Mapping[str, Limit], kind: str
) -> list[Gate]:
    """Return a gate for each risk of `TARGETS_OF`: the strongest attack by recipients.

    They judge recipients: with shadow vectors, and with 20 known pairs. Vectors of the vault and
    200 known pairs are reported only. The decisive attack is the one furthest above chance.

    Args:
        rules: limit of each risk. kind: kind of release.
    """
    gates = list[Gate]()
    for risk, (of, targets) in TARGETS_OF.items():
        about = [f for f in findings if target_of(f) in targets]
        tried = [f for f in about if f.value is not None and f.gated]
        if tried:
            gates.append(_decisive(of, tried, rules[risk]))
        elif about:
            gates.append(_without_value(of, risk, about[0], kind))
        else:
            gates.append(_not_run(of, risk, kind))
    return gates


def _not_run(of: str, risk: str, kind: str) -> Gate:
    """Return the gate of an attack that was not run: without its input, the risk does not exist on
    these notes; otherwise it is not decided.
    """
    fill = {"attack": "none", "kind": kind, "attacks": 0}
    why = WITHOUT_INPUT.get(risk, "This attack was not run.")
    made = gate(of, risk=risk, within=True, value=None, limit=0, fill=fill, meaning=why)
    is_absent = risk in WITHOUT_INPUT
    return replace(made, inapplicable=is_absent, undecided=not is_absent)


def absent_gates(findings: Sequence[Finding]) -> list[Gate]:
    """Return the gate on copies for a kind of release that writes no text of a model."""
    found = [f for f in findings if f.measure == NOT_APPLICABLE and target_of(f) == "copies"]
    copied = {"span": max(SPANS)}
    return [
        replace(
            gate("copies", within=True, value=None, limit=0, fill=copied, meaning=one.why),
            inapplicable=True,
        )
        for one in found
    ]


def _without_value(of: str, risk: str, finding: Finding, kind: str) -> Gate:
    """Return the gate of a risk that was not measured: it does not exist, or is not decided."""
    fill = {"attack": "none", "kind": kind, "attacks": 0}
    is_absent = finding.measure == NOT_APPLICABLE
    made = gate(of, risk=risk, within=True, value=None, limit=0, fill=fill, meaning=finding.why)
    return replace(made, inapplicable=is_absent, undecided=not is_absent)


def _decisive(of: str, tried: Sequence[Finding], rule: Limit) -> Gate:
    """Return one gate for several attacks: the first that is not held; if all are, that of the
    strongest attack that has enough cases. For the public, an attack with too few cases whose
    value is above the limit is not hidden by another one.
    """
    gates = list[Gate]()
    for finding in sorted(tried, key=above_chance, reverse=True):
        attack = (finding.attack or "an attack").replace("_", " ")
        gates.append(_estimated(of, finding, rule, {"attack": attack, "attacks": len(tried)}))

    def order(gate: Gate) -> tuple[bool, bool]:
        is_above = float(gate.value or 0.0) > float(gate.limit or 0.0)
        is_open = gate.undecided and is_above and rule.audience == "public"
        return gate.within, gate.undecided and not is_open

    return min(gates, key=order)


def _estimated(of: str, finding: Finding, rule: Limit, fill: Mapping[str, object]) -> Gate:
    """Return the gate of one estimate; the limit is a share above chance.

    Of an area under the curve A, 2 A - 1 is the success above guessing, so its limit is half as far
    above chance.
    """
    value = finding.value or 0.0
    chance = finding.chance or 0.0
    most = 1.0 if rule.most is None else rule.most
    limit = min(1.0, chance + (most / 2 if is_area(finding) else most))
    cases = effective(finding)
    sees = cases >= enough(limit, chance) or (finding.high is not None and finding.high <= limit)
    certain = finding.low is not None and finding.low > limit
    within = value <= limit + 1e-9 if sees else not certain  # a share equal to the limit passes
    power = (
        f"Refuses with 95{SPACE}% probability a release with a true share of"
        f" {share(refused_from(limit, cases))}."
    )
    if not sees:
        power = "Too few cases: refuses only if the whole interval is above the limit."
    return gate(
        of,
        risk=rule.risk,
        within=within,
        value=value,
        limit=limit,
        fill=fill,
        power=power,
        undecided=not sees,
        finding=finding,
    )


def enough(limit: float, chance: float = 0.0) -> float:
    """Return the number of cases from which a release halfway between chance and limit is refused
    in 5 % at most.
    """
    half = max(limit - chance, 1e-9) / 2
    share = chance + half
    return (ONE_SIDED / half) ** 2 * share * (1 - share)


def effective(finding: Finding) -> float:
    """Return the number of independent cases that gives an interval of this width; at most `n`."""
    value = finding.value or 0.0
    low = finding.low
    high = finding.high
    if low is None or high is None or high <= low:
        return float(finding.n)
    few = 1.0
    many = max(1.0, float(finding.n))
    for _ in range(40):
        middle = (few + many) / 2
        ends = clopper_pearson(value * middle, middle)
        few, many = (middle, many) if ends[1] - ends[0] > high - low else (few, middle)
    return many


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


def kept_gates(findings: Sequence[Finding], most: float | None) -> list[Gate]:
    """Return the gates on kept columns: few unique values, and no own identifier; exact, so always
    with power.

    Args:
        most: allowed share of notes with a combination of kept values of a single patient; None: no
            limit.
    """
    values = {f.measure: f for f in findings if f.value is not None}
    gates = []
    if (unique := values.get(KEPT_UNIQUE)) is not None:
        share_of = unique.value or 0.0
        limit = 1.0 if most is None else most
        gates.append(
            gate(
                "kept",
                within=share_of <= limit,
                value=share_of,
                limit=limit,
                power="Exact: counts every note.",
                finding=unique,
            )
        )
    if (own := values.get(KEPT_OWN)) is not None:
        gates.append(
            gate(
                "kept_own",
                within=not own.count,
                value=own.count,
                limit=0,
                power="Exact, for the identifiers on the known-patient list.",
                finding=own,
            )
        )
    if not gates:
        none = gate("kept", within=True, value=None, limit=0, meaning="No column is kept.")
        gates.append(replace(none, inapplicable=True))
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
        "contents", within=faults == 0, value=faults, limit=0, hint=FAULT, by_construction=True
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


def missed_gate(findings: Sequence[Finding], rule: Limit, kind: str, cost: str) -> Gate:
    """Return the gate on identifiers that detection missed, from marks of a reviewer.

    Words of other kinds than `deidentified` do not leave as they are, so that the gates on names
    judge what is left of a missed identifier.

    Args:
        cost: what a decision needs and what it costs, without marks.
    """
    found = next((f for f in findings if f.measure == RECALL and f.value is not None), None)
    if found is not None:
        high = 1.0 if found.low is None else 1.0 - found.low
        low = 0.0 if found.high is None else 1.0 - found.high
        most = 1.0 if rule.most is None else rule.most
        missed = 1.0 - (found.value or 0.0)
        return gate(
            "missed",
            within=low <= most,
            value=missed,
            limit=most,
            meaning=(
                f"From {found.n:,} marks, before corrections: {share(low)} to {share(high)} of the"
                " identifiers."
            ),
            undecided=high > most,
            finding=found,
        )
    made = gate("missed", within=True, value=None, limit=rule.most, meaning=cost)
    if kind == "deidentified":
        return replace(made, undecided=True)
    return replace(made, inapplicable=True, meaning=NOT_READ[kind])


def patient_gates(findings: Sequence[Finding], *, digits: bool = True) -> list[Gate]:
    """Return the gates on patients' own identifiers in their released notes; not decided without a
    known-patient list, or with one of which nothing occurs in the original notes.

    Identifiers that the list does not contain have no gate; the report warns about them.

    Args:
        digits: whether the release can contain digits; otherwise gates on numbers hold by
            construction.
    """
    gates = list[Gate]()
    own = [f for f in findings if f.measure.startswith("attack.own_")]
    for finding in (f for f in own if f.measure == "attack.own_name"):
        known = finding.known_list or KnownList(in_feed=0, in_release=0)
        within = known.in_feed == 0 or known.in_release > 0
        gates.append(gate("feed", within=within, value=known.in_release, limit="at least 1"))
    for finding in (f for f in own if f.value is not None):
        if finding.measure == "attack.own_name":
            gates.append(_own_name(finding))
        else:
            gates.append(_none(finding, certain=not digits and finding.measure in NUMBERS))
    if not gates:
        why = own[0].why if own else NO_LIST
        missing = gate("own_name", within=True, value=None, limit=0, meaning=why)
        gates.append(replace(missing, undecided=True, hint=PASS_LIST))
    controls = [finding.control for finding in own if finding.control is not None]
    if controls and not any(controls):
        gates = [
            replace(one, undecided=True, meaning=NOWHERE)
            if one.within and one.finding and not one.by_construction
            else one
            for one in gates
        ]
    return gates


def _none(finding: Finding, *, certain: bool) -> Gate:
    """Return the gate that no such identifier occurs; `certain`: none can be written."""
    count, kind, searched = finding.count or 0, *_searched(finding)
    return gate(
        "own",
        within=count == 0,
        value=count,
        limit=0,
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
        finding=finding,
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
            within=count == 0,
            value=count,
            limit=0,
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
            finding=finding,
        )
    # Own names detected may be leaks, so chance is estimated from the names of others.
    detected = (finding.chance or 0.0) * finding.n**2
    others = max(0.0, detected - (finding.count or 0))
    least = leaks_refused_from(finding.n, others / (finding.n - 1))
    return gate(
        "own_name",
        within=finding.p is None or finding.p >= ALPHA,
        value=finding.p,
        limit=ALPHA,
        unit="P value (owners permuted)",
        meaning=(
            "Any name can be drawn by chance. P: probability of as many own names with owners"
            " permuted."
        ),
        power=f"Refuses with 95 % from {least} leaked name{'s'[: least != 1]} of {finding.n:,} on.",
        finding=finding,
    )
