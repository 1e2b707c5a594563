"""The main verbs: each takes notes of any kind; with `out` it writes what the command of its name writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.api.frames import Notes, given
from clinveil.api.transformers import Deidentifier, Obfuscator, scratch
from clinveil.core.settings import NotesSettings, load_settings
from clinveil.vectors.settings import VectorSettings

if TYPE_CHECKING:
    from clinveil.core.keys import Key
    from clinveil.corpus.people import Patient
    from clinveil.vectors.table import Vectors

_OF_NOTES = frozenset({"label", "keep", *NotesSettings.model_fields})


def deidentify(
    notes: Notes,
    *,
    mode: str = "replace",
    patients: Mapping[str, Patient] | str | Path | None = None,
    key: Key | None = None,
    **columns: Any,
) -> Any:
    """Replace, remove or tag the identifiers that are found in notes; the same kind of notes comes back.

    Args:
        mode, patients, key: as in `Deidentifier`.
        columns: `text`, `id`, `patient`, `keep`, …: which columns of a frame are what.

    Raises InputError for notes that do not fit, UsageError for an unknown mode or option.

    >>> import clinveil
    >>> clinveil.deidentify(["Phone 617-555-0123."], mode="tag")
    ['Phone [PHONE].']
    """
    return Deidentifier(mode, patients=patients, key=key, columns=columns).fit().transform(notes)  # type: ignore[arg-type]


def obfuscate(
    notes: Notes,
    *,
    n: str | int = "3-14",
    memo: str = "patient",
    vectors: Vectors | str | Path | None = None,
    key: Key | None = None,
    seed: int = 1,
    workers: int = 1,
    **options: Any,
) -> Any:
    """Replace every word of notes by a random near neighbour (paper A); the same kind of notes comes back.

    Args:
        n, memo, vectors, key, seed, workers: as in `Obfuscator`, whose channel `fit` keeps; this forgets it.
        options: columns of a frame (`text`, `id`, `patient`, `keep`, …) and settings of vectors and channel.

    Raises InputError for notes that do not fit, UsageError for unknown options.
    """
    columns, settings = _parted(options)
    how = {"vectors": vectors, "key": key, "seed": seed, "workers": workers, "columns": columns, "settings": settings}
    made = Obfuscator(n, memo=memo, **how)  # type: ignore[arg-type]
    return made.fit(notes).transform(notes)


def embed(notes: Notes, *, seed: int = 1, workers: int = 1, **options: Any) -> Vectors:
    """Train word vectors on notes; with one worker a seed gives the same bits.

    Args:
        options: columns of a frame, and fields of `VectorSettings` (algorithm, dim, window, epochs, …).

    Raises InputError for notes that do not fit, UsageError for unknown options.
    """
    from clinveil.vectors.train import train

    columns, settings = _parted(options)
    how = load_settings(VectorSettings, settings)
    with scratch() as folder:
        return train(given(notes, **columns).corpus, how, seed=seed, workers=workers, scratch=folder)


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options that say which columns are what, and all others."""
    columns = {name: value for name, value in options.items() if name in _OF_NOTES}
    return columns, {name: value for name, value in options.items() if name not in columns}
