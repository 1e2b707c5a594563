"""Repeat paper A on your notes: `python -m papers.jamia_2020.run NOTES -o OUT --label COLUMN`.

Every step is a function of `steps.py`; finished steps are read from the cache in OUT.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]

from clinveil import UsageError
from clinveil.core import fingerprint, need_torch
from clinveil.utility import read_pairs
from papers.jamia_2020 import steps
from papers.jamia_2020.settings import LINEAR, Algorithm, Model, ObfuscationSettings
from papers.jamia_2020.steps import (
    ORIGINAL,
    PAPER,
    ClassifierRun,
    NetworkOptions,
    PairScoring,
    Sample,
    Setting,
    SideComparison,
    Treatment,
    VectorTraining,
)
from papers.jamia_2020.tables import means, tables
from papers.running import Cache, command_line, exit_code_of, say, settings_of
from papers.tables import Results, from_dicts, read_paper, write_results

PAIR_VECTORS: Algorithm = "cbow"  # vectors that are trained again and scored on word pairs
Argument = TypeVar("Argument")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Grid:
    """Everything that the tables need: treatments, scorings of word pairs, and comparisons."""

    settings: ObfuscationSettings
    sample: Sample
    pairs: tuple[Path, ...]

    @cached_property
    def protections(self) -> list[Setting]:
        """The settings of Table 4, and the baselines."""
        neighbours = [
            Setting("neighbours", n, algorithm)
            for algorithm in self.settings.algorithm
            for n in self.settings.n
            if n != "0"
        ]
        if not self.settings.baselines:
            return [ORIGINAL, *neighbours]
        return [ORIGINAL, Setting("phi-remove"), Setting("phi-replace"), *neighbours]

    @cached_property
    def treatments(self) -> list[Treatment]:
        """The notes under every setting, drawn once, for the example and the disclosure."""
        of_pairs = [
            scoring.treatment for scoring in self.scorings if scoring.treatment.repetition == 0
        ]
        treatments = [*of_pairs, *(self.treatment(setting) for setting in self.protections)]
        return list(dict.fromkeys(treatments))

    @cached_property
    def scorings(self) -> list[PairScoring]:
        """Word pairs by N, each repetition with separate draws and training."""
        neighbours = [Setting("neighbours", n, PAIR_VECTORS) for n in self.settings.n if n != "0"]
        return [
            PairScoring(
                treatment=self.treatment(setting, repetition),
                training=self.training(PAIR_VECTORS),
                subwords=self.training("fasttext") if self.settings.subwords else None,
                pairs=path,
                digest=fingerprint(path),
            )
            for setting in [ORIGINAL, *neighbours]
            for repetition in range(self.settings.repetitions)
            for path in self.pairs
        ]

    @cached_property
    def comparisons(self) -> list[SideComparison]:
        """Every model on every setting, compared with the same model and vectors on the original,
        and the transfers of the supplement.
        """
        if self.sample.label is None:
            return []
        comparisons = []
        for setting in self.protections:
            for model in self.settings.model:
                for algorithm in self._algorithms(setting, model):
                    comparison = SideComparison(
                        original=self.runs(model, ORIGINAL, algorithm),
                        treated=self.runs(model, setting, algorithm),
                        controls=self.runs(model, ORIGINAL, algorithm, shuffled=True)[:1],
                    )
                    comparisons.append(comparison)
        if self.settings.transfers and "cnn" in self.settings.model:
            comparisons += self._transfers()
        return comparisons

    def _algorithms(self, setting: Setting, model: Model) -> Sequence[Algorithm | None]:
        """Return the algorithms of a model's initial vectors."""
        if model in LINEAR:
            return [None]
        return [
            algorithm
            for algorithm in self.settings.algorithm
            if setting.algorithm in ("", algorithm)
        ]

    def _transfers(self) -> list[SideComparison]:
        """Return the comparisons of protected vectors on plain text, and the reverse."""
        algorithm = self.settings.algorithm[0]
        original = self.runs("cnn", ORIGINAL, algorithm)
        fixed = [n for n in self.settings.n if n != "0"][:1]
        ranges = [n for n in self.settings.n if "-" in n][:1]
        comparisons = []
        for n in [*fixed, *ranges]:
            setting = Setting("neighbours", n, algorithm)
            plain_text = self.runs("cnn", ORIGINAL, algorithm, start=setting)
            plain_vectors = self.runs("cnn", setting, algorithm, start=ORIGINAL)
            comparisons += [
                SideComparison(original, plain_text, (), f"vectors of {setting.label}, plain text"),
                SideComparison(original, plain_vectors, (), f"plain vectors, text {setting.label}"),
            ]
        return comparisons

    def runs(
        self,
        model: Model,
        setting: Setting,
        algorithm: Algorithm | None,
        *,
        start: Setting | None = None,
        shuffled: bool = False,
    ) -> tuple[ClassifierRun, ...]:
        """Return the runs of a model on the text of a setting, with vectors of `start` (default:
        the same setting).
        """
        settings = self.settings
        n_runs = 1 if model in LINEAR or shuffled else settings.seeds
        return tuple(
            ClassifierRun(
                treatment=self.treatment(setting),
                model=model,
                seed=seed,
                options=NetworkOptions(
                    max_tokens=settings.max_tokens,
                    epochs=settings.network_epochs,
                    patience=settings.patience,
                    device=settings.device,
                ),
                start=self.treatment(start or setting) if algorithm else None,
                training=self.training(algorithm) if algorithm else None,
                shuffled=shuffled,
            )
            for seed in seeds(settings.seed, n_runs)
        )

    def treatment(self, setting: Setting, repetition: int = 0) -> Treatment:
        """Return the notes under a setting."""
        algorithms: dict[str, Algorithm] = {"cbow": "cbow", "skipgram": "skipgram"}
        algorithm = algorithms.get(setting.algorithm)
        neighbours = self.training(algorithm) if algorithm else None
        return Treatment(self.sample, setting, neighbours, repetition)

    def training(self, algorithm: Algorithm) -> VectorTraining:
        """Return the training of word vectors with the settings."""
        settings = self.settings
        return VectorTraining(
            algorithm, settings.dim, settings.window, settings.negative, settings.epochs
        )


