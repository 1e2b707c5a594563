"""What removes the identifiers of a run, as its settings ask; workers make it from a recipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from clinveil.core.errors import UsageError
from clinveil.core.keys import Key
from clinveil.core.runfolder import FREE, fingerprint
from clinveil.core.settings import Settings
from clinveil.corpus.people import read_patients
from clinveil.phi.decisions import Decisions
from clinveil.phi.deidentifier import Deidentifier
from clinveil.phi.partial_removal import EmulatedRemover
from clinveil.phi.settings import DeidentifySettings


def remover_of(settings: DeidentifySettings, key: Key, decisions: Decisions | None) -> Deidentifier | EmulatedRemover:
    """What the settings ask for. Raises UsageError for an emulated one without known patients."""
    how = settings.identifiers
    patients = read_patients(how.patients) if how.patients else None
    if settings.miss_rate is None:
        return Deidentifier.of(how, key, patients=patients, keep_spans=settings.spans, revise=decisions)
    if patients is None:
        raise UsageError("--miss-rate needs the names that it is about", hint="--patients patients.parquet")
    return EmulatedRemover(key, patients, settings.miss_rate, how.mode, keep_spans=settings.spans)


def deidentifier_of(settings: DeidentifySettings, remover: Deidentifier | EmulatedRemover) -> Deidentifier:
    """What treats the notes, with what it is to record of them."""
    made = remover if isinstance(remover, Deidentifier) else remover.deidentifier
    return made.recording(audit=settings.audit == "full", crosswalk=settings.crosswalk)


def of_settings(settings: DeidentifySettings, key: Key) -> Deidentifier:
    """As a worker makes it."""
    decisions = Decisions.read(*settings.decisions) if settings.decisions else None
    return deidentifier_of(settings, remover_of(settings, key, decisions))


@dataclass(frozen=True)
class Recipe:
    """How a worker makes the de-identifier of a run, once a process: little is sent, and nothing secret.

    Attributes:
        make: a function of a module. settings: what it is given, with the key of the file `key`.
        said: all that what the detectors find depends on: settings, and the bytes of the files that they name.
        commitment: of the key.
    """

    make: Callable[..., Deidentifier]
    settings: Settings
    key: Path
    dependencies: str
    commitment: str

    @classmethod
    def of(cls, make: Callable[..., Deidentifier], settings: Settings, key: Path) -> Recipe:
        """The recipe of some settings."""
        told = settings.flat(FREE)
        files = {name: fingerprint(place) for name, place in _files(settings)}
        said = json.dumps([told, files], sort_keys=True)
        return cls(make, settings, key, said, Key.load(key).commitment)

    def __call__(self) -> Deidentifier:
        """The de-identifier."""
        return _made(_Known(self))


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """The files and folders that settings name, by the names of the settings."""
    kinds, told = settings.flags(), settings.flat()
    for name in sorted(kinds):
        value = told.get(name)
        values = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        if "Path" in str(kinds[name].annotation) or name == "also":
            yield from ((f"{name} {at}", Path(one.partition(":")[2] or one)) for at, one in enumerate(values))


class _Known:
    """A recipe, known by what it says."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self._said = recipe, (recipe.make, recipe.dependencies, recipe.commitment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)


@lru_cache(maxsize=1)
def _made(known: _Known) -> Deidentifier:
    return known.recipe.make(known.recipe.settings, Key.load(known.recipe.key))
