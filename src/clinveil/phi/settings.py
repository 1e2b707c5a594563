"""What the de-identifier can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group


class PhiSettings(Settings):
    """What is done with the identifiers that the detectors find."""

    patients: Path | None = flag(None, "Known patients (patients.parquet): names, record numbers, phones, …")
    mode: Literal["remove", "replace", "tag"] = flag("replace", "Remove PHI, replace it by surrogates, or tag it.")


class DeidentifySettings(Settings):
    """Everything that `clinveil deidentify` can be told."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    spans: bool = flag(
        False, "Also write spans.jsonl (what was found, with its text) to the vault: for clinveil review."
    )
    decisions: tuple[Path, ...] = flag((), "What a reviewer decided on these notes (clinveil review); repeatable.")
    miss_rate: float | None = flag(
        None,
        "Emulate a remover (paper B): only --patients' own names go, those of this share of them stay.",
        ge=0,
        le=1,
    )
