"""Adversaries ordered by what they hold, the targets they attack, and the table of both.

Every adversary also holds what the ones before them hold: an attacker with known pairs can run each
attack of a recipient. `adversary_table` therefore gives each adversary the strongest attack of all
that they can run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from clinveil.core import Cell, Finding
from clinveil.stats import MeasureSpec

Holding = Literal["recipient", "shadow", "pairs-20", "pairs-200", "stolen-vectors"]
Target = Literal[
    "names",
    "planted names",
    "words",
    "rare words",
    "note by ten words",
    "note by the patient's other notes",
    "note by its whole text",
    "note by public knowledge",
    "own identifiers",
    "membership",
    "copies",
    "kept columns",
]
TARGETS: tuple[Target, ...] = get_args(Target)
LABELS: Mapping[Holding, str] = {
    "recipient": "Recipient (release and public text)",
    "shadow": "Recipient with shadow vectors",
    "pairs-20": "Recipient with 20 known pairs",
    "pairs-200": "Recipient with 200 known pairs",
    "stolen-vectors": "Attacker with the vault's vectors (upper bound)",
}
HOLDINGS: tuple[Holding, ...] = tuple(LABELS)
GATED: frozenset[Holding] = frozenset({"recipient", "shadow", "pairs-20"})
"""Adversaries that gates judge; 200 known pairs and stolen vectors are only reported."""
_RECIPIENTS: tuple[Holding, ...] = ("recipient", "shadow", "pairs-20", "pairs-200")
_INCLUDED: Mapping[Holding, tuple[Holding, ...]] = {
    **{holding: _RECIPIENTS[: number + 1] for number, holding in enumerate(_RECIPIENTS)},
    "stolen-vectors": ("recipient", "shadow", "stolen-vectors"),
}
_WORDS: tuple[Target, ...] = ("names", "planted names", "words", "rare words")
KNOWN: Mapping[Target, str] = {
    "note by ten words": "10 words in a row",
    "note by the patient's other notes": "the patient's other notes",
    "note by its whole text": "whole texts",
    "note by public knowledge": "public texts",
}
"""What an attacker knows who links notes."""
NOT_APPLICABLE = "attack.not_applicable"
_NO_MODEL = "does not apply, because no model is trained on the notes"
_ONE_SOURCE = "does not apply, because each released note is the protected form of one source note"
_AS_THEY_ARE = "does not apply, because words other than identifiers are released unchanged"
_NO_VECTORS = "does not apply, because this kind of release uses no word vectors"
_NO_SOURCE = "does not apply, because no released word replaces a source word"
_NO_NOTE = "does not apply, because no released note is the protected form of a source note"
_SHARED_ONLY = (
    "does not apply, because no model is trained on the notes, or only one of word sequences that"
    " several patients share"
)
_COPY_GATES = (
    "does not apply, because each released note is the protected form of one source note; gates of"
    " their own judge the words of a language model"
)
_WORD_BY_WORD: Mapping[Target, str] = {"membership": _NO_MODEL, "copies": _ONE_SOURCE}
_NOT_APPLICABLE: Mapping[str, Mapping[Target, str]] = {
    "obfuscated": {"membership": _SHARED_ONLY, "copies": _COPY_GATES},
    "deidentified": {**dict.fromkeys(_WORDS, _AS_THEY_ARE), **_WORD_BY_WORD},
    "synthetic": {
        **dict.fromkeys(_WORDS, _NO_SOURCE),
        **dict.fromkeys(KNOWN, _NO_NOTE),
        "kept columns": "does not apply, because no column is copied from the source",
    },
}


def tagged(
    finding: Finding, holding: Holding, target: Target, *, gated: bool | None = None
) -> Finding:
    """Return the finding with its cell of the adversary table.

    Args:
        gated: whether a gate judges it; by default, whether gates judge this adversary.
    """
    is_gated = holding in GATED if gated is None else gated
    return replace(finding, cell=Cell(holding, target), gated=is_gated)


def target_of(finding: Finding) -> str:
    """Return the target of a finding of the adversary table; "" for other findings."""
    return finding.cell.target if finding.cell else ""


def holding_of(finding: Finding) -> str:
    """Return what the attacker of a finding of the adversary table holds; "" for other findings."""
    return finding.cell.holding if finding.cell else ""


def applicable(findings: Iterable[Finding], kind: str) -> list[Finding]:
    """Return the findings; those on targets that do not apply to this kind of release lose their
    cell of the adversary table, and no gate judges them.
    """
    result = []
    for finding in findings:
        target = target_of(finding)
        is_applicable = target not in _NOT_APPLICABLE[kind]
        cell = finding.cell if is_applicable else None
        result.append(replace(finding, cell=cell, gated=is_applicable and finding.gated))
    return result


@dataclass(frozen=True, slots=True)
class AdversaryRow:
    """The strongest attack that an adversary can run on a target.

    Attributes:
        cell: the adversary and the target. finding: of the strongest attack; one without a value if
            none was measured.
        gated: whether a gate judges it.
    """

    cell: Cell
    finding: Finding
    gated: bool = False

    @property
    def label(self) -> str:
        """Return the name of the adversary."""
        return LABELS[cast(Holding, self.cell.holding)]

    @property
    def by(self) -> str:
        """Return the weakest adversary that can run the attack; "" without a value."""
        return "" if self.finding.value is None else holding_of(self.finding)

    @property
    def attack(self) -> str:
        """Return the name of the attack; "" without a value."""
        return "" if self.finding.value is None else self.finding.attack or self.finding.measure


def adversary_table(findings: Iterable[Finding]) -> dict[Cell, AdversaryRow]:
    """Return the strongest attack of each cell with a finding, sorted by adversary and target."""
    by_cell: dict[Cell, list[Finding]] = {}
    for finding in findings:
        if finding.cell is not None:
            by_cell.setdefault(finding.cell, []).append(finding)
    table = {}
    for holding in _INCLUDED:
        if not any(cell.holding == holding for cell in by_cell):
            continue
        for target in TARGETS:
            candidates = [
                finding
                for weaker in _INCLUDED[holding]
                for finding in by_cell.get(Cell(weaker, target), ())
            ]
            if candidates:
                cell = Cell(holding, target)
                table[cell] = _row(cell, candidates)
    return table


def _row(cell: Cell, candidates: list[Finding]) -> AdversaryRow:
    measured = [finding for finding in candidates if finding.value is not None]
    if not measured:
        return AdversaryRow(cell, candidates[-1])
    strongest = max(measured, key=above_chance)
    return AdversaryRow(cell, strongest, cell.holding in GATED and strongest.gated)


def is_area(finding: Finding) -> bool:
    """Return whether a finding of the adversary table is an area under the curve."""
    return target_of(finding) == "membership"


def above_chance(finding: Finding) -> float:
    """Return success less chance; -2 without a value."""
    return -2.0 if finding.value is None else finding.value - (finding.chance or 0.0)


def not_applicable(kind: str) -> list[Finding]:
    """Return a finding without a value for each target that no attack can reach in this kind of
    release.

    Args:
        kind: obfuscated, deidentified or synthetic.

    Raises:
        KeyError: unknown kind.
    """
    pairs: list[tuple[Holding, Target, str]] = [
        ("recipient", target, why) for target, why in _NOT_APPLICABLE[kind].items()
    ]
    if kind in ("deidentified", "synthetic"):
        pairs.append(("stolen-vectors", "words", _NO_VECTORS))
    spec = MeasureSpec(measure=NOT_APPLICABLE)
    return [
        tagged(spec.missing(why), holding, target, gated=False) for holding, target, why in pairs
    ]
