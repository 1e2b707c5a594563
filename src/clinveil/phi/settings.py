"""What the de-identifier can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator, model_validator

from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.policy import Policy, profiles
from clinveil.scale.executor import ADDRESS, ON


class PhiSettings(Settings):
    """What is done with the identifiers that the detectors find."""

    patients: Path | None = flag(None, "Known patients (patients.parquet): names, record numbers, phones.")
    find: Literal["union", "vote", "recall-first"] = flag(
        "union",
        "Keep the findings of all detectors (union); those of a certain detector or of several (vote); or all, and "
        "every word that is neither common nor clinical (recall-first).",
    )
    votes: int = flag(2, "Detectors that must agree if none is certain (find=vote).", ge=1)
    also: tuple[str, ...] = flag(
        (),
        "Add the detector of another library: presidio, spacy:FOLDER (pipeline) or hf:FOLDER (token classifier); "
        "repeatable. Nothing is downloaded.",
    )
    propagate: Literal["patient", "note", "none"] = flag(
        "patient", "Search for a detected name in all notes of its patient, in its note, or not again."
    )
    tagger: Path | None = flag(None, "Use a tagger trained by train_on_notes instead of the one in the package.")
    no_tagger: bool = flag(False, "Detect by rules, lists and known patients only.")
    mode: Literal["remove", "replace", "tag"] = flag(
        "replace", "Remove identifiers, replace them with surrogates, or tag them."
    )
    phi_profile: str | None = flag(None, "Treatment per class: safe-harbor, limited-dataset, research or max-recall.")
    phi_policy: Path | None = flag(None, "Treatment per class, from a TOML file.")
    surrogates: Literal["consistent", "random", "markov"] = flag(
        "consistent",
        "Give an identifier one surrogate per patient, a new one per mention, or a new one at times (markov).",
    )
    markov: float = flag(0.5, "Probability that a mention gets a new surrogate (surrogates=markov).", gt=0, le=1)

    @field_validator("phi_profile")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in profiles():
            raise ValueError("one of " + ", ".join(profiles()))
        return name

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if self.phi_profile and self.phi_policy:
            raise ValueError("--phi-profile and --phi-policy: name one of them")
        if self.mode != "replace" and (self.phi_profile or self.phi_policy):
            raise ValueError("--mode is a policy of its own: leave it out, or --phi-profile and --phi-policy")
        return self

    def policy(self) -> Policy:
        """What they say becomes of each class. Raises UsageError for a policy file that does not fit."""
        if self.phi_policy:
            return Policy.read(self.phi_policy)
        return Policy.of_profile(self.phi_profile) if self.phi_profile else Policy.of_mode(self.mode)

    @property
    def fresh(self) -> float:
        """The chance that a mention gets a surrogate of its own."""
        return {"consistent": 0.0, "random": 1.0, "markov": self.markov}[self.surrogates]


class DeidentifySettings(Settings):
    """Settings of `clinveil deidentify`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    on: str = ON
    address: str | None = ADDRESS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    spans: bool = flag(False, "Write the detected spans, with text, to the vault (for clinveil review).")
    decisions: tuple[Path, ...] = flag((), "Apply the decisions of clinveil review; repeatable.")
    crosswalk: bool = flag(False, "Keep the replaced text, encrypted (for clinveil reidentify).")
    audit: Literal["full", "counts"] = flag("full", "Record in the audit log the spans of each note, or only counts.")
    miss_rate: float | None = flag(
        None,
        "Emulate a remover (paper B): only --patients' own names go, those of this share of them stay.",
        ge=0,
        le=1,
    )
