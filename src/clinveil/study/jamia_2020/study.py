"""The study of paper A: its settings, its grid as tasks, and their results with means over
repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import field_validator

from clinveil.channel.settings import NeighbourRange
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.neural import need_torch
from clinveil.core.settings import LABEL, flag
from clinveil.core.types import Say
from clinveil.report.numerals import NONE, between, decimals
from clinveil.stats.findings import NO_EVIDENCE, is_no_evidence, unmeasured
from clinveil.stats.intervals import t_interval
from clinveil.study.engine import Bench, CommonSettings, Results, Task, choices, findings_of
from clinveil.study.inputs import File, Source, Train
from clinveil.study.jamia_2020.tasks import (
    Classify,
    Compare,
    Neighbourhood,
    Prepare,
    Setting,
    Similar,
    Treat,
)
from clinveil.study.tables import Paper, Row, Spec, Study, Table, run, shown
from clinveil.utility.classifiers import any_neural, classifier, classifiers
from clinveil.utility.pairs import read_pairs
from clinveil.vectors.settings import VectorSettings

SIDE = "utility.classification"
LOSS = "utility.classification_loss"


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables that have numbers."""
    spec = paper.tables
    made = [
        spec["table-1"].table(list(results.facts["examples"].items())),
        _corpus(results, spec["table-2"]),
    ]
    if results.all("study.similarity"):
        made.append(_similarity(results, spec["table-3"]))
    chance = decimals(getattr(results.of(SIDE), "chance", None))
    settings = dict.fromkeys(f.detail["setting"] for f in results.all("attack.inversion"))
    tokens = (
        (str(setting), *spec["tokens"].cells(results, setting=setting)) for setting in settings
    )
    made += [
        spec["table-4"].table(_classified(results), chance=chance),
        spec["transfers"].table(_transfers(results)),
        spec["tokens"].table(tokens),
    ]
    return [table for table in made if table.rows]


def _corpus(results: Results, spec: Spec) -> Table:
    corpus = results.facts["corpus"]
    ours = (corpus["patients"], corpus["notes"], corpus["tokens"], corpus["types"])
    rows = [
        (name, theirs, f"{count:,}")
        for (name, theirs), count in zip(spec.paper.items(), ours, strict=True)
    ]
    detail = corpus.get("detail", {})
    more = []
    if detail:
        more.append(
            f"{detail['classes']} classes; left out: {detail['without_label']} notes without a"
            f" label, {detail['notes_of_small_classes']} of classes under {detail['min_class']}"
            f" notes; {corpus['duplicates']} near-duplicates stay on one side of the split."
        )
    return spec.table(rows, more, max_tokens=results.settings.max_tokens)


def _similarity(results: Results, spec: Spec) -> Table:
    grid = results.settings.n
    rows: list[Row] = []
    keys = ("algorithm", "list", "series")
    for key in dict.fromkeys(
        tuple(f.detail[name] for name in keys) for f in results.all("study.similarity")
    ):
        own = dict(zip(keys, key, strict=True))
        means = [results.of("study.similarity", **own, n=n) for n in grid]
        known = [mean for mean in means if mean]
        scored = (
            f"{', '.join(str(mean.detail['covered']) for mean in known)} of"
            f" {known[-1].detail['pairs']}"
        )
        name = f"{own['list']}, {own['algorithm']}" + (
            f", {own['series']}" if own["series"] else ""
        )
        rows.append((name, scored, *map(shown, means)))
    for name, printed in spec.paper.items():
        rows.append((f"{name}, paper", "all", *(printed.get(n, NONE) for n in grid)))
    heads = (*spec.heads, *(f"N = {n}" if n != "0" else "original" for n in grid))
    return spec.table(rows, heads=heads)


def _groups(results: Results) -> list[dict[str, str]]:
    """Return the details that identify each comparison of classifiers."""
    names = ("setting", "model", "vectors", "transfer")
    rows = (tuple(str(f.detail.get(name) or "") for name in names) for f in results.all(LOSS))
    return [dict(zip(names, row, strict=True)) for row in dict.fromkeys(rows)]


def _change(results: Results, metric: str, own: dict[str, Any]) -> tuple[str, str]:
    """Return the score on the released side, and the paired change in points."""
    loss = results.of(_measure(metric, "_loss"), **own)
    assert loss is not None
    change = between(points(loss.value), points(loss.high), points(loss.low), 1)
    return shown(results.of(_measure(metric), side="released", **own)), change


def _measure(metric: str, end: str = "") -> str:
    return SIDE + ("" if metric == "macro_f1" else f"_{metric}") + end


