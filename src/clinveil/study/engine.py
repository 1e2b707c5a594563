"""The engine of all studies: tasks with content-based names, the order of their stages, and
collected results.

A study consists of tasks, tables, and `paper.toml` with texts and the printed numbers of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, model_validator

from clinveil.core.finding import Finding
from clinveil.core.settings import FORCE, QUIET, WORKERS, NotesSettings, Settings, flag, group
from clinveil.core.types import Say
from clinveil.scale import Map
from clinveil.scale.executor import ExecutorSettings
from clinveil.scale.tasks import Result, Store, name_of, perform_all

if TYPE_CHECKING:
    from clinveil.study.tables import Table


class CommonSettings(Settings):
    """Settings of all studies; `PROFILES` has the defaults of each size."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    executor: ExecutorSettings = group(ExecutorSettings)
    quiet: bool = QUIET
    force: bool = FORCE
    size: Literal["tiny", "small", "paper"] = flag("small", "Profile that sets the defaults.")
    seed: int = flag(1, "Public seed of samples, splits, training and draws.", ge=0, le=2**63 - 1)

    @model_validator(mode="before")
    @classmethod
    def _profile(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        size = values.get("size", cls.model_fields["size"].default)
        return {**cls.PROFILES.get(size, {}), **values}

    def for_page(self) -> dict[str, str]:
        """Return the settings that affect the results, for the page, without paths and column
        names.
        """
        hidden = {"notes", "label", "workers", "quiet", "force", "executor"}
        texts: dict[str, str] = {}
        for name, value in self:
            parts = value if isinstance(value, tuple) else ("default" if value is None else value,)
            if name not in hidden and not any(isinstance(part, Path) for part in parts):
                texts[name.replace("_", " ")] = ", ".join(map(str, parts)) or "none"
        return texts


def choices(values: tuple[str, ...], known: Sequence[str]) -> tuple[str, ...]:
    """Return the given names in the order of the known ones. Raises ValueError for none or for
    unknown names.
    """
    if not values or set(values) - set(known):
        raise ValueError("must be one or several of " + ", ".join(known))
    return tuple(name for name in known if name in values)


class Task:
    """One step of a study: a frozen dataclass that is called once, with a folder and the store.

    Its name is a hash of its fields, so a change of any input changes the name; fields with
    `compare=False` (such as paths) are not part of it. `name_of` adds the version of the code.
    Tasks of one `stage` are independent; `template` is the title, with fields in braces.
    """

    stage: ClassVar[str] = ""
    template: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """Description for messages: `template` filled with the fields."""
        return self.template.format(**vars(self))

    def needs(self) -> Iterator[Task]:
        """Yield the tasks among its fields."""
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            yield from (
                each
                for each in (value if isinstance(value, tuple) else (value,))
                if isinstance(each, Task)
            )

    def identity(self) -> dict[str, Any]:
        """Return everything that the result depends on, ready for JSON."""
        return _identity(self)

    def __call__(self, folder: Any, store: Store) -> Result:
        """Run the task: write files to the folder, and return the content of `result.json`."""
        raise NotImplementedError


def _identity(value: Any) -> dict[str, Any]:
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value) if item.compare}


def _plain(value: Any) -> Any:
    """Return a field for JSON; a task becomes its name."""
    if hasattr(value, "identity"):
        return name_of(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return _identity(value)
    if isinstance(value, Path):
        raise TypeError("a task is named by the content of a file, not by its path: use a File")
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def found(findings: Sequence[Finding], **more: Any) -> Result:
    """Return the result of a task with findings, with entries added to their details."""
    return {"findings": [labelled(finding, **more).as_dict() for finding in findings]}


def labelled(finding: Finding, **more: Any) -> Finding:
    """Return a finding with entries added to its detail."""
    return replace(finding, detail={**finding.detail, **more})


def findings_of(result: Mapping[str, Any]) -> list[Finding]:
    """Return the findings of a task's result."""
    return [Finding.from_dict(item) for item in result.get("findings", ())]


@dataclass(frozen=True)
class Results:
    """Results of a study.

    Attributes:
        settings: settings of the study. findings: all numbers, identified by measure and detail.
        facts: other results: counts of the notes, an example, reasons for missing models.
        files: additional files of the study's folder, by name. tables: the tables.
    """

    settings: Any
    findings: tuple[Finding, ...] = field(repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    tables: tuple[Table, ...] = field(default=(), repr=False)

    @cached_property
    def _by_measure(self) -> dict[str, list[Finding]]:
        by_measure: dict[str, list[Finding]] = {}
        for finding in self.findings:
            by_measure.setdefault(finding.measure, []).append(finding)
        return by_measure

    def all(self, measure: str, **detail: Any) -> list[Finding]:
        """Return the findings of a measure with these details; "" matches a missing detail."""
        rows = self._by_measure.get(measure, [])
        return [
            f
            for f in rows
            if all(f.detail.get(name, "") == value for name, value in detail.items())
        ]

    def of(self, measure: str, **detail: Any) -> Finding | None:
        """Return the first finding of a measure with these details, or None."""
        return next(iter(self.all(measure, **detail)), None)


def stages(wanted: Iterable[Task]) -> dict[str, list[Task]]:
    """Return tasks and all tasks that they need by stage, in order; tasks of one stage are
    independent.
    """
    tasks: dict[str, list[Task]] = {}
    after: dict[str, set[str]] = {}
    known: set[Task] = set()

    def add(task: Task) -> None:
        if task in known:
            return
        known.add(task)
        for need in task.needs():
            add(need)
            after.setdefault(task.stage, set()).add(need.stage)
        after.setdefault(task.stage, set())
        tasks.setdefault(task.stage, []).append(task)

    for task in wanted:
        add(task)
    return {stage: tasks[stage] for stage in TopologicalSorter(after).static_order()}


@dataclass(frozen=True)
class Bench:
    """Environment of a study: the store of its tasks, the map that runs them, and the receiver of
    messages.
    """

    store: Store
    over: Map
    say: Say

    def _say(self, name: str, line: str) -> None:
        self.say(f"{name} {line}")

    def do(self, wanted: Iterable[Task]) -> None:
        """Run all unfinished tasks; their numbers are reported before the first one."""
        by_stage = stages(wanted)
        for name, tasks in by_stage.items():
            if left := sum(not self.store.done(task) for task in tasks):
                self.say(f"{name}: {left} of {len(tasks)} tasks to do")
        for name, tasks in by_stage.items():
            perform_all(self.store, tasks, self.over, partial(self._say, name))
