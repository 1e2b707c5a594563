"""Process part files with a `NoteDeidentifier`: each part is a task with the passes of `passes.py`.

If names found in one note are searched for in others, the detectors run on all parts first. The
spans of a part contain no text and are stored as a task result, so an interrupted run does not
repeat the detection. The names go to one store per part in the scratch folder of the vault, and
then to a single store that all workers open. They are sets, so neither the division into parts nor
their order changes the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from clinveil.core import Key, Say, Settings, fingerprint, identity, private_folder, remove, track
from clinveil.corpus import NotesCorpus, Patient, Patients
from clinveil.phi.name_index import NameIndex
from clinveil.phi.name_index_store import NameIndexStore, open_name_index
from clinveil.phi.treatment.deidentifier import NoteDeidentifier, TreatedBatch
from clinveil.phi.treatment.passes import detection_tasks, run_pass, treatment_tasks
from clinveil.scale import Map, Store, each, name_of, perform, serial, shared

SPANS = "spans.bin"
ALL_NAMES = "all.names"


@dataclass(frozen=True)
class DeidentifierRecipe:
    """Recipe from which each worker process builds the de-identifier once; it is small and contains
    no secret.

    Attributes:
        make: module-level function, called with `settings`, the key in the file `key` and
            `patients`.
        dependencies: everything that detection depends on as JSON: the settings, and hashes of the
            files they name.
        commitment: of the key. known: returns the known patients; workers share their memory.
    """

    make: Callable[..., NoteDeidentifier]
    settings: Settings = field(compare=False)
    key: Path = field(compare=False)
    dependencies: str
    commitment: str
    known: Callable[[], Patients] | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        make: Callable[..., NoteDeidentifier],
        settings: Settings,
        words: Sequence[Path],
        key: Path,
    ) -> DeidentifierRecipe:
        """Return the recipe for some settings; `words`: files that their policy names."""
        hashed = [fingerprint(path) for path in words]
        dependencies = json.dumps([identity(settings), hashed], sort_keys=True)
        return cls(make, settings, key, dependencies, Key.load(key).commitment)

    @lru_cache(maxsize=1)  # noqa: B019  one per process
    def __call__(self) -> NoteDeidentifier:
        """Return the de-identifier."""
        return self.make(
            self.settings, Key.load(self.key), patients=self.known() if self.known else None
        )

    def sharing(self, known: Mapping[str, Patient], scratch: Path) -> DeidentifierRecipe:
        """Return a recipe with which workers map the known patients into memory, from a file in the
        scratch folder.
        """
        if not isinstance(known, Patients):
            return self
        return replace(self, known=shared(known, private_folder(scratch) / "patients"))


@dataclass(frozen=True)
class PartTask:
    """Detection in one part, and its treatment.

    Attributes:
        digest: of the part. store: of the spans. scratch: folder of the names, which are needed
            only during the run.
        independent: whether the result for a note does not depend on other notes; then detection is
            part of treatment.
        apart: patients with notes that must not change the treatment of others.
    """

    part: NotesCorpus = field(repr=False)
    digest: str
    recipe: DeidentifierRecipe = field(repr=False)
    store: Store
    scratch: Path
    independent: bool
    apart: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def title(self) -> str:
        """The task as shown to users."""
        return f"{self.part.name} searched"

    @property
    def names(self) -> Path:
        """File of the names found in this part."""
        return self.scratch / f"{name_of(self)}.names"

    @property
    def index(self) -> NameIndex | None:
        """The names of all parts; None if notes are independent."""
        path = self.scratch / ALL_NAMES
        return None if self.independent else open_name_index(path, path.stat().st_mtime_ns)

    def identity(self) -> Mapping[str, Any]:
        """Return the part, and everything that detection depends on."""
        return {
            "part": self.digest,
            "columns": asdict(self.part.columns),
            "recipe": self.recipe.dependencies,
        }

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write the spans; return the number of notes."""
        with (folder / SPANS).open("wb") as file:
            return {"notes": self.collect_names(file, stored=False)}

    def collect_names(self, file: IO[bytes], *, stored: bool) -> int:
        """Write the names; read the spans from the file, or detect them and write them to it.

        Returns the number of notes. Raises InputError if the part has changed since its spans were
        stored.
        """
        finder = self.recipe().finder
        tasks = detection_tasks(self.part, finder, file if stored else None, self.apart)
        count = 0
        with _new_name_store(self.names) as names:
            for result in serial(run_pass, tasks):
                if not stored:
                    result.spans.write(file)
                names.add(result.name_index, result.lower_case)
                count += result.rows
        return count

    def treated(self) -> Iterator[TreatedBatch]:
        """Yield the treated batches of the part, in order. Raises InputError if it has changed
        since detection.
        """
        deidentifier = self.recipe()
        index = self.index
        if index is None:
            yield from serial(run_pass, treatment_tasks(self.part, deidentifier))
            return
        with (self.store.folder(self) / SPANS).open("rb") as file:
            tasks = treatment_tasks(self.part, deidentifier.with_names(index), file)
            yield from serial(run_pass, tasks)


@contextmanager
def _new_name_store(path: Path) -> Iterator[NameIndexStore]:
    """Open a new store that appears at its path only once it is complete."""
    partial_path = path.with_suffix(".half")
    remove(partial_path)
    store = NameIndexStore(partial_path)
    try:
        yield store
    finally:
        store.close()
    partial_path.replace(path)


def _detected(task: PartTask) -> int:
    """Run the detectors on a part, or load the result of an earlier run; return the number of
    notes.
    """
    result = perform(task.store, task)
    if not task.names.exists():
        with (task.store.folder(task) / SPANS).open("rb") as file:
            task.collect_names(file, stored=True)
    return int(result["notes"])


def detect_parts(
    parts: Sequence[tuple[NotesCorpus, str]],
    recipe: DeidentifierRecipe,
    store: Store,
    scratch: Path,
    task_map: Map,
    say: Say,
    uses_other_notes: bool,
    *,
    apart: frozenset[str] = frozenset(),
) -> list[PartTask]:
    """Run the detectors on all parts, if notes depend on other notes; return the tasks in the order
    of the parts.

    Args:
        parts: each with its digest. store: of the spans, which are kept. scratch: folder of the
            names, which are text.
        apart: patients with notes that must not change the treatment of others.

    Raises:
        Incomplete: some parts failed; the spans of the others are kept.
    """
    private_folder(scratch)
    tasks = [
        PartTask(part, digest, recipe, store, scratch, not uses_other_notes, apart)
        for part, digest in parts
    ]
    if not uses_other_notes:
        return tasks
    for _ in track(
        each(task_map, _detected, tasks), "notes searched", say, size=lambda notes: notes
    ):
        """Consumed for the progress display only."""
    with _new_name_store(scratch / ALL_NAMES) as names:
        for task in tasks:
            names.merge(task.names)
            remove(task.names)
    return tasks