def seeds(seed: int, n: int) -> list[int]:
    """Return independent seeds of runs."""
    return [int(x) for x in np.random.SeedSequence([seed, 9]).generate_state(n)]


def grid_of(
    notes: Path, label: str | None, pairs: Sequence[Path], settings: ObfuscationSettings
) -> Grid:
    """Return the grid of the settings on some notes."""
    sample = Sample(
        path=notes,
        digest=fingerprint(notes),
        columns=settings.notes,
        label=label,
        max_documents=settings.max_documents,
        max_tokens=settings.max_tokens,
        min_class=settings.min_class,
        separator=settings.separator,
        seed=settings.seed,
    )
    return Grid(settings, sample, tuple(pairs))


def repeat_paper(
    notes: Path,
    out: Path,
    settings: ObfuscationSettings,
    *,
    label: str | None = None,
    pairs: Sequence[Path] = (),
) -> Results:
    """Repeat paper A, print its tables, and write them to `out`, all of which is secret.

    Args:
        label: column to classify by, for Table 4. pairs: lists of word pairs, for Table 3.

    Raises:
        UsageError: neither label nor pairs. InputError: notes or pairs that do not fit.
        MissingExtra: a network without PyTorch.
    """
    if label is None and not pairs:
        hint = "pass --label COLUMN, --pairs FILE, or both"
        raise UsageError("the script needs labels or word pairs", hint=hint)
    if label is not None and any(model not in LINEAR for model in settings.model):
        need_torch()
    for path in pairs:
        read_pairs(path)
    cache = Cache(out)
    grid = grid_of(notes, label, pairs, settings)
    documents = cache.run(steps.sampled, grid.sample)
    treated = _all(cache, steps.protected, grid.treatments, settings.workers, "protect")
    scored = _all(cache, steps.pair_findings, grid.scorings, settings.workers, "word pairs")
    _all(cache, steps.predictions, _classifier_runs(grid), settings.workers, "classify")
    compared = _all(cache, steps.compared, grid.comparisons, settings.workers, "compare")
    repetitions = [finding for stored in scored for finding in from_dicts(stored)]
    results = Results(
        (
            *means(repetitions),
            *repetitions,
            *(finding for notes in treated for finding in from_dicts(notes.findings)),
            *(finding for stored in compared for finding in from_dicts(stored)),
        )
    )
    corpus = documents.corpus_counts()
    examples = {
        treatment.setting.label: notes.example
        for treatment, notes in zip(grid.treatments, treated, strict=True)
    }
    paper = read_paper(PAPER)
    made = tables(results, paper, settings, corpus=corpus, task=documents.task, examples=examples)
    page = settings.for_page()
    name = "papers jamia_2020"
    write_results(out, paper, corpus, made, results, page, name=name, seed=settings.seed)
    return results


def _classifier_runs(grid: Grid) -> list[steps.ClassifierRun]:
    """Return the runs of classifiers that the comparisons need, each once."""
    runs = [
        run
        for comparison in grid.comparisons
        for side in (comparison.original, comparison.treated, comparison.controls)
        for run in side
    ]
    return list(dict.fromkeys(runs))


def _all(
    cache: Cache,
    step: Callable[[Cache, Argument], Result],
    arguments: Sequence[Argument],
    workers: int,
    name: str,
) -> list[Result]:
    """Return the results of a step for all arguments, which are independent of each other."""
    if not arguments:
        return []
    say(f"{name}: {len(arguments)} steps")
    results: list[Result] = Parallel(n_jobs=workers)(
        delayed(cache.run)(step, argument) for argument in arguments
    )
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; return its exit code."""
    parser = command_line(__doc__ or "", Path(__file__).with_name("settings.toml"))
    parser.add_argument("--label", help="column to classify by (Table 4)")
    parser.add_argument(
        "--pairs",
        type=Path,
        action="append",
        default=[],
        help="word pairs with human scores (Table 3); repeatable",
    )
    known = parser.parse_args(arguments)
    return exit_code_of(lambda: _repeat(known))


def _repeat(known: Namespace) -> None:
    settings = settings_of(ObfuscationSettings, known)
    repeat_paper(known.notes, known.out, settings, label=known.label, pairs=known.pairs)


if __name__ == "__main__":
    sys.exit(main())
