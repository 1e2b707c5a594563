"""The engine of all studies: tasks that name themselves, a plan of hours, and one way from finished tasks to findings.

A paper is its tasks, its tables and claims, and `paper.toml` with its words and printed numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, model_validator

from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import FORCE, QUIET, WORKERS, NotesSettings, Settings, flag, group
from clinveil.core.types import Say
from clinveil.scale import Map
from clinveil.scale.executor import ADDRESS, ON, opened_for
from clinveil.scale.tasks import Result, Store, Work, name_of, perform_all

if TYPE_CHECKING:
    from clinveil.study.tables import Table

LIMIT_HOURS = 2.0  # a longer plan is started with --yes only
AHEAD = 1_000  # all tasks of a stage: they are few, and of very unlike length


class StudySettings(Settings):
    """What every study can be told. A study's `PROFILES` hold what a size sets that is not given otherwise."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    on: str = ON
    address: str | None = ADDRESS
    quiet: bool = QUIET
    force: bool = FORCE
    size: Literal["tiny", "small", "paper"] = flag("small", "Profile: what is not given otherwise comes from it.")
    seed: int = flag(1, "Public seed of samples, splits, training and all draws: not for release.", ge=0, le=2**63 - 1)

    @model_validator(mode="before")
    @classmethod
    def _profile(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        size = values.get("size", cls.model_fields["size"].default)
        old = {"on": "local"} if values.get("on") == "processes" else {}  # its name in older files
        return {**cls.PROFILES.get(size, {}), **values, **old}

    def told(self) -> dict[str, str]:
        """The settings that shape the numbers, for the page: no path, no column name."""
        hidden = {"notes", "label", "workers", "quiet", "force", "on", "address", "yes"}
        values = {name: value for name, value in self if name not in hidden and not _is_path(value)}
        return {name.replace("_", " "): _told(value) for name, value in values.items()}


def _is_path(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, tuple) and any(map(_is_path, value)))


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none given"
    return "the default" if value is None else str(value)


def choices(values: tuple[str, ...], known: Sequence[str]) -> tuple[str, ...]:
    """Some of the known names, in their order. Raises ValueError for none, and for others."""
    if not values or set(values) - set(known):
        raise ValueError("one or several of " + ", ".join(known))
    return tuple(name for name in known if name in values)


class Task:
    """One step of a study, a frozen dataclass that is called with a folder and the store, and done once.

    Its identity is its fields, so that nothing which changes its result can be forgotten; a field with `compare=False`
    (where a file lies, how many words it has) names nothing. The code's version is added by `name_of`. Tasks of one
    `stage` do not need one another; `says` is its title, with fields in braces.
    """

    stage: ClassVar[str] = ""
    says: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """What it does, for people: `says`, its braces filled by the fields."""
        return self.says.format(**vars(self))

    def needs(self) -> Iterator[Task]:
        """The tasks among its fields."""
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Task))

    def identity(self) -> dict[str, Any]:
        """All that the result depends on, ready for JSON."""
        return _identity(self)

    def seconds(self, millions: float) -> float:
        """Roughly how long it takes on one busy core, for so many million words."""
        return 6.0

    def __call__(self, folder: Any, store: Store) -> Result:
        """Do it: files go to the folder, what is returned to `result.json`."""
        raise NotImplementedError


def _identity(value: Any) -> dict[str, Any]:
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value) if item.compare}


