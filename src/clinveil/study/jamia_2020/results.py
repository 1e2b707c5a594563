"""What the tasks found, put together: means over repetitions with t intervals, and every finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clinveil.core.finding import Finding
from clinveil.scale.tasks import Store
from clinveil.stats import t_interval
from clinveil.study.jamia_2020.plan import Tasks
from clinveil.study.jamia_2020.settings import StudySettings

LEVEL = 0.9  # paper A's intervals


@dataclass(frozen=True)
class Mean:
    """A correlation over repetitions: mean, 90 % t interval, and the share of pairs that it is of."""

    value: float
    low: float
    high: float
    repetitions: int
    covered: int
    pairs: int


@dataclass(frozen=True)
class Results:
    """Everything that was found.

    Attributes:
        corpus: counts of the prepared notes. examples: the example note by setting.
        similarity: by algorithm, list, series and N. references: rows of out-of-domain vectors.
        tokens: findings of channels by setting. classification: findings of all comparisons.
    """

    settings: StudySettings
    corpus: Mapping[str, Any] = field(repr=False)
    examples: Mapping[str, str] = field(repr=False)
    similarity: Mapping[tuple[str, str, str, str], Mean] = field(repr=False)
    references: list[dict[str, Any]] = field(repr=False)
    tokens: Mapping[str, list[Finding]] = field(repr=False)
    classification: list[Finding] = field(repr=False)
    raw: list[Finding] = field(repr=False)

    @property
    def everything(self) -> list[Finding]:
        """All findings for `findings.json`."""
        channels = [replace(f, detail={**f.detail, "setting": s}) for s, found in self.tokens.items() for f in found]
        return [*self._means(), *self.raw, *channels, *self.classification]

    def _means(self) -> Iterator[Finding]:
        for (algorithm, name, series, n), mean in self.similarity.items():
            detail: dict[str, Any] = {
                "algorithm": algorithm,
                "list": name,
                "series": series,
                "n": n,
                "repetitions": mean.repetitions,
            }
            detail |= {"covered": mean.covered, "pairs": mean.pairs}
            yield Finding(
                "study.similarity",
                mean.value,
                mean.repetitions,
                "higher",
                mean.low,
                mean.high,
                chance=0.0,
                source="paper A, Table 3 and Figure 1",
                detail=detail,
                unit="repetitions",
                method="t interval over repetitions, 90 %",
                chance_is="no correlation",
            )


def collect(settings: StudySettings, store: Store, tasks: Tasks) -> Results:
    """Read the results of finished tasks. Raises InputError if one cannot be read."""
    examples, tokens = {}, {}
    for treat in tasks.treats:
        if treat.repetition == 0:
            said = store.result(treat)
            examples[treat.setting.label] = str(said["example"])
            if "findings" in said:
                tokens[treat.setting.label] = [Finding.from_dict(f) for f in said["findings"]]
    raw = [finding for similar in tasks.similars for finding in _findings(store, similar)]
    compared = [f for compare in tasks.compares for f in _found(store.result(compare))]
    references = store.result(tasks.references)["rows"] if tasks.references else []
    corpus = store.result(tasks.prepare)
    return Results(settings, corpus, examples, _means(raw), references, tokens, compared, raw)


def _found(result: Mapping[str, Any]) -> Iterator[Finding]:
    return (Finding.from_dict(item) for item in result["findings"])


def _findings(store: Store, similar: Any) -> Iterator[Finding]:
    train = similar.train
    said = {"algorithm": train.training.algorithm, "n": train.treat.setting.n or "0"}
    for finding in _found(store.result(similar)):
        if finding.measure == "utility.similarity":
            yield replace(finding, detail={**finding.detail, **said, "repetition": train.treat.repetition})


def _means(raw: list[Finding]) -> dict[tuple[str, str, str, str], Mean]:
    grouped: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in raw:
        key = tuple(str(finding.detail.get(name) or "") for name in ("algorithm", "list", "series", "n"))
        grouped.setdefault(key, []).append(finding)  # type: ignore[arg-type]
    made = {}
    for key, found in grouped.items():
        values = [f.value for f in found if f.value is not None]
        if len(values) < 2:
            continue
        low, high = t_interval(values, LEVEL)
        covered = [int(f.detail.get("scored") or f.n) for f in found]
        pairs = int(found[0].detail.get("pairs") or 0)
        made[key] = Mean(sum(values) / len(values), low, high, len(values), min(covered), pairs)
    return made
