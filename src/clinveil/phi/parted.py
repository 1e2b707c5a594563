"""Part files through a `Deidentifier`, each part a task of its own; the batch functions are those of one file.

Where a name found in one note is looked for in others, every part is looked through first. Its spans, which hold no
text, are kept as a task's result, so that a run that was killed does not look again. What is heard goes to a store in
the scratch folder of the vault, one a part, then one of all, which every worker opens. Sets, so that neither the parts
nor their order change a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from clinveil.core.files import private_folder, remove
from clinveil.core.progress import track
from clinveil.core.types import Say
from clinveil.corpus.open import NotesCorpus
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.finder import Finder
from clinveil.phi.name_index import NameIndex
from clinveil.phi.name_index_store import NameIndexStore, heard_at
from clinveil.phi.passes import Seen, changed, hear_again, look, patients_of, treat_again
from clinveil.phi.remover import Recipe
from clinveil.scale import Map
from clinveil.scale.pieces import each
from clinveil.scale.tasks import Store, name_of, performed

SPANS = "spans.bin"


@dataclass(frozen=True)
class Look:
    """The detectors look through one part.

    Attributes:
        digest: of the part. scratch: where what is heard goes; it need not outlive the run.
    """

    part: NotesCorpus = field(repr=False)
    digest: str
    recipe: Recipe = field(repr=False)
    scratch: Path

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"{self.part.name} looked through"

    @property
    def heard(self) -> Path:
        """The store of what is heard in this part."""
        return self.scratch / f"{name_of(self)}.heard"

    def identity(self) -> Mapping[str, Any]:
        """The part, and all that the detectors depend on."""
        return {"part": self.digest, "columns": asdict(self.part.columns), "recipe": self.recipe.said}

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write the spans; returns how many notes the part has."""
        finder, count = self.recipe().finder, 0
        with _Hearing(self.heard) as hearing, (folder / SPANS).open("wb") as file:
            for batch in self.part.batches():
                looked = look(batch, finder.about(patients_of(batch)))
                looked.seen.write(file)
                hearing.add(looked.heard, looked.lower)
                count += looked.rows
        return {"notes": count}

    def again(self, store: Store) -> None:
        """What is heard, from the spans of an earlier run. Raises InputError if the part is another one."""
        finder = self.recipe().finder
        with _Hearing(self.heard) as hearing, (store.folder(self) / SPANS).open("rb") as file:
            for batch in self.part.batches():
                looked = hear_again(batch, finder.about(patients_of(batch)), Seen.read(file))
                hearing.add(looked.heard, looked.lower)


class _Hearing:
    """A store that is at its place only when it is whole."""

    def __init__(self, place: Path) -> None:
        self._place, self._half = place, place.with_suffix(".half")

    def __enter__(self) -> NameIndexStore:
        remove(self._half)
        self._store = NameIndexStore(self._half)
        return self._store

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store.close()
        if kind is None:
            self._half.replace(self._place)


def _looked(store: Store, work: Look) -> int:
    """Look through a part, or take what was found in it before; how many notes it has."""
    found = performed(store, work)
    if not work.heard.exists():
        work.again(store)
    return int(found["notes"])


@dataclass(frozen=True)
class Treat:
    """One part that is to be treated; `heard` is the store of what all parts say, None where nobody listens."""

    look: Look = field(repr=False)
    root: Path
    heard: Path | None

    def treated(self) -> Iterator[Deidentified]:
        """The batches of the part, treated, in order. Raises InputError where it is not what was looked through."""
        deidentifier, part = self.look.recipe(), self.look.part
        if self.heard is None:
            for batch in part.batches():
                yield deidentifier.with_finder(deidentifier.finder.about(patients_of(batch)))(batch)
            return
        knowing = deidentifier.finder.having(heard_of(self.heard))
        with (Store(self.root).folder(self.look) / SPANS).open("rb") as file:
            for batch in part.batches():
                yield self._one(batch, deidentifier, knowing, Seen.read(file))
            if file.read(1):
                raise changed()

    def _one(self, batch: Any, deidentifier: Deidentifier, knowing: Finder, seen: Seen) -> Deidentified:
        return treat_again(batch, deidentifier.with_finder(knowing.about(patients_of(batch))), seen)


def heard_of(place: Path) -> NameIndex:
    """What a store in the scratch folder holds."""
    return heard_at(place, place.stat().st_mtime_ns)


def look_through(
    parts: Sequence[tuple[NotesCorpus, str]],
    recipe: Recipe,
    store: Store,
    scratch: Path,
    over: Map,
    say: Say,
    listens: Callable[[], bool],
) -> list[Treat]:
    """Have the detectors look through all parts; gives what is to be treated, in their order.

    Args:
        parts: each with its digest. store: of the spans; they are kept. scratch: of what is heard; it is text.
        listens: whether what is found in a note depends on other notes; if not, nothing is done yet.

    Raises:
        Incomplete: some parts are broken; the spans of the others are kept.
    """
    works = [Look(part, digest, recipe, private_folder(scratch)) for part, digest in parts]
    if not listens():
        return [Treat(work, store.root, None) for work in works]
    found = each(over, partial(_looked, store), works)
    for _ in track(found, "notes looked through", say, size=lambda notes: notes):
        """Only counted."""
    place = scratch / "all.heard"
    with _Hearing(place) as hearing:
        for work in works:
            hearing.merge(work.heard)
            remove(work.heard)
    return [Treat(work, store.root, place) for work in works]
