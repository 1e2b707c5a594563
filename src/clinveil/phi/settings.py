"""Settings of de-identification and of its validation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator, model_validator

from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.detection.second_opinion import installed
from clinveil.phi.treatment.policy import Policy, profiles
from clinveil.scale.executor import ExecutorSettings

SECOND_OPINION = "CLINVEIL_SECOND_OPINION"
"""Environment variable that decides where the setting is `auto`: on or off."""


class PhiSettings(Settings):
    """Detection of identifiers and their treatment."""

    patients: Path | None = flag(None, "Read known patients from this file (names, record numbers, phones).")
    also: tuple[str, ...] = flag(
        (),
        "Add an external detector: presidio, spacy:FOLDER or hf:FOLDER; repeatable.",
    )
    engine: str | None = flag(None, "Detect with this external detector only (values as for also).")
    propagate: Literal["patient", "note", "none"] = flag(
        "patient", "Search for names found elsewhere in all notes of the patient, one note, or none."
    )
    tagger: Path | None = flag(None, "Use this trained tagger instead of the one in the package.")
    no_tagger: bool = flag(False, "Detect with rules, word lists and known patients only.")
    second_opinion: Literal["auto", "on", "off"] = flag(
        "auto", "Read doubtful sentences with the model of the extra accurate; auto: if installed."
    )
    mode: Literal["remove", "replace", "tag"] = flag(
        "replace", "Remove identifiers, replace them with surrogates, or tag them."
    )
    phi_profile: str | None = flag(None, "Use this policy: safe-harbor, limited-dataset, research or max-recall.")
    phi_policy: Path | None = flag(None, "Use the policy in this TOML file.")

    @field_validator("second_opinion")
    @classmethod
    def _resolved(cls, value: str) -> str:
        """Return on or off, which enters the identity of a run: none is continued with another answer."""
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
            raise ValueError("mode cannot be combined with phi_profile or phi_policy: set one of them")
        return self

    def policy(self) -> Policy:
        """Return the policy for each class of identifier. Raises UsageError for an invalid policy file."""
        if self.phi_policy:
            return Policy.read(self.phi_policy)
        return Policy.of_profile(self.phi_profile) if self.phi_profile else Policy.of_mode(self.mode)


class DeidentifySettings(Settings):
    """Settings of `clinveil deidentify`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    executor: ExecutorSettings = group(ExecutorSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    spans: bool = flag(False, "Write spans.jsonl (findings with their text) to the vault, for review.")
    decisions: tuple[Path, ...] = flag((), "Apply the decisions of clinveil review in this file; repeatable.")
    crosswalk: bool = flag(False, "Store the original identifiers, encrypted, for clinveil reidentify.")
    audit: Literal["full", "counts"] = flag("full", "Log the spans of each note in the audit log, or counts only.")


class ValidateSettings(Settings):
    """Settings of `clinveil validate`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    locations: int = flag(200, "Number of sampled locations to annotate.", ge=40, le=100_000)
    passage: int = flag(40, "Words per passage, the sampling unit of unsuspicious text.", ge=5, le=1_000)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