def points(loss: float | None) -> float | None:
    """Return a loss as a change in points."""
    return None if loss is None else 0.0 - 100 * loss


def _classified(results: Results) -> Iterator[Row]:
    for own in _groups(results):
        if not own["transfer"]:
            other = "micro_f1" if results.of(_measure("micro_f1", "_loss"), **own) else "accuracy"
            name = f"{own['setting']}; {own['model']}" + (
                f" ({own['vectors']})" if own["vectors"] else ""
            )
            control = shown(results.of(SIDE, side="original", **own), show="control")
            yield (name, *_change(results, "macro_f1", own), *_change(results, other, own), control)


def _transfers(results: Results) -> Iterator[Row]:
    for own in _groups(results):
        if own["transfer"]:
            yield (f"{own['transfer']}; {own['model']}", *_change(results, "macro_f1", own))


ORIGINAL = Setting("original")
LEVEL = 0.9  # level of paper A's intervals
PAPER_N = ("0", "3", "5", "7", "9", "3-14")
ALGORITHMS = ("cbow", "skipgram")
SIMILARITY = "cbow"  # vectors that are trained again and scored on word pairs


class StudySettings(CommonSettings):
    """Settings of `clinveil study jamia-2020`."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {
            "n": ("0", "3"),
            "algorithm": ("cbow",),
            "model": ("lr",),
            "repetitions": 2,
            "dim": 16,
            "max_documents": 400,
            "max_tokens": 60,
            "min_class": 10,
            "transfers": False,
        },
        "paper": {
            "model": classifiers.names(),
            "seeds": 3,
            "max_documents": 10**9,
            "max_tokens": 5_000,
        },
    }
    label: tuple[str, ...] = LABEL
    n: tuple[str, ...] = flag(
        PAPER_N, "Values of N, 0 for the original; repeatable (default: the paper's)."
    )
    algorithm: tuple[str, ...] = flag(
        ALGORITHMS, "Vectors that define the neighbours: cbow, skipgram; repeatable."
    )
    model: tuple[str, ...] = flag(("lr", "svm", "cnn", "lstm"), "Classifiers; repeatable.")
    subwords: bool = flag(
        True, "Get vectors of unknown words from fastText, trained on the same protected text."
    )
    repetitions: int = flag(5, "Repetitions of obfuscation and training (paper: 5).", ge=2, le=100)
    seeds: int = flag(1, "Runs of each network.", ge=1, le=20)
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(5, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples.", ge=1, le=100)
    epochs: int = flag(5, "Epochs of vector training.", ge=1, le=1000)
    baselines: bool = flag(True, "Also measure PHI removed and PHI replaced.")
    transfers: bool = flag(
        True, "Also the supplement's transfers: vectors of one side on text of the other (cnn)."
    )
    max_documents: int = flag(5_000, "Maximum number of documents, sampled at random.", ge=20)
    max_tokens: int = flag(
        200, "Words of each document; longer documents are truncated first.", ge=5
    )
    min_class: int = flag(50, "Leave out classes with fewer notes.", ge=2)
    separator: str | None = flag(None, "Separator of several labels of one note.")
    device: str = flag("cpu", "Networks: cpu or cuda.")

    @field_validator("n")
    @classmethod
    def _ranges(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if value != "0" and NeighbourRange.model_validate(NeighbourRange.parse(value)).low < 2:
                raise ValueError("N must be 0 (the original), 2 or more, or a range such as 3-14")
        return tuple(dict.fromkeys(("0", *values)))

    @field_validator("algorithm", "model")
    @classmethod
    def _known(cls, values: tuple[str, ...], info: Any) -> tuple[str, ...]:
        return choices(values, classifiers.names() if info.field_name == "model" else ALGORITHMS)


def run_study(
    notes: Path,
    out: Path,
    settings: StudySettings,
    *,
    pairs: tuple[Path, ...] = (),
    say: Say = lambda line: None,
) -> Results:
    """Run the study of paper A on the user's notes; the same call again resumes it.

    `notes`: a file or folder; `pairs`: word-pair lists, required for Table 3, as labels are for
    Table 4.

    Raises as `tables.run` does, and UsageError without labels and pairs.
    """
    if not settings.label and not pairs:
        raise UsageError(
            "the study needs labels or word pairs",
            hint="pass --label COLUMN, --pairs FILE, or both",
        )
    if len(settings.label) > 1:
        raise UsageError("pass exactly one --label", hint="run the study once per label")
    if settings.label and any_neural(settings.model):
        need_torch()
    for path in pairs:
        read_pairs(path)
    lists = tuple(map(File.of, pairs))
    return run(
        Jamia2020(settings, Source.of(notes, settings.notes, settings.label), lists), out, say
    )


@dataclass(frozen=True)
class Jamia2020(Study):
    """Paper A on some notes and word-pair lists."""

    settings: StudySettings
    source: Source
    lists: tuple[File, ...] = ()
    command: ClassVar[str] = "study jamia-2020"

    def perform(self, bench: Bench) -> Results:
        """Run unfinished tasks and collect the results."""
        bench.do(self.wanted)
        treated = [(treat, bench.store.result(treat)) for treat in self.treats]
        tokens = [finding for _, result in treated for finding in findings_of(result)]
        raw = [
            finding
            for similar in self.similars
            for finding in findings_of(bench.store.result(similar))
        ]
        compared = [
            finding
            for compare in self.compares
            for finding in findings_of(bench.store.result(compare))
        ]
        corpus = bench.store.result(self.prepare)
        examples = {treat.setting.label: str(result["example"]) for treat, result in treated}
        facts: dict[str, Any] = {"lead": corpus, "corpus": corpus, "examples": examples}
        return Results(self.settings, (*means(raw), *raw, *tokens, *compared), facts)

    @property
    def wanted(self) -> tuple[Task, ...]:
        """All tasks that the tables need."""
        return (*self.treats, *self.similars, *self.compares)

    @cached_property
    def prepare(self) -> Prepare:
        """The task that samples, truncates and splits the notes."""
        settings = self.settings
        label = settings.label[0] if settings.label else None
        limits = (
            settings.max_documents,
            settings.max_tokens,
            settings.min_class,
            settings.separator,
        )
        return Prepare(self.source, label, *limits, settings.seed)

    @cached_property
    def grid(self) -> list[Setting]:
        """The settings of Table 4, and the baselines."""
        settings = self.settings
        grid = [
            Setting("neighbours", n, algorithm)
            for algorithm in settings.algorithm
            for n in settings.n
            if n != "0"
        ]
        if not settings.baselines:
            return [ORIGINAL, *grid]
        return [ORIGINAL, Setting("phi-remove"), Setting("phi-replace"), *grid]

    @cached_property
    def treats(self) -> list[Treat]:
        """The notes under every setting, drawn once, for the example and the findings on single
        tokens.
        """
        pairs = [similar.treat for similar in self.similars if similar.treat.repetition == 0]
        return list(dict.fromkeys([*pairs, *map(self._treat, self.grid)]))

    @cached_property
    def similars(self) -> list[Similar]:
        """Word pairs by N, each repetition with separate draws and training."""
        tasks: list[Similar] = []
        grid = [ORIGINAL] + [
            Setting("neighbours", n, SIMILARITY) for n in self.settings.n if n != "0"
        ]
        for treat in (
            self._treat(s, repetition)
            for s in grid
            for repetition in range(self.settings.repetitions)
        ):
            fast = self._train(treat, "fasttext") if self.settings.subwords else None
            tasks.append(Similar(treat, self._train(treat, SIMILARITY), fast, self.lists))
        return tasks if self.lists else []

    @cached_property
    def compares(self) -> list[Compare]:
        """Every model on every setting, compared with the same model and algorithm on the
        original.
        """
        if not self.settings.label:
            return []
        tasks = []
        for setting in self.grid:
            algorithms = (setting.algorithm,) if setting.algorithm else self.settings.algorithm
            for model in self.settings.model:
                for algorithm in algorithms if classifier(model).neural else ("",):
                    original, treated = (
                        self._runs(model, side, algorithm) for side in (ORIGINAL, setting)
                    )
                    controls = self._runs(model, ORIGINAL, algorithm, shuffled=True)[:1]
                    tasks.append(Compare(original, treated, controls, seed=self.settings.seed))
        return [
            *tasks,
            *(
                self._transfers()
                if self.settings.transfers and "cnn" in self.settings.model
                else ()
            ),
        ]

    def _transfers(self) -> Iterator[Compare]:
        """Yield the transfers of the supplement: protected vectors on plain text, plain vectors on
        protected text.
        """
        settings = self.settings
        algorithm = self.settings.algorithm[0]
        original = self._runs("cnn", ORIGINAL, algorithm)
        for n in [n for n in settings.n if n != "0"][:1] + [n for n in settings.n if "-" in n][:1]:
            setting = Setting("neighbours", n, algorithm)
            plain = self._runs("cnn", ORIGINAL, algorithm, start=setting)
            yield Compare(
                original, plain, (), f"vectors of {setting.label}, plain text", settings.seed
            )
            other = self._runs("cnn", setting, algorithm, start=ORIGINAL)
            yield Compare(
                original, other, (), f"plain vectors, text {setting.label}", settings.seed
            )

    def _runs(
        self,
        model: str,
        setting: Setting,
        algorithm: str,
        *,
        start: Setting | None = None,
        shuffled: bool = False,
    ) -> tuple[Classify, ...]:
        """Return the runs of a model on the text of a setting, with vectors of `start` (default:
        the same setting).
        """
        own = self.settings
        train = self._train(self._treat(start or setting), algorithm) if algorithm else None
        size: Literal["small", "paper"] = "paper" if own.size == "paper" else "small"
        return tuple(
            Classify(
                self.prepare,
                self._treat(setting),
                model,
                train,
                run,
                own.max_tokens,
                own.device,
                size,
                shuffled,
            )
            for run in seeds(own.seed, 1 if not classifier(model).neural or shuffled else own.seeds)
        )

    def _treat(self, setting: Setting, repetition: int = 0) -> Treat:
        vectors = self._vectors(setting.algorithm) if setting.algorithm else None
        near = Neighbourhood(self.prepare, vectors, self.settings.seed) if vectors else None
        return Treat(self.prepare, setting, near, repetition, self.settings.seed)

    def _train(self, treat: Treat, algorithm: str) -> Train:
        return Train(treat, self._vectors(algorithm), treat.seed + 1_000 * treat.repetition)

    def _vectors(self, algorithm: str) -> VectorSettings:
        names = ("dim", "window", "negative", "epochs")
        own: dict[str, Any] = {name: getattr(self.settings, name) for name in names}
        return VectorSettings.model_validate({"algorithm": algorithm, **own})

    def tables(self, results: Results) -> Sequence[Table]:
        """Return all tables that have numbers."""
        return tables(results, self.paper)


SOURCE = "paper A, Table 3 and Figure 1"


def means(raw: Sequence[Finding]) -> Iterator[Finding]:
    """Yield correlations over repetitions: mean, 90 % t interval, and the number of scored pairs.

    A mean that is not above the chance of one repetition is not evidence: it has no value and no
    interval.
    """
    grouped: dict[tuple[str, ...], list[Finding]] = {}
    names = ("algorithm", "list", "series", "n")
    for finding in raw:
        grouped.setdefault(tuple(str(finding.detail.get(name) or "") for name in names), []).append(
            finding
        )
    for key, findings in grouped.items():
        known = [f for f in findings if correlation_of(f) is not None]
        values = [value for f in known if (value := correlation_of(f)) is not None]
        covered = min(int(f.detail.get("scored") or f.n) for f in findings)
        pairs = int(findings[0].detail.get("pairs") or 0)
        detail: dict[str, Any] = dict(zip(names, key, strict=True))
        detail |= {"repetitions": len(values), "covered": covered, "pairs": pairs}
        if len(values) < 2:
            empty = next((f for f in findings if is_no_evidence(f)), None)
            if empty is not None:
                why = str(empty.detail["why"])
                yield unmeasured(
                    "study.similarity",
                    why,
                    len(findings),
                    detail=detail,
                    better="higher",
                    source=SOURCE,
                    unit="repetitions",
                )
            continue
        # Repetitions share the pairs, so their mean is compared with the chance of one repetition.
        mean = float(np.mean(values))
        limit = float(np.mean([float(f.detail["chance_high"] or 0.0) for f in known]))
        if mean <= limit:
            why = (
                f"{NO_EVIDENCE}: the mean correlation ({mean:.3f}, {covered} pairs) is not above"
                f" chance ({limit:.3f})"
            )
            more = {**detail, "correlation": mean}
            yield unmeasured(
                "study.similarity",
                why,
                len(values),
                detail=more,
                better="higher",
                source=SOURCE,
                unit="repetitions",
                chance=0.0,
                chance_is="no correlation",
            )
            continue
        low, high = t_interval(values, LEVEL)
        method = "t interval over repetitions, 90 %"
        yield Finding(
            "study.similarity",
            mean,
            len(values),
            low=low,
            high=high,
            detail=detail,
            method=method,
            better="higher",
            source=SOURCE,
            unit="repetitions",
            chance=0.0,
            chance_is="no correlation",
        )


def correlation_of(finding: Finding) -> float | None:
    """Return the correlation of a finding, also of one that is not evidence; None without any."""
    found = finding.detail.get("correlation") if finding.value is None else finding.value
    return found if isinstance(found, float) else None


def seeds(seed: int, n: int) -> list[int]:
    """Return independent seeds of runs."""
    return [int(x) for x in np.random.SeedSequence([seed, 9]).generate_state(n)]
