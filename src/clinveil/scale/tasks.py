"""Tasks of a study: named by a hash of their inputs, run once, and resumed after an interruption.

A task's folder contains its output, `result.json` and finally `done`, which lists the files. A
folder without `done`
was interrupted: it is removed and the task starts over. Running the same command again therefore
resumes the study.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from clinveil.core.errors import InputError
from clinveil.core.files import (
    files_in,
    owner_only,
    private_folder,
    private_text,
    read_json,
    refuse_more,
    remove,
)
from clinveil.core.runfolder import FolderKind, code_version, run_folder
from clinveil.scale.local import Map

Result = dict[str, Any]
MARK = "SECRET.txt"
SECRET = """SECRET: all of this folder. It must not leave.

tasks/ contains the treated notes, the word vectors or language models trained on them, the models'
predictions or generated text, and the ground truth of the attacks. Tables, figures, page and
findings are derived from it and report how well the attacks work on these notes; some of them show
a note.
"""


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


def name_of(work: StoredTask) -> str:
    """Return the hash of a task's class, its inputs and our code: 32 hex digits."""
    identity = json.dumps(
        [code_version(), type(work).__name__, work.identity()], sort_keys=True, allow_nan=False
    )
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Store:
    """The folder of all tasks."""

    root: Path

    def folder(self, work: StoredTask) -> Path:
        """Return the folder of a task."""
        return self.root / name_of(work)

    def done(self, work: StoredTask) -> bool:
        """Return whether the task is finished."""
        return (self.folder(work) / "done").exists()

    def result(self, work: StoredTask) -> Result:
        """Return the result of a finished task. Raises InputError if it is missing or
        unreadable.
        """
        try:
            result: Result = json.loads(
                (self.folder(work) / "result.json").read_text(encoding="utf-8")
            )
            return result
        except (OSError, ValueError):
            hint = "remove the folder of this task and run the same command again"
            raise InputError(
                "the task has no readable result", where=name_of(work), hint=hint
            ) from None


def perform(store: Store, work: StoredTask) -> Result:
    """Run a task unless it is done; return its result. Linear algebra uses one thread, for
    reproducible bits.
    """
    from threadpoolctl import threadpool_limits

    if not store.done(work):
        folder = store.folder(work)
        remove(folder)
        with owner_only(), threadpool_limits(1):
            result = work(private_folder(folder), store)
        private_text(
            folder / "result.json", json.dumps(result, allow_nan=False, ensure_ascii=False)
        )
        private_text(folder / "done", json.dumps(sorted(files_in(folder))))
    return store.result(work)


def perform_all(
    store: Store, works: Sequence[StoredTask], over: Map, say: Callable[[str], None]
) -> None:
    """Run the unfinished ones of some independent tasks with a map."""
    waiting = [work for work in works if not store.done(work)]
    for number, (work, _) in enumerate(
        zip(waiting, over(partial(perform, store), waiting), strict=True), 1
    ):
        say(f"{number} of {len(waiting)}: {work.title}")


def _refuse_no_tasks(out: Path) -> None:
    """Raise UsageError for foreign files among the tasks or in the folder of a finished task."""
    names = {item.name for item in (out / "tasks").iterdir()} if (out / "tasks").is_dir() else set()
    refuse_more(out, names, filter(re.compile("[0-9a-f]{32}").fullmatch, names))
    for done in (out / "tasks").glob("*/done"):
        listed = read_json(done)
        own = map(str, listed) if isinstance(listed, list) else ()
        refuse_more(done.parent, files_in(done.parent), {"done", *own})


@contextmanager
def study_folder(out: Path, *, force: bool = False, secret: str = SECRET) -> Iterator[Store]:
    """Open a new or existing study folder for one run at a time.

    Args:
        out: the folder; it becomes private.
        force: start over: remove the tasks of an earlier study, and nothing else.
        secret: the text of `SECRET.txt`.

    Raises:
        UsageError: the folder is not a study's, contains foreign files, or is in use by another
            run.
    """
    kind = FolderKind(
        "study folder",
        notes={MARK: secret},
        known=lambda ours, rest: ours and (not rest or "tasks" in rest),
    )
    with run_folder(out, kind):
        if force:
            _refuse_no_tasks(out)
            remove(out / "tasks")
        yield Store(private_folder(out / "tasks"))
