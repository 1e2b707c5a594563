"""Settings of de-identification and of its validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from clinveil.core import (
    FORCE,
    KEEP,
    KEY_SEED,
    LABEL,
    QUIET,
    SEED,
    WORKERS,
    Affects,
    LabelledNotesSettings,
    NotesSettings,
    Settings,
    group,
    setting,
)
from clinveil.phi.detection.second_opinion import installed
from clinveil.phi.treatment.dates import DateOrder
from clinveil.phi.treatment.policy import Policy, profiles
from clinveil.phi.validation.design import LOCATIONS, PASSAGE
from clinveil.scale import ExecutorSettings

SECOND_OPINION = "CLINVEIL_SECOND_OPINION"
"""Environment variable that decides where the setting is `auto`: on or off."""


class PhiSettings(Settings):
    """Detection of identifiers and their treatment."""

    AFFECTS: ClassVar[Affects] = "treatment"
    patients: Path | None = setting(
        None,
        "Read known patients from this file (names, record numbers, phones).",
        affects="notes",
        secret="path",
    )
    staff: Path | None = setting(
        None,
        "Read names of clinicians and other staff from this file (CSV, Parquet, text).",
        affects="notes",
        secret="path",
    )
    also: tuple[str, ...] = setting(
        (),
        "Add an external detector: presidio, presidio:FOLDER or hf:FOLDER; repeatable.",
        secret="path",
    )
    engine: str | None = setting(
        None, "Detect with this external detector only (values as for also).", secret="path"
    )
    propagate: Literal["patient", "note", "none"] = setting(
        "patient",
        "Search for names found elsewhere in all notes of the patient, one note, or none.",
    )
    tagger: Path | None = setting(
        None, "Use this trained tagger instead of the one in the package.", secret="path"
    )
    no_tagger: bool = setting(False, "Detect with rules, word lists and known patients only.")
    second_opinion: Literal["auto", "on", "off"] = setting(
        "auto", "Read doubtful sentences with the model of the extra accurate; auto: if installed."
    )
    language: Literal["english", "any"] = setting(
        "english",
        "Leave out notes in other languages, or treat any (detectors know English only).",
    )
    mode: Literal["remove", "replace", "tag"] = setting(
        "replace", "Remove identifiers, replace them with surrogates, or tag them."
    )
    date_order: DateOrder = setting(
        "auto", "Read 3/4/2019 by the other dates of the patient, day first, or month first."
    )
    shift: tuple[str, ...] = setting(
        (), "Keep this column of dates and move it by the days of its patient; repeatable."
    )
    phi_profile: str | None = setting(
        None, "Use this policy: safe-harbor, limited-dataset, research or max-recall."
    )
    phi_policy: Path | None = setting(None, "Use the policy in this TOML file.", secret="path")
    reviewed: tuple[Path, ...] = setting(
        (),
        "Apply the corrections in this folder (of validate, or a vault); repeatable.",
        affects="notes",
        secret="path",
    )

    @field_validator("second_opinion")
    @classmethod
    def _resolved(cls, value: str) -> str:
        """Return on or off, which enters the identity of a run: none is continued with another
        answer.
        """
        if value == "auto":
            value = os.environ.get(SECOND_OPINION, "") or ("on" if installed() else "off")
        if value not in ("on", "off"):
            raise ValueError(f"on or off in the environment variable {SECOND_OPINION}")
        return value

    @field_validator("phi_profile")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in profiles():
            raise ValueError("one of " + ", ".join(profiles()))
        return name

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if self.phi_profile and self.phi_policy:
            raise ValueError("phi_profile and phi_policy exclude each other: set one of them")
        if self.mode != "replace" and (self.phi_profile or self.phi_policy):
            raise ValueError(
                "mode cannot be combined with phi_profile or phi_policy: set one of them"
            )
        return self

    def opened(self, keep: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to read with the notes: the kept ones and those of dates."""
        return (*keep, *(name for name in self.shift if name not in keep))

    def unmoved(self, keep: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that are kept unchanged."""
        return tuple(name for name in keep if name not in self.shift)

    def policy(self) -> Policy:
        """Return the policy for each class of identifier. Raises UsageError for an invalid policy
        file.
        """
        if self.phi_policy:
            return Policy.read(self.phi_policy)
        return (
            Policy.of_profile(self.phi_profile) if self.phi_profile else Policy.of_mode(self.mode)
        )


class DeidentifySettings(Settings):
    """Settings of `clinveil deidentify`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    executor: ExecutorSettings = group(ExecutorSettings)
    seed: int | None = KEY_SEED
    quiet: bool = QUIET
    force: bool = FORCE
    spans: bool = setting(
        False, "Write spans.jsonl (findings with their text) to the vault, for review."
    )
    keep_ids: bool = setting(False, "Keep the note ids, patient ids and file names of the source.")
    crosswalk: bool = setting(
        False, "Store the original identifiers, encrypted, for clinveil reidentify."
    )
    audit: Literal["full", "counts"] = setting(
        "full", "Log the spans of each note in the audit log, or counts only."
    )


class ValidateSettings(Settings):
    """Settings of `clinveil validate`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    locations: int = setting(
        LOCATIONS, "Number of sampled locations to annotate.", ge=40, le=100_000
    )
    passage: int = setting(
        PASSAGE, "Words per passage, the sampling unit of undetected text.", ge=5, le=1_000
    )
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
