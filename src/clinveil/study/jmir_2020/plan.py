"""The tasks of the study in their order, and how long those that are not done should take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from clinveil.scale.tasks import Store, Work
from clinveil.study.jmir_2020.attack import Attack, Codes
from clinveil.study.jmir_2020.grid import FIGURE_3, Model, models
from clinveil.study.jmir_2020.names import AttackNames
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.train import Train
from clinveil.study.jmir_2020.treat import Source, Treat

if TYPE_CHECKING:
    from clinveil.attacks.vectors._distances import Metric

# Seconds for a million words on one busy core of a shared x86-64 machine, November 2026: treating; reading, counting
# and encoding for training; one pass with 50 dimensions, and what each window word adds to it.
TREAT, READ = 3.4, 2.0
PASS = {"cbow": (2.0, 0.2), "skipgram": (2.0, 2.5), "glove": (0.3, 0.25)}
COUNT_PAIRS = 1.0  # for each window word, once
ATTACK = 20.0  # seconds for one model and metric with the paper's draws and 650 patients
NAMES = 1.5  # seconds for one model and metric with 9,999 re-pairings


@dataclass(frozen=True)
class Tasks:
    """All tasks, by stages: those of one stage do not need one another."""

    treats: tuple[Treat, ...]
    trains: tuple[Train, ...]
    attacks: tuple[Attack, ...]
    names: AttackNames
    figure_3: Attack | None
    source: Source = field(repr=False)

    def stages(self) -> Iterator[tuple[str, Sequence[Work]]]:
        """The stages in order; in each the longest tasks come first, so that workers end together."""
        figure = [self.figure_3] if self.figure_3 else []
        trains: list[Train] = [*self.trains, *(attack.train for attack in figure)]
        trains.sort(key=lambda train: -self._training(train.model))
        yield "remove names", self.treats
        yield "train", trains
        yield "attack", [self.names, *figure, *self.attacks]

    def seconds(self, work: Work) -> float:
        """Roughly how long a task takes on one busy core."""
        words = self.source.words / 1e6
        if isinstance(work, Treat):
            return TREAT * words
        if isinstance(work, Train):
            return self._training(work.model)
        if isinstance(work, AttackNames):
            return NAMES * len(work.trains) * len(work.metrics) * work.draws / 9_999
        return ATTACK

    def _training(self, model: Model) -> float:
        base, each = PASS[model.algorithm]
        counting = COUNT_PAIRS * model.window if model.algorithm == "glove" else 0.0
        one_pass = (base + each * model.window) * model.dim / 50
        return self.source.words / 1e6 * (READ + counting + one_pass * model.epochs)

    def lines(self, store: Store, workers: int) -> Iterator[str]:
        """The plan for people: stage, tasks, how many are done, and time left."""
        total = 0.0
        for name, works in self.stages():
            waiting = [work for work in works if not store.done(work)]
            times = [self.seconds(work) for work in waiting]
            stage = max([sum(times) / workers, *times]) if times else 0.0
            total += stage
            left = f"about {_minutes(stage)}" if waiting else "nothing to do"
            yield f"{name}: {len(works)} tasks, {len(works) - len(waiting)} done; {left}"
        yield f"in all about {_minutes(total)} with {workers} workers (a guess, good to a factor of two or three)"


def plan(settings: StudySettings, source: Source, codes: Codes) -> Tasks:
    """The tasks of these settings."""
    treat = Treat(source, settings.mode, settings.miss_rate, settings.seed, settings.redrawn)
    trains = tuple(Train(treat, model) for model in models(settings))
    draws = (settings.permutations, settings.patient_draws, settings.scenario_draws)
    attacks = tuple(
        Attack(train, codes, metric, *draws, k=settings.k, targets=settings.target)
        for train in trains
        for metric in settings.metric
    )
    names = AttackNames(trains, cast("tuple[Metric, ...]", settings.metric), settings.k, settings.draws)
    if not settings.figure_3:
        return Tasks((treat,), trains, attacks, names, None, source)
    everyone = Treat(source, "none", 1.0, settings.seed, everyone=True)
    curve = Attack(Train(everyone, FIGURE_3), codes, "cityblock", settings.permutations, None, 0, curve_only=True)
    return Tasks((treat, everyone), trains, attacks, names, curve, source)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
