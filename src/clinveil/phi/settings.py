"""What the de-identifier can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group


class PhiSettings(Settings):
    """What is done with the identifiers that the detectors find."""

    patients: Path | None = flag(None, "Known patients (patients.parquet): names, record numbers, phones, …")
    find: Literal["union", "vote", "recall-first"] = flag(
        "union",
        "Which finds count: all; those that one detector is sure of or --votes of them agree on; or all, and every word"
        " beside that is no common or clinical one.",
    )
    votes: int = flag(2, "--find vote: detectors that must agree where none is sure.", ge=1)
    also: tuple[str, ...] = flag(
        (),
        "Ask another library too: presidio, spacy:FOLDER of a pipeline, hf:FOLDER of a token classifier; repeatable."
        " Nothing is downloaded.",
    )
    propagate: Literal["patient", "note", "none"] = flag(
        "patient", "Where a name that was found is looked for again: all notes of its patient, its note, nowhere."
    )
    mode: Literal["remove", "replace", "tag"] = flag("replace", "Remove PHI, replace it by surrogates, or tag it.")
    tagger: Path | None = flag(None, "A tagger of clinveil phi train, in place of the one in the package.")
    no_tagger: bool = flag(False, "Detect by rules, lists and --patients alone.")


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
    spans: bool = flag(False, "Also write spans.jsonl (what was found, with its text) to the vault.")
    miss_rate: float | None = flag(
        None,
        "Emulate a remover (paper B): only --patients' own names go, those of this share of them stay.",
        ge=0,
        le=1,
    )
