"""Construction of the de-identifier of a run from its settings, in the main process and in workers."""

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
from clinveil.phi.review.decisions import Decisions
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.partial_removal import EmulatedRemover


def remover_of(settings: DeidentifySettings, key: Key, decisions: Decisions | None) -> Deidentifier | EmulatedRemover:
    """Return the remover for some settings. Raises UsageError for `miss_rate` without known patients."""
    phi = settings.identifiers
    patients = read_patients(phi.patients) if phi.patients else None
    if settings.miss_rate is None:
        return Deidentifier.of(phi, key, patients=patients, keep_spans=settings.spans, revise=decisions)
    if patients is None:
        raise UsageError("--miss-rate needs known patients", hint="pass --patients patients.parquet")
    return EmulatedRemover(key, patients, settings.miss_rate, phi.mode, keep_spans=settings.spans)


def deidentifier_of(settings: DeidentifySettings, remover: Deidentifier | EmulatedRemover) -> Deidentifier:
    """Return the de-identifier of a remover, with the records that the settings request."""
    deidentifier = remover if isinstance(remover, Deidentifier) else remover.deidentifier
    return deidentifier.recording(audit=settings.audit == "full", crosswalk=settings.crosswalk)


def of_settings(settings: DeidentifySettings, key: Key) -> Deidentifier:
    """Return the de-identifier for some settings, as a worker builds it."""
    decisions = Decisions.read(*settings.decisions) if settings.decisions else None
    return deidentifier_of(settings, remover_of(settings, key, decisions))


@dataclass(frozen=True)
class Recipe:
    """Recipe from which each worker process builds the de-identifier once; it is small and contains no secret.

    Attributes:
        make: module-level function, called with `settings` and the key in the file `key`.
        dependencies: everything that detection depends on as JSON: the settings, and hashes of the files they name.
        commitment: of the key.
    """

    make: Callable[..., Deidentifier]
    settings: Settings
    key: Path
    dependencies: str
    commitment: str

    @classmethod
    def of(cls, make: Callable[..., Deidentifier], settings: Settings, key: Path) -> Recipe:
        """Return the recipe for some settings."""
        files = {name: fingerprint(path) for name, path in _files(settings)}
        dependencies = json.dumps([settings.flat(FREE), files], sort_keys=True)
        return cls(make, settings, key, dependencies, Key.load(key).commitment)

    def __call__(self) -> Deidentifier:
        """Return the de-identifier."""
        return _built(_CacheKey(self))


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield the files and folders that settings refer to, with the names of the settings."""
    fields, flat = settings.flags(), settings.flat()
    for name in sorted(fields):
        value = flat.get(name)
        values = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        if "Path" in str(fields[name].annotation) or name == "also":
            yield from ((f"{name} {n}", Path(item.partition(":")[2] or item)) for n, item in enumerate(values))


class _CacheKey:
    """Recipe that compares equal to another one with the same dependencies."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self._values = recipe, (recipe.make, recipe.dependencies, recipe.commitment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CacheKey) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)


@lru_cache(maxsize=1)
def _built(key: _CacheKey) -> Deidentifier:
    return key.recipe.make(key.recipe.settings, Key.load(key.recipe.key))
