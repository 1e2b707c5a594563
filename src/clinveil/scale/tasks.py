"""Tasks of a study: named by the hash of all that they depend on, done once, and taken up again after a kill.

A task's folder holds what it made, `result.json` and, written last, `done`, which lists them. A folder without `done`
was cut off: it is removed and the task starts over. So the same command run again goes on where the last one stopped.
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
from clinveil.core.files import files_in, owner_only, private_folder, private_text, read_json, refuse_more, remove
from clinveil.core.runfolder import LOCK, Kind, code_version, run_folder
from clinveil.scale.local import Map

Result = dict[str, Any]
MARK = "SECRET.txt"
SECRET = """SECRET: all of this folder. It must not leave.

tasks/ holds the notes as they were treated, what was trained on them (word vectors or language models), what models
say of them or wrote, and the truth that attacks are judged by. Tables, figures, page and findings are made from it and
tell how well the attacks work on these very notes; some of them show a note.
"""


class Work(Protocol):
    """One task: it can be sent to another process, and says all that its result depends on."""

    @property
    def title(self) -> str:
        """What it does, for people."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """All that the result depends on, ready for JSON; of another task its name."""
        ...

    def __call__(self, folder: Path, store: Store) -> Result:
        """Do it: files go to the folder, what is returned (ready for JSON) to `result.json`."""
        ...


def name_of(work: Work) -> str:
    """The hash of a task's kind, its inputs and our code: 32 hex digits."""
    said = json.dumps([code_version(), type(work).__name__, work.identity()], sort_keys=True, allow_nan=False)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Store:
    """The folder of all tasks."""

    root: Path

    def folder(self, work: Work) -> Path:
        """Where a task's files lie."""
        return self.root / name_of(work)

    def done(self, work: Work) -> bool:
        """Whether the task came to its end."""
        return (self.folder(work) / "done").exists()

    def result(self, work: Work) -> Result:
        """What a finished task returned. Raises InputError if it is not there, or not readable."""
        try:
            found: Result = json.loads((self.folder(work) / "result.json").read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError):
            hint = "remove the folder of this task, and run the same command again"
            raise InputError("has no readable result", where=name_of(work), hint=hint) from None


def perform(store: Store, work: Work) -> str:
    """Do a task unless it is done; return its name. Linear algebra gets one thread, so that no bit depends on them."""
    from threadpoolctl import threadpool_limits

    if store.done(work):
        return name_of(work)
    folder = store.folder(work)
    remove(folder)
    with owner_only(), threadpool_limits(1):
        result = work(private_folder(folder), store)
    private_text(folder / "result.json", json.dumps(result, allow_nan=False, ensure_ascii=False))
    private_text(folder / "done", json.dumps(sorted(files_in(folder))))
    return name_of(work)


def performed(store: Store, work: Work) -> Result:
    """`perform`; what the task returned."""
    perform(store, work)
    return store.result(work)


def perform_all(store: Store, works: Sequence[Work], over: Map, say: Callable[[str], None]) -> None:
    """Do those of some tasks that are not done, by a map; the tasks must not need one another."""
    waiting = [work for work in works if not store.done(work)]
    for number, (work, _) in enumerate(zip(waiting, over(partial(perform, store), waiting), strict=True), 1):
        say(f"{number} of {len(waiting)}: {work.title}")


def _a_study(out: Path) -> bool:
    """Whether a run of ours may work there; other commands mark their secrets by the same name."""
    try:
        ours = (out / MARK).read_text(encoding="utf-8").startswith(SECRET.partition("\n")[0])
        names = {path.name for path in out.iterdir()}
    except (OSError, ValueError):
        return False
    return ours and ("tasks" in names or names <= {MARK, LOCK})


def _refuse_no_tasks(out: Path) -> None:
    """Raise UsageError for anything between the tasks that no task is, and in a finished one that it did not make."""
    names = {item.name for item in (out / "tasks").iterdir()} if (out / "tasks").is_dir() else set()
    refuse_more(out, names, filter(re.compile("[0-9a-f]{32}").fullmatch, names))
    for done in (out / "tasks").glob("*/done"):
        listed = read_json(done)
        made = map(str, listed) if isinstance(listed, list) else ()
        refuse_more(done.parent, files_in(done.parent), {"done", *made})


@contextmanager
def study_folder(out: Path, *, force: bool = False, secret: str = SECRET) -> Iterator[Store]:
    """Open DIR for one run at a time: made new, or that of an earlier run of a study.

    Args:
        out: the folder; it becomes its owner's only.
        force: start over: the tasks of an earlier study are removed, and nothing else.
        secret: what `SECRET.txt` says of the folder.

    Raises:
        UsageError: something else is there or among the tasks, or another run is at work in it.
    """
    with run_folder(out, Kind("study's", notes={MARK: secret}, known=_a_study)):
        if force:
            _refuse_no_tasks(out)
            remove(out / "tasks")
        yield Store(private_folder(out / "tasks"))
