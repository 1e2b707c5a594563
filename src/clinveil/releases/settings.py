"""What `clinveil release` can be told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from clinveil.channel.mechanisms import mechanisms
from clinveil.channel.policy import Memo, Shuffle
from clinveil.channel.settings import ChannelSettings
from clinveil.core.settings import (
    FORCE,
    KEEP,
    LABEL,
    QUIET,
    SEED,
    WORKERS,
    NotesSettings,
    Settings,
    choice,
    flag,
    group,
)
from clinveil.corpus.estimate import MEASURE_WORDS
from clinveil.lm.recipe import ModelSettings
from clinveil.phi.settings import PhiSettings
from clinveil.scale.executor import ADDRESS, ON
from clinveil.utility.classifiers import classifiers
from clinveil.vectors.settings import VectorSettings

# Bundles of settings by name; a file's settings and flags win over them.
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "mechanism": "neighbours",
        "n": "3-14",
        "memo": "occurrence",
        "shuffle": "none",
        "vary_length": 0.0,
        "algorithm": "cbow",
        "window": 5,
        "epochs": 5,
        "train_words": 0,
        "max_names": 1.0,
        "max_linkage": 1.0,
    },
    "strict": {"cluster_size": 32, "min_patients": 10, "unknown": "drop", "vary_length": 0.4},
}


class ReleaseChannelSettings(ChannelSettings):
    """The channel of a release: clusters, words in keyed order, notes of varied length (docs/frontier.md says why)."""

    mechanism: str = choice(mechanisms, "clusters", "How a word is replaced: by its cluster, a near neighbour, …")
    memo: Memo = flag(
        "rare",
        "Repeat the secret draw of a word within this scope (rare: within the patient, of rare words only; "
        "occurrence: the paper's fresh draws).",
    )
    shuffle: Shuffle = flag("note", "Released words in a secret order within windows, sentences or whole notes.")
    vary_length: float = flag(
        0.2, "Each note has its own rate up to this: so many of its words are left out, or written twice.", ge=0, le=0.9
    )


class ReleaseSettings(Settings):
    """Everything that `clinveil release` can be told; the manifest records it."""

    channel: ReleaseChannelSettings = group(ReleaseChannelSettings)
    vectors: VectorSettings = group(VectorSettings)
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
    profile: Literal["default", "paper", "strict"] = flag(
        "default",
        "Named settings: paper is its Algorithm 1 with N 3-14; strict means larger clusters and a higher floor.",
    )
    measure_words: int = flag(
        MEASURE_WORDS,
        "Of more words than this, attacks and utility look at patients drawn by the key, of about so many words; gates "
        "that must see every note still do (0: all).",
        ge=0,
    )
    model: tuple[str, ...] = choice(classifiers, ("lr",), "Classifiers of the utility figures; repeatable.")
    again: bool = flag(False, "Release notes that left before under another key; the report says what both give away.")
    ledger: Path | None = flag(None, "Folder that knows which notes left before (default: clinveil-ledger beside OUT).")
    max_names: float = flag(0.15, "Most of the names that the strongest attacker may read back (1: any).", ge=0, le=1)
    max_linkage: float = flag(
        0.05,
        "Most, above chance, that somebody without the vectors may link by ten words of a note (1: any).",
        ge=0,
        le=1,
    )
    risk_threshold: float = flag(0.09, "Risk of a patient that is small enough (EMA: .09); for the report.", gt=0, le=1)
    phi: bool = flag(True, "Replace PHI first; --no-phi leaves that step out, and the report says so.")
    order: Literal["keyed", "source"] = flag("keyed", "Rows of the release: in a keyed random order, or the source's.")

    @model_validator(mode="before")
    @classmethod
    def _profile(cls, values: Any) -> Any:
        return {**PROFILES.get(str(values.get("profile")), {}), **values} if isinstance(values, Mapping) else values

    @field_validator("model")
    @classmethod
    def _one_or_several(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if not values:
            raise ValueError("one or several of " + ", ".join(classifiers.names()))
        return values


class SynthesisSettings(Settings):
    """Everything that `clinveil synthesize` can be told; the vault's manifest records it."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    workers: int = flag(1, "Threads of PyTorch in training; with one, the same seed gives the same bits.", ge=1)
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    count: int | None = flag(
        None, "Notes to write (default: until they have as many words as the training notes).", ge=1
    )
    temperature: float = flag(
        1.0, "1 draws from the model as it is; less is more usual, and repeats more.", gt=0, le=10
    )
    top_p: float = flag(1.0, "Draw only from the likeliest words that make up this share (1: from all).", gt=0, le=1)
    longest: int = flag(4_000, "Tokens of a note at most; a longer one is cut, and counted.", ge=1, le=1_000_000)
    batch: int = flag(64, "Notes written at once; changes nothing but speed and memory.", ge=1, le=100_000)
    exact: bool = flag(True, "Write in double precision: the same notes for any --batch. --no-exact is faster.")
    min_patients: int = flag(5, "A word of fewer training patients is written as <unk>.", ge=1)
    held_out: float = flag(
        0.1, "Share of the patients kept from training: validation, and control of the copy scan.", gt=0, lt=1
    )
    span: int = flag(
        50, "So many words in a row count as a copy; other patients' notes say how many there may be.", ge=5
    )
    patients: Path | None = flag(None, "Known patients (patients.parquet): their names are looked for.")
    prepared: bool = flag(False, "NOTES are in MedText's form already (clinveil prepare medtext).")

    @model_validator(mode="after")
    def _writes(self) -> Self:
        if self.lm.model == "ngram":
            raise ValueError("--model ngram scores notes and writes none; unigram, lstm or gpt")
        return self
