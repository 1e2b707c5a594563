"""What the tasks found, as findings of all models together: P adjusted over models, the permuted control beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clinveil.core.finding import Finding
from clinveil.scale.tasks import Result, Store
from clinveil.study.jmir_2020.attack import Attack
from clinveil.study.jmir_2020.names import AttackNames
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.treat import Treat

Key = tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """All findings of a study.

    Attributes:
        settings: what it was told. treated: what was treated: counts. k: the length of attack 1's list.
        findings: of all models. figure_3: the curve on unremoved notes.
        missing: models without results, and why.
    """

    settings: StudySettings
    treated: Result = field(repr=False)
    k: int
    findings: list[Finding] = field(repr=False)
    figure_3: list[Finding] = field(repr=False)
    missing: Mapping[str, str]

    @property
    def by_key(self) -> dict[Key, Finding]:
        """Findings by measure, model, metric, series and label."""
        return {key_of(finding): finding for finding in self.findings}

    @property
    def everything(self) -> list[Finding]:
        """The findings, Figure 3's marked as such."""
        marked = [replace(f, detail={**f.detail, "series": "all names left in the notes"}) for f in self.figure_3]
        return [*self.findings, *marked]


def key_of(finding: Finding) -> Key:
    """Measure, model, metric, series, label."""
    return (finding.measure, *(str(finding.detail.get(name, "")) for name in ("model", "metric", "series", "label")))


def collect(
    settings: StudySettings,
    store: Store,
    treat: Treat,
    names: AttackNames,
    attacks: Sequence[Attack],
    figure_3: Attack | None,
) -> Results:
    """Read the results of finished tasks. Raises InputError if one cannot be read."""
    from clinveil.attacks.vectors.association import over_models

    named, missing = store.result(names), {}
    others: list[Finding] = []
    for attack in attacks:
        result = store.result(attack)
        if "why" in result:
            missing[f"{attack.train.model.label}, {attack.metric}"] = str(result["why"])
            continue
        others += _beside(_findings(result, "findings"), _findings(result, "permuted"))
    curve = [f for f in _findings(store.result(figure_3), "findings") if _is_curve(f)] if figure_3 else []
    found = [*_findings(named, "findings"), *over_models(others)]
    return Results(settings, store.result(treat), int(named["k"]), found, curve, {**named["missing"], **missing})


def _findings(result: Result, part: str) -> Iterator[Finding]:
    return (Finding.from_dict(item) for item in result.get(part, ()))


def _is_curve(finding: Finding) -> bool:
    return finding.measure == "attack.association_by_frequency"


def _beside(true: Iterator[Finding], permuted: Iterator[Finding]) -> Iterator[Finding]:
    """The true findings, each with what it was under permuted names."""
    controls = {key_of(finding): finding for finding in permuted}
    for finding in true:
        other = controls.get(key_of(finding))
        if other is None or other.value is None:
            yield finding
            continue
        more: dict[str, Any] = {"names_permuted": other.value}
        if other.p is not None:
            more["names_permuted_p"] = other.p
        yield replace(finding, detail={**finding.detail, **more})
