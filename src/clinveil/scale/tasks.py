"""Tasks with stored results: named by a hash of their inputs, run once, and resumed after an
interruption.

A task's folder contains its output, `result.json` and finally `done`, which lists the files. A
folder without `done` was interrupted: it is removed and the task starts over. Running the same
command again therefore resumes the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from clinveil.core import (
    InputError,
    code_version,
    files_in,
    owner_only,
    private_folder,
    private_text,
    remove,
)
from clinveil.scale.local import Map

Result = dict[str, Any]


class StoredTask(Protocol):
    """One task: it can be sent to another process, and lists everything that its result depends
    on.
    """

    @property
    def title(self) -> str:
        """A description of the task."""

    def identity(self) -> Mapping[str, Any]:
        """Return everything that the result depends on, JSON-serialisable; for another task its
        name.
        """

    def __call__(self, folder: Path, store: Store) -> Result:
        """Run the task: write files to the folder; the JSON-serialisable return value goes to
        `result.json`.
        """


def name_of(task: StoredTask) -> str:
    """Return the hash of a task's class, its inputs and our code: 32 hex digits."""
    identity = json.dumps(
        [code_version(), type(task).__name__, task.identity()], sort_keys=True, allow_nan=False
    )
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Store:
    """The folder of all tasks."""

    root: Path

    def folder(self, task: StoredTask) -> Path:
        """Return the folder of a task."""
        return self.root / name_of(task)

    def done(self, task: StoredTask) -> bool:
        """Return whether the task is finished."""
        return (self.folder(task) / "done").exists()

    def result(self, task: StoredTask) -> Result:
        """Return the result of a finished task. Raises InputError if it is missing or
        unreadable.
        """
        try:
            result: Result = json.loads(
                (self.folder(task) / "result.json").read_text(encoding="utf-8")
            )
            return result
        except (OSError, ValueError):
            hint = "remove the folder of this task and run the same command again"
            raise InputError(
                "the task has no readable result", where=name_of(task), hint=hint
            ) from None


def perform(store: Store, task: StoredTask) -> Result:
    """Run a task unless it is done; return its result. Linear algebra uses one thread, for
    reproducible bits.
    """
    from threadpoolctl import threadpool_limits

    if not store.done(task):
        folder = store.folder(task)
        remove(folder)
        with owner_only(), threadpool_limits(1):
            result = task(private_folder(folder), store)
        private_text(
            folder / "result.json", json.dumps(result, allow_nan=False, ensure_ascii=False)
        )
        private_text(folder / "done", json.dumps(sorted(files_in(folder))))
    return store.result(task)


def perform_all(
    store: Store, tasks: Sequence[StoredTask], executor: Map, say: Callable[[str], None]
) -> None:
    """Run the unfinished ones of some independent tasks with a map."""
    waiting = [task for task in tasks if not store.done(task)]
    for number, (task, _) in enumerate(
        zip(waiting, executor(partial(perform, store), waiting), strict=True), 1
    ):
        say(f"{number} of {len(waiting)}: {task.title}")
