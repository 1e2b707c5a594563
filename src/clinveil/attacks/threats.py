"""Adversaries ordered by what they hold, the targets they attack, and the table of both.

Every adversary also holds what the ones before them hold: an attacker with known pairs can run each
attack of a recipient. `adversary_table` therefore gives each adversary the strongest attack of all
that they can run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from clinveil.core import Finding
from clinveil.stats import unmeasured

Holding = Literal["recipient", "shadow", "pairs-20", "pairs-200", "stolen-vectors", "stolen-vault"]
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
    "stolen-vault": "Attacker with the whole vault",
}
HOLDINGS: tuple[Holding, ...] = tuple(LABELS)
GATED: frozenset[Holding] = frozenset({"recipient", "shadow", "pairs-20"})
"""Adversaries that gates judge; 200 known pairs and stolen vectors are only reported."""
EVERYTHING = (
    "Not measured: the key replays every draw, so an attacker with the whole vault recovers"
    " everything."
)

_RECIPIENTS: tuple[Holding, ...] = ("recipient", "shadow", "pairs-20", "pairs-200")
_INCLUDED: Mapping[Holding, tuple[Holding, ...]] = {
    **{holding: _RECIPIENTS[: number + 1] for number, holding in enumerate(_RECIPIENTS)},
    "stolen-vectors": ("recipient", "shadow", "stolen-vectors"),
}
_WORDS: tuple[Target, ...] = ("names", "planted names", "words", "rare words")
_LINKS: tuple[Target, ...] = (
    "note by ten words",
    "note by the patient's other notes",
    "note by its whole text",
    "note by public knowledge",
)
_NO_MODEL = "does not apply, because no model is trained on the notes"
_ONE_SOURCE = "does not apply, because each released note is the protected form of one source note"
_AS_THEY_ARE = "does not apply, because words other than identifiers are released unchanged"
_NO_VECTORS = "does not apply, because this kind of release uses no word vectors"
_NO_SOURCE = "does not apply, because no released word replaces a source word"
_NO_NOTE = "does not apply, because no released note is the protected form of a source note"
_WORD_BY_WORD: Mapping[Target, str] = {"membership": _NO_MODEL, "copies": _ONE_SOURCE}
_NOT_APPLICABLE: Mapping[str, Mapping[Target, str]] = {
    "obfuscated": _WORD_BY_WORD,
    "deidentified": {**dict.fromkeys(_WORDS, _AS_THEY_ARE), **_WORD_BY_WORD},
    "synthetic": {
        **dict.fromkeys(("names", "words", "rare words"), _NO_SOURCE),
        **dict.fromkeys(_LINKS, _NO_NOTE),
        "kept columns": "does not apply, because no column is copied from the source",
    },
}


def tagged(
    finding: Finding, holding: Holding, target: Target, *, gated: bool | None = None
) -> Finding:
    """Return the finding with its cell of the adversary table recorded in the detail.

    Args:
        gated: whether a gate judges it; by default, whether gates judge this adversary.
    """
    is_gated = holding in GATED if gated is None else gated
    return replace(
        finding,
        detail={**finding.detail, "adversary": holding, "target": target, "gated": is_gated},
    )


def gated_only(
    findings: Iterable[Finding], targets: Collection[Target], kind: str
) -> list[Finding]:
    """Return the findings; those on other targets than these are marked as not judged by a gate.

    Findings on targets that do not apply to this kind of release lose their cell of the adversary
    table.
    """
    cell = ("adversary", "target", "gated")
    result = []
    for finding in findings:
        detail = finding.detail
        if detail.get("target") in _NOT_APPLICABLE[kind]:
            detail = {key: value for key, value in detail.items() if key not in cell}
        elif "gated" in detail:
            detail = {**detail, "gated": detail["gated"] and detail["target"] in targets}
        result.append(replace(finding, detail=detail))
    return result


@dataclass(frozen=True, slots=True)
class AdversaryRow:
    """One cell of the adversary table: the strongest attack that an adversary can run on a target.

    Attributes:
        adversary, target: the cell; `target` is None for the stolen vault, where nothing is left to
            measure.
        value, low, high, chance: of the strongest attack, as in `Finding`; None without a
            measurement.
        n, unit: number of cases. gated: whether a gate judges the cell.
        attack: the adversary or matcher of the strongest attack. by: the weakest adversary that can
            run it.
        why: the reason for a missing value. finding: the finding of the strongest attack; None
            without a value.
    """

    adversary: Holding
    target: Target | None
    value: float | None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    n: int = 0
    unit: str = ""
    gated: bool = False
    attack: str = ""
    by: Holding | None = None
    why: str = ""
    finding: Finding | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        """Return the name of the adversary."""
        return LABELS[self.adversary]


def adversary_table(findings: Iterable[Finding]) -> list[AdversaryRow]:
    """Return the table of all tagged findings, sorted by adversary and target; the last row is the
    stolen vault.
    """
    cells: dict[tuple[Holding, Target], list[Finding]] = {}
    for finding in findings:
        place = finding.detail.get("adversary"), finding.detail.get("target")
        if place[0] in LABELS and place[1] in TARGETS:
            cells.setdefault(cast(tuple[Holding, Target], place), []).append(finding)
    return [*_rows(cells), AdversaryRow("stolen-vault", None, None, why=EVERYTHING)]


def _rows(cells: Mapping[tuple[Holding, Target], list[Finding]]) -> Iterator[AdversaryRow]:
    present = [holding for holding in _INCLUDED if any(one == holding for one, _ in cells)]
    for holding in present:
        for target in TARGETS:
            candidates = [
                finding
                for weaker in _INCLUDED[holding]
                for finding in cells.get((weaker, target), ())
            ]
            if candidates:
                yield _row(holding, target, candidates)


def _row(holding: Holding, target: Target, candidates: list[Finding]) -> AdversaryRow:
    measured = [finding for finding in candidates if finding.value is not None]
    if not measured:
        last = candidates[-1]
        return AdversaryRow(
            holding, target, None, n=last.n, unit=last.unit, why=str(last.detail["why"])
        )
    top = max(measured, key=above_chance)
    gated = holding in GATED and bool(top.detail.get("gated"))
    by = cast(Holding, top.detail["adversary"])
    return AdversaryRow(
        holding,
        target,
        top.value,
        top.low,
        top.high,
        top.chance,
        top.n,
        top.unit,
        gated,
        attack=method_of(top) or top.measure,
        by=by,
        finding=top,
    )


def above_chance(finding: Finding) -> float:
    """Return success less chance; -2 without a value."""
    return -2.0 if finding.value is None else finding.value - (finding.chance or 0.0)


def method_of(finding: Finding) -> str:
    """Return the name of the attack among those of its measure; "" where there is one attack
    only.
    """
    return str(finding.detail.get("reader") or finding.detail.get("attacker") or "")


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
    return [
        tagged(unmeasured("attack.not_applicable", why), holding, target, gated=False)
        for holding, target, why in pairs
    ]
