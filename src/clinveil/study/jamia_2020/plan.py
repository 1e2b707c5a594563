"""The tasks of the study in their order, and how long those that are not done should take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from clinveil.scale.tasks import Store, Work
from clinveil.study.jamia_2020.classify import Classify, Compare
from clinveil.study.jamia_2020.prepare import Prepare, Source
from clinveil.study.jamia_2020.settings import StudySettings
from clinveil.study.jamia_2020.similar import Lists, References, Similar, Train
from clinveil.study.jamia_2020.treat import Neighbourhood, Setting, Training, Treat, seeds
from clinveil.utility.classifiers import classifier

ORIGINAL = Setting("original")
# Seconds for a million words on one busy core of a shared x86-64 machine, November 2026.
TREAT, TRAIN, FAST, NOISE = 12.0, {"cbow": 6.0, "skipgram": 14.0}, 35.0, 250.0
LIMIT_HOURS = 2.0


@dataclass(frozen=True)
class Tasks:
    """All tasks by stages: those of one stage do not need one another."""

    prepare: Prepare
    nears: tuple[Neighbourhood, ...]
    treats: tuple[Treat, ...]
    trains: tuple[Train, ...]
    similars: tuple[Similar, ...]
    references: References | None
    classifies: tuple[Classify, ...]
    compares: tuple[Compare, ...]
    words: int = field(default=0)

    def stages(self) -> Iterator[tuple[str, Sequence[Work]]]:
        """The stages in order; in each the longest tasks come first."""
        yield "prepare", [self.prepare]
        yield "neighbours", self.nears
        yield "treat", sorted(self.treats, key=lambda t: -self.seconds(t))
        yield "train", sorted(self.trains, key=lambda t: -self.seconds(t))
        yield "word pairs", [*self.similars, *([self.references] if self.references else [])]
        yield "classify", sorted(self.classifies, key=lambda t: -self.seconds(t))
        yield "compare", self.compares

    def seconds(self, work: Work) -> float:
        """Roughly how long a task takes on one busy core."""
        millions = self.words / 1e6
        if isinstance(work, Treat):
            return millions * (NOISE if work.setting.kind in ("laplace", "gaussian") else TREAT) + 6
        if isinstance(work, Train | Neighbourhood):
            fast = FAST if isinstance(work, Train) and work.subwords else 0.0
            return millions * (TRAIN[work.training.algorithm] * work.training.epochs / 5 + fast) + 2
        if isinstance(work, Classify):
            return millions * classifier(work.model).cost + 5
        return 6.0

    def lines(self, store: Store, workers: int) -> Iterator[str]:
        """The plan for people: stage, tasks, how many are done, and time left."""
        for name, works in self.stages():
            waiting = [work for work in works if not store.done(work)]
            left = f"about {minutes(self._stage(waiting, workers))}" if waiting else "nothing to do"
            yield f"{name}: {len(works)} tasks, {len(works) - len(waiting)} done; {left}"
        total = minutes(3600 * self.hours(store, workers))
        yield f"in all about {total} with {workers} workers (a guess, good to a factor of two or three)"

    def hours(self, store: Store, workers: int) -> float:
        """Roughly how long what is not done takes."""
        waiting = ([work for work in works if not store.done(work)] for _, works in self.stages())
        return sum(self._stage(works, workers) for works in waiting) / 3600

    def _stage(self, works: Sequence[Work], workers: int) -> float:
        times = [self.seconds(work) for work in works]
        return max([sum(times) / workers, *times]) if times else 0.0


def plan(
    settings: StudySettings, source: Source, lists: Lists | None, references: dict[str, tuple[Path, str]]
) -> Tasks:
    """The tasks of these settings.

    Args:
        lists: word-pair lists, or None. references: name -> vectors and their digest.
    """
    return _Planner(settings, source, lists, references).tasks()


class _Planner:
    def __init__(
        self,
        settings: StudySettings,
        source: Source,
        lists: Lists | None,
        references: dict[str, tuple[Path, str]],
    ) -> None:
        self._told, self._lists, self._references = settings, lists, references
        label = settings.label[0] if settings.label else None
        cuts = (settings.max_documents, settings.max_tokens, settings.min_class, settings.separator)
        self._prepare = Prepare(source, label, *cuts, settings.seed)
        self._trains: dict[Train, None] = {}

    def tasks(self) -> Tasks:
        told = self._told
        similars = self._similars() if self._lists else ()
        classified: list[Classify] = []
        compares = self._compares(classified) if told.label else ()
        references = self._reference_task() if self._lists and self._references else None
        treats = dict.fromkeys([*(t.treat for t in self._trains), *(c.treat for c in classified)])
        treats |= dict.fromkeys(self._treat(setting) for setting in self._settings())
        nears = dict.fromkeys(t.near for t in treats if t.near)
        words = told.max_documents * told.max_tokens
        return Tasks(
            self._prepare,
            tuple(near for near in nears if near),
            tuple(treats),
            tuple(self._trains),
            similars,
            references,
            tuple(dict.fromkeys(classified)),
            compares,
            min(words, 10**8),
        )

    def _training(self, algorithm: str) -> Training:
        told = self._told
        return Training(algorithm, told.dim, told.window, told.negative, told.epochs)

    def _settings(self) -> list[Setting]:
        """The grid of Table 4, and the baselines."""
        told = self._told
        grid = [Setting("neighbours", n, a) for a in told.algorithm for n in told.n if n != "0"]
        if not told.baselines:
            return [ORIGINAL, *grid]
        noise = [Setting(kind, "", told.algorithm[0], share) for kind in told.noise for share in told.unchanged]
        product = Setting("product", "3-14", told.algorithm[0])
        return [ORIGINAL, Setting("phi-remove"), Setting("phi-replace"), *grid, product, *noise]

    def _treat(self, setting: Setting, repetition: int = 0) -> Treat:
        near = (
            Neighbourhood(self._prepare, self._training(setting.algorithm), self._told.seed)
            if setting.algorithm
            else None
        )
        return Treat(self._prepare, setting, near, repetition, self._told.seed)

    def _train(self, setting: Setting, algorithm: str, repetition: int = 0) -> Train:
        pairs = bool(self._lists) and algorithm in self._told.similarity_algorithm and self._told.subwords
        train = Train(self._treat(setting, repetition), self._training(algorithm), pairs)
        self._trains[train] = None
        return train

    def _similars(self) -> tuple[Similar, ...]:
        assert self._lists is not None
        found = []
        for algorithm in self._told.similarity_algorithm:
            settings = [ORIGINAL] + [Setting("neighbours", n, algorithm) for n in self._told.n if n != "0"]
            for setting in settings:
                for repetition in range(self._told.repetitions):
                    found.append(Similar(self._train(setting, algorithm, repetition), self._lists))
        return tuple(found)

    def _reference_task(self) -> References:
        assert self._lists is not None
        train = self._train(ORIGINAL, self._told.similarity_algorithm[0])
        names = tuple(self._references)
        paths, digests = zip(*self._references.values(), strict=True)
        return References(train, self._lists, names, tuple(paths), tuple(digests))

    def _compares(self, classified: list[Classify]) -> tuple[Compare, ...]:
        """Every model on every setting against itself on the original with vectors of the same algorithm."""
        found = []
        for setting in self._settings():
            for model in self._told.model:
                for algorithm in self._algorithms(model, setting):
                    original = self._runs(model, ORIGINAL, algorithm, classified)
                    treated = self._runs(model, setting, algorithm, classified)
                    controls = self._runs(model, ORIGINAL, algorithm, classified, shuffled=True)[:1]
                    found.append(Compare(original, treated, controls, seed=self._told.seed))
        if self._told.transfers:
            found += self._transfers(classified)
        return tuple(found)

    def _algorithms(self, model: str, setting: Setting) -> tuple[str, ...]:
        if not classifier(model).neural:
            return ("",)
        return (setting.algorithm,) if setting.algorithm else self._told.algorithm

    def _runs(
        self,
        model: str,
        setting: Setting,
        algorithm: str,
        classified: list[Classify],
        *,
        start: Setting | None = None,
        shuffled: bool = False,
    ) -> tuple[Classify, ...]:
        """The runs of one model on one setting's text, from vectors of `start`'s text (the same unless given)."""
        told = self._told
        train = self._train(start or setting, algorithm) if algorithm else None
        size: Literal["small", "paper"] = "paper" if told.size == "paper" else "small"
        runs = seeds(told.seed, 1 if not classifier(model).neural or shuffled else told.seeds)
        made = tuple(
            Classify(
                self._prepare, self._treat(setting), model, train, run, told.max_tokens, told.device, size, shuffled
            )
            for run in runs
        )
        classified += made
        return made

    def _transfers(self, classified: list[Classify]) -> Iterator[Compare]:
        """The supplement: protected vectors on plain text, and plain vectors on protected text."""
        if "cnn" not in self._told.model:
            return
        algorithm = self._told.algorithm[0]
        original = self._runs("cnn", ORIGINAL, algorithm, classified)
        for n in [n for n in self._told.n if n != "0"][:1] + [n for n in self._told.n if "-" in n][:1]:
            setting = Setting("neighbours", n, algorithm)
            plain = self._runs("cnn", ORIGINAL, algorithm, classified, start=setting)
            yield Compare(original, plain, (), f"vectors of {setting.label}, plain text", self._told.seed)
            other = self._runs("cnn", setting, algorithm, classified, start=ORIGINAL)
            yield Compare(original, other, (), f"plain vectors, text {setting.label}", self._told.seed)


def minutes(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
