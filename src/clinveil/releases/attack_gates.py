"""Gates on what the attacks found: names and canaries read back, notes linked without the vectors; and on what leaves.

A gate on an estimate refuses where the estimate lies above its threshold and there are cases enough that a release of
half the threshold is hardly ever refused; with fewer cases only where the whole interval lies above it, and else it is
blind. So a small hospital is not refused for want of data, and a breach that anybody can see always is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path

from clinveil.core.finding import Finding
from clinveil.corpus.corpus import Columns
from clinveil.releases.gates import FAULT, gate
from clinveil.report.edition import too_small
from clinveil.report.numerals import SPACE, share
from clinveil.report.record import Gate
from clinveil.stats.intervals import effective_share

LINKAGE_WARNED = 0.05  # points above chance
READING, SINGLE, LINKAGE = "attack.reading", "attack.channel_single", "attack.linkage"
SECRET = {"names": "names", "canaries": "planted canaries"}  # strata, as the gates call them
OUTSIDERS = ("without the vectors", "own vectors")  # `attacker` of linkage: what every recipient can do
FRAGMENT = "words in a row"  # `against` of linkage, of who knows a piece of a note
ONE_SIDED = 1.645  # normal quantile of 95 %
# What begins files of arrays, tables and models; none of these is ever a note.
MAGIC = (b"\x93NUMPY", b"ARROW1", b"\x80\x04\x95", b"\x80\x05\x95", b"PK\x03\x04", b"\x89HDF")

PART = re.compile(r"part-[0-9a-f]+\.(?!npy$|npz$|arrow$|bin$|vec$)[a-z0-9.]+")  # of a release of part files


def reading_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """The strongest reader's share of names, and of planted canaries; no gate for what was not read.

    Args:
        most: `--max-names`; with 1 nothing is held against it.
    """
    found = [f for f in findings if f.value is not None and most < 1]
    strata = ((name, [f for f in found if f.measure == f"{READING}.{name}"]) for name in SECRET)
    return [_strongest(name, readers, most) for name, readers in strata if readers]


def _strongest(stratum: str, readers: Sequence[Finding], most: float) -> Gate:
    top = max(readers, key=lambda finding: (finding.value or 0.0, finding.high or 0.0))
    who = str(top.detail.get("reader") or "a reader").replace("_", " ")
    return _estimated("read", top, most, stratum=SECRET[stratum], reader=who, readers=len(readers))


def linkage_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Whether who has no vectors finds the note of which they know a few words; empty where that was not tried.

    Who holds a whole note, or a patient's other notes, is warned of (`linkage_warnings`) and stands in the report: the
    first has little to learn, and the second is met by the diagnoses, which a useful release keeps.

    Args:
        most: `--max-linkage`, above chance; with 1 nothing is held against it.
    """
    found = [f for f in _outsiders(findings) if FRAGMENT in str(f.detail.get("against"))]
    if not found or most >= 1:
        return []
    top = max(found, key=_above)
    told = {"attacker": str(top.detail["attacker"]), "known": str(top.detail["against"])}
    return [_estimated("linked", top, min(1.0, (top.chance or 0.0) + most), **told)]


def switched_off(names: float, linkage: float) -> Iterator[str]:
    """The gates that the settings let anything pass."""
    if names >= 1:
        yield "The gates on names were switched off (--max-names 1): names may be read back, see the ladder."
    if linkage >= 1:
        yield "The gate on linkage was switched off (--max-linkage 1): anybody may find whose note is whose."


def linkage_warnings(findings: Sequence[Finding], most: float) -> Iterator[str]:
    """What is no gate: who knows more of a person, has no vectors, and still finds their note; a sentence each."""
    views: dict[str, Finding] = {}
    for finding in _outsiders(findings):
        known = str(finding.detail.get("against"))
        if FRAGMENT not in known and (finding.low or 0.0) > (finding.chance or 0.0) + most:
            views[known] = max(views.get(known, finding), finding, key=_above)
    for known, finding in views.items():
        much = "some" if too_small(finding, "external") else f"{finding.value:.0%}"
        text = "the whole text of a note" if known == "whole texts" else known
        yield f"Somebody without the vectors who holds {text} picks the right one for {much} of the notes."


