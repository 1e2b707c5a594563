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
    tagger: Path | None = flag(None, "A tagger of clinveil phi train, in place of the one in the package.")
    no_tagger: bool = flag(False, "Detect by rules, lists and --patients alone.")
    mode: Literal["remove", "replace", "tag"] = flag(
        "replace", "Remove PHI, replace it by surrogates, or tag it: short for a policy of that one treatment."
    )
    phi_profile: str | None = flag(
        None, "What becomes of each class of PHI: safe-harbor, limited-dataset, research or max-recall."
    )
    phi_policy: Path | None = flag(None, "The same by a file of your own (TOML, see docs/policies.md).")
    surrogates: Literal["consistent", "random", "markov"] = flag(
        "consistent",
        "An identifier has one surrogate in all notes of its patient, a new one at each mention, or now and then.",
    )
    markov: float = flag(0.5, "--surrogates markov: how likely a mention gets a new surrogate.", gt=0, le=1)

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
    spans: bool = flag(
        False, "Also write spans.jsonl (what was found, with its text) to the vault: for clinveil review."
    )
    decisions: tuple[Path, ...] = flag((), "What a reviewer decided on these notes (clinveil review); repeatable.")
    crosswalk: bool = flag(False, "Also keep, encrypted, what stood in each place: clinveil reidentify reads it.")
    audit: Literal["full", "counts"] = flag("full", "The vault's audit log: of each note its spans, or counts alone.")
    miss_rate: float | None = flag(
        None,
        "Emulate a remover (paper B): only --patients' own names go, those of this share of them stay.",
        ge=0,
        le=1,
    )