def _plain(value: Any) -> Any:
    """A field for JSON: of a task its name."""
    if hasattr(value, "identity"):
        return name_of(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return _identity(value)
    if isinstance(value, Path):
        raise TypeError("a task is named by what a file holds, not by where it lies: use a File")
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _add(tasks: Iterable[Task], known: dict[Task, None]) -> None:
    """Add tasks, each after those that it needs."""
    for task in tasks:
        if task not in known:
            _add(task.needs(), known)
            known[task] = None


def found(findings: Sequence[Finding], **more: Any) -> Result:
    """What a task returns that has findings, each with more in its detail."""
    return {"findings": [labelled(finding, **more).as_dict() for finding in findings]}


def labelled(finding: Finding, **more: Any) -> Finding:
    """A finding with more in its detail."""
    return replace(finding, detail={**finding.detail, **more})


def findings_of(result: Mapping[str, Any], part: str = "findings") -> list[Finding]:
    """The findings that a task returned."""
    return [Finding.from_dict(item) for item in result.get(part, ())]


@dataclass(frozen=True)
class Results:
    """All that a study found.

    Attributes:
        settings: what it was told. findings: every number, told apart by measure and detail.
        facts: what is no finding: counts of the notes, an example, why a model is missing.
        files: further files of the study's folder, by name. tables: what is made of all this.
    """

    settings: Any
    findings: tuple[Finding, ...] = field(repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    tables: tuple[Table, ...] = field(default=(), repr=False)

    @cached_property
    def _by_measure(self) -> dict[str, list[Finding]]:
        made: dict[str, list[Finding]] = {}
        for finding in self.findings:
            made.setdefault(finding.measure, []).append(finding)
        return made

    def all(self, measure: str, **detail: Any) -> list[Finding]:
        """The findings of a measure with these details; "" is a detail that is not there."""
        rows = self._by_measure.get(measure, [])
        return [f for f in rows if all(f.detail.get(name, "") == value for name, value in detail.items())]

    def of(self, measure: str, **detail: Any) -> Finding | None:
        """The first of them."""
        return next(iter(self.all(measure, **detail)), None)


@dataclass(frozen=True)
class Plan:
    """The tasks that are wanted and, by their fields, all that these need.

    Attributes:
        words: of the notes, for how long things take.
    """

    wanted: tuple[Task, ...]
    words: int

    @cached_property
    def stages(self) -> dict[str, list[Task]]:
        """All tasks by stage: those of one stage do not need one another. The longest come first."""
        found: dict[str, list[Task]] = {}
        after: dict[str, set[str]] = {}
        known: dict[Task, None] = {}
        _add(self.wanted, known)
        for task in known:
            found.setdefault(task.stage, []).append(task)
            after.setdefault(task.stage, set()).update(need.stage for need in task.needs())
        order = TopologicalSorter(after).static_order()
        return {stage: sorted(found[stage], key=lambda task: -self.seconds(task)) for stage in order}

    def seconds(self, task: Task) -> float:
        """Roughly how long a task takes on one busy core."""
        return task.seconds(self.words / 1e6)

    def hours(self, store: Store, workers: int) -> float:
        """Roughly how long what is not done takes."""
        return sum(self._stage(tasks, store, workers) for tasks in self.stages.values()) / 3600

    def lines(self, store: Store, workers: int) -> Iterator[str]:
        """The plan for people: stage, tasks, how many are done, and time left."""
        for name, tasks in self.stages.items():
            done = sum(map(store.done, tasks))
            left = f"about {minutes(self._stage(tasks, store, workers))}" if done < len(tasks) else "nothing to do"
            yield f"{name}: {len(tasks)} tasks, {done} done; {left}"
        total = minutes(3600 * self.hours(store, workers))
        yield f"in all about {total} with {workers} workers (a guess, good to a factor of two or three)"

    def _stage(self, tasks: Sequence[Task], store: Store, workers: int) -> float:
        times = [self.seconds(task) for task in tasks if not store.done(task)]
        return max([sum(times) / workers, *times]) if times else 0.0


@dataclass(frozen=True)
class Bench:
    """Where a study works: the store of its tasks, what spreads them, and who is told."""

    store: Store
    over: Map
    say: Say

    def stage(self, name: str, tasks: Sequence[Work]) -> None:
        """Do those of some tasks that are not done; they must not need one another."""
        perform_all(self.store, tasks, self.over, lambda line: self.say(f"{name} {line}"))

    def do_if_short(self, plan: Plan, settings: Any) -> None:
        """Say the plan, and do it. Raises UsageError for a long one without `yes`."""
        for line in plan.lines(self.store, settings.workers):
            self.say(line)
        hours = plan.hours(self.store, settings.workers)
        if hours > LIMIT_HOURS and not settings.yes:
            raise UsageError(f"this is planned to take about {hours:.0f} hours", hint="--yes starts it")
        self.do(plan)

    def do(self, plan: Plan) -> None:
        """Do all that is not done."""
        for name, tasks in plan.stages.items():
            self.stage(name, tasks)


def map_of(settings: StudySettings) -> AbstractContextManager[Map]:
    """What runs the tasks. Raises MissingExtra for an executor that is not installed."""
    return opened_for(settings, ahead=AHEAD)


def minutes(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
