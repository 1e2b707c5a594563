"""Settings of `clinveil release`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from clinveil.channel import ChannelSettings, Layout
from clinveil.core import (
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
    table,
)
from clinveil.lm import PRETRAINED, SMOLLM2, TrainingSettings, language_models
from clinveil.phi import PhiSettings
from clinveil.releases.producer import OF_KINDS, TABLES, kinds_with, other_kind, producers
from clinveil.scale import ExecutorSettings
from clinveil.utility.classifiers import classifiers
from clinveil.vectors import VectorSettings

LABEL_PATIENTS = 5
MEASURE_WORDS = 2_000_000


class ReleaseChannelSettings(ChannelSettings):
    """Channel settings of a release."""

    background: float = flag(
        0.6,
        "Share of words that do not follow the note: common words, or words of the language model.",
        ge=0,
        le=1,
    )
    layout: Layout = flag(
        "sentences", "Words alone, words and sentence ends, or keep ASCII punctuation and lines."
    )
    # `resolved` makes it a number.
    min_patients: int | Literal["auto"] = flag(  # type: ignore[assignment]
        "auto", "Never release a word of fewer patients (auto: from their number)."
    )

    @field_validator("min_patients")
    @classmethod
    def _at_least_one(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("must be 1 or more, or auto")
        return value

    @property
    def label_floor(self) -> int:
        """Patients that must share the value of a label of synthetic notes: the patient floor, at
        most 5.
        """
        return LABEL_PATIENTS if self.min_patients == "auto" else min(LABEL_PATIENTS, self.floor)

    @property
    def floor(self) -> int:
        """The patient floor. Raises ValueError for `auto`, which `ReleaseSettings.resolved`
        replaces.
        """
        if not isinstance(self.min_patients, int):
            raise ValueError("the patient floor is known only after counting the patients")
        return self.min_patients


class WritingSettings(Settings):
    """Settings for generating synthetic notes and searching them for copies."""

    init: str | None = flag(
        None, "Public model to train further: a folder of Hugging Face, or smollm2."
    )
    count: int | None = flag(
        None, "Notes to write (default: as many words as the training notes).", ge=1
    )
    temperature: float = flag(
        1.0, "Sampling temperature; below 1 favours likely words.", gt=0, le=10
    )
    longest: int = flag(
        4_000, "Maximum tokens per note; longer notes are truncated.", ge=1, le=1_000_000
    )
    batch: int = flag(
        64, "Notes written in parallel; affects speed and memory only.", ge=1, le=100_000
    )
    tags: bool = flag(False, "Write tags around invented identifiers: <NAME>...</NAME>.")
    exact: bool | None = flag(
        None, "Write in double precision for any batch size (default: not pretrained)."
    )
    threads: int = flag(1, "PyTorch threads for training; results are reproducible with one.", ge=1)
    span: int = flag(50, "Consecutive words that count as a copy.", ge=5)
    epsilon: float | None = flag(
        None, "Patient-level differential privacy with this epsilon (lm.model unigram, ngram)."
    )
    delta: float | None = flag(None, "Delta of the guarantee (default: 1/(n ln n) for n patients).")
    public: Path | None = flag(
        None, "Public text for epsilon: its words are the vocabulary, and train the n-grams."
    )

    @property
    def places(self) -> tuple[Path | None, ...]:
        """Files and folders that the notes depend on."""
        return self.public, None if self.init in (None, SMOLLM2) else Path(self.init)

    def doubles(self, model: str) -> bool:
        """Return whether a kind of model writes in double precision."""
        return model != PRETRAINED if self.exact is None else self.exact


class WriterSettings(TrainingSettings):
    """Settings of the language model of a release."""

    model: str = choice(
        language_models,
        "ngram",
        "ngram (shared word sequences), unigram, lstm (paper C's), pretrained.",
    )


class ReleaseSettings(Settings):
    """All settings of `clinveil release`; recorded in the manifest."""

    CONFIGS: ClassVar[str] = "clinveil.releases.configs"
    kind: str = choice(producers, "obfuscated", "Kind of release.", name="as")
    channel: ReleaseChannelSettings = group(ReleaseChannelSettings)
    vectors: VectorSettings = group(VectorSettings)
    identifiers: PhiSettings = group(PhiSettings)
    lm: WriterSettings = table(WriterSettings)
    synthetic: WritingSettings = table(WritingSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    executor: ExecutorSettings = group(ExecutorSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    measure_words: int = flag(
        MEASURE_WORDS,
        "Measure on a sample of patients with about this many words (0: all notes).",
        ge=0,
    )
    test_share: float = flag(
        0.15, "Share of patients held out of all models, to test utility on.", gt=0, le=0.5
    )
    model: tuple[str, ...] = choice(
        classifiers, ("tfidf-lr",), "Classifiers of the utility figures; repeatable."
    )
    again: bool = flag(False, "Release notes again that were released under another key.")
    ledger: Path | None = flag(
        None, "Ledger folder of released notes (default: clinveil-ledger next to OUT)."
    )
    signing_key: Path | None = flag(
        None, "Ed25519 private key (PEM) that signs the manifest (default: from the key)."
    )
    max_names: float = flag(
        0.05,
        "Maximum share of names recovered by a recipient, above chance (1: no gate).",
        ge=0,
        le=1,
    )
    max_linkage: float = flag(
        0.09, "Maximum share of notes linked by ten words, above chance (1: no gate).", ge=0, le=1
    )
    max_kept: float = flag(
        0.01, "Maximum share of notes with unique kept values (1: no gate).", ge=0, le=1
    )
    max_stolen: float | None = flag(
        None,
        "The same limits for an attacker with the vault's vectors (default: report only).",
        ge=0,
        le=1,
    )
    risk_threshold: float = flag(
        0.09, "Acceptable risk per patient, for the report (EMA: .09).", gt=0, le=1
    )
    phi: bool = flag(True, "Replace identifiers first.")

    @model_validator(mode="after")
    def _pretrained(self) -> Self:
        """Choose the pretrained model if a public model is given and no other one is chosen."""
        if self.synthetic.init is not None and "model" not in self.lm.model_fields_set:
            vars(self)["lm"] = self.lm.model_copy(update={"model": PRETRAINED})
        return self

    @classmethod
    def refuse_given(cls, typed: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """Raise UsageError for a setting of another kind of release."""
        kind = values.get("kind", "obfuscated")
        if kind not in producers:
            return
        groups = {name: group for group in OF_KINDS for name in _names(cls, group)}
        for name, written in typed.items():
            if kinds := kinds_with(
                {name, name.partition(".")[0], name.rpartition(".")[2], groups.get(name, "")}, kind
            ):
                raise other_kind(written, kinds, kind)

    def of_other_kinds(self) -> set[str]:
        """Return the groups, tables and settings that this kind of release does not use."""
        names = {name: group for group in OF_KINDS for name in (group, *_names(type(self), group))}
        names |= {name: name for name in type(self).model_fields}
        return {name for name, group in names.items() if kinds_with({name, group}, self.kind)}

    def resolved(self, patients: int) -> ReleaseSettings:
        """Return the settings with `min_patients = auto` replaced for this many patients."""
        if self.channel.min_patients != "auto":
            return self
        return self.but(min_patients=producers.get(self.kind).floor(patients))

    @field_validator("model")
    @classmethod
    def _one_or_several(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if not values:
            raise ValueError("one or several of " + ", ".join(classifiers.names()))
        return values


def _names(model: type[Settings], group: str) -> list[str]:
    """Return the flags of a group; tables have none."""
    kind = None if group in TABLES else model.model_fields[group].annotation
    return [*kind.flags()] if isinstance(kind, type) and issubclass(kind, Settings) else []