def _outsiders(findings: Sequence[Finding]) -> list[Finding]:
    found = (f for f in findings if f.measure == LINKAGE and f.value is not None and f.chance is not None)
    return [f for f in found if f.detail.get("attacker") in OUTSIDERS]


def _above(finding: Finding) -> float:
    return (finding.value or 0.0) - (finding.chance or 0.0)


def _estimated(of: str, finding: Finding, most: float, **fill: object) -> Gate:
    value, cases = finding.value or 0.0, effective(finding)
    sees = cases >= enough(most) or (finding.high is not None and finding.high <= most)
    certain = finding.low is not None and finding.low > most
    passed = value <= most if sees else not certain
    least = refused_from(most, cases)
    power = f"Refuses with 95{SPACE}% a release of which {share(least)} would be found so."
    if not sees:
        power = "Too few cases for a share near the threshold: it refuses only where the whole interval lies above."
    return gate(of, passed=passed, value=value, threshold=most, fill=fill, power=power, blind=not sees)


def effective(finding: Finding) -> float:
    """So many independent cases have an interval of this width; `n` where there is none, and never more than it."""
    value, low, high = finding.value or 0.0, finding.low, finding.high
    if low is None or high is None or high <= low:
        return float(finding.n)
    few, many = 1.0, max(1.0, float(finding.n))
    for _ in range(40):
        middle = (few + many) / 2
        ends = effective_share(value * middle, middle)
        few, many = (middle, many) if ends[1] - ends[0] > high - low else (few, middle)
    return many


def enough(most: float) -> float:
    """So many cases that a release of half this share is refused in 5 % at most."""
    half = most / 2
    return (ONE_SIDED / half) ** 2 * half * (1 - half)


def refused_from(most: float, cases: float) -> float:
    """The smallest share that is refused with 95 %, of so many independent cases (normal approximation)."""
    low, high = most, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        seen = middle - ONE_SIDED * sqrt(middle * (1 - middle) / max(cases, 1.0)) > most
        low, high = (low, middle) if seen else (middle, high)
    return high


def single_gates(findings: Sequence[Finding], most: float) -> list[Gate]:
    """Whether some name comes out as a word that nothing else becomes: exact, so always with power."""
    found = [f for f in findings if f.measure == SINGLE and f.value is not None and most < 1]
    values = [f.value for f in found if f.detail.get("label") == "names"]
    power = "Exact: refuses from one word on. Planted canaries are such names too."
    return [gate("single", passed=value == 0, value=value, threshold=0, power=power) for value in values]


def contents_gate(folder: Path, notes: str, columns: Columns) -> Gate:
    """Whether nothing but notes, in the columns that were asked for, is about to leave: no vectors, tables or models.

    Args:
        folder: what is about to leave, before its companions are written. notes: the name of the notes in it.
    """
    faults = sum(1 for _ in _foreign(folder, notes)) + len({*_columns(folder / notes)} - _asked(columns))
    return gate("contents", passed=faults == 0, value=faults, threshold=0, remedy=FAULT, by_construction=True)


def _foreign(folder: Path, notes: str) -> Iterator[Path]:
    """Files that are no notes: by their name, or by how they begin."""
    for path in sorted(p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()):
        inside = path.relative_to(folder)
        below = inside.parts[0] == notes and len(inside.parts) == 2
        named = str(inside) == notes or (below and (path.suffix == ".txt" or PART.fullmatch(path.name)))
        if path.is_symlink() or not named or _begins(path):
            yield path


def _begins(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8).startswith(MAGIC)


def _columns(notes: Path) -> Sequence[str]:
    """The columns of a Parquet file, or of several; other formats were read back by the check."""
    if notes.is_dir():
        return [name for path in sorted(notes.glob("*.parquet")) for name in _columns(path)]
    if notes.suffix != ".parquet" or not notes.is_file():
        return ()
    import pyarrow.parquet as pq

    return list(pq.read_schema(notes).names)


def _asked(columns: Columns) -> set[str]:
    return {name for name in (columns.text, columns.note_id, columns.patient_id, *columns.keep) if name}
