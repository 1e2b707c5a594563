"""Settings of `clinveil release`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from clinveil.channel import ChannelSettings, Layout
from clinveil.core import (
    FORCE,
    KEEP,
    KEY_SEED,
    LABEL,
    QUIET,
    WORKERS,
    NotesSettings,
    Setting,
    Settings,
    group,
    setting,
)
from clinveil.lm import LANGUAGE_MODELS, PRETRAINED, TrainingSettings
from clinveil.phi import PhiSettings
from clinveil.releases.kinds import PRODUCERS, kinds_with, other_kind
from clinveil.report import Audience
from clinveil.scale import ExecutorSettings
from clinveil.utility import CLASSIFIERS
from clinveil.vectors import VectorSettings

LABEL_PATIENTS = 5
MEASURE_WORDS = 2_000_000


class PatientFloor(Settings):
    """The patient floor, of words or of the values of labels."""

    # `resolved` makes it a number.
    min_patients: int | Literal["auto"] = setting(
        "auto",
        "Never release a word of fewer patients (auto: from their number).",
        affects="treatment",
    )

    @field_validator("min_patients")
    @classmethod
    def _at_least_one(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("must be 1 or more, or auto")
        return value


class ReleaseChannelSettings(PatientFloor, ChannelSettings):  # type: ignore[misc]
    """Channel settings of a release."""

    mechanism: Literal["neighbours", "contextual"] = setting(
        "contextual", "Draw each word by itself, or in the context of the words written before."
    )
    background: float = setting(
        0.8,
        "Share of words that do not follow the note: common words, or words of the language model.",
        ge=0,
        le=1,
    )
    layout: Layout = setting(
        "sentences", "Words alone, words and sentence ends, or keep ASCII punctuation and lines."
    )

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

    init: str | None = setting(
        None,
        "Public model to train further: a folder of Hugging Face, or smollm2.",
        affects="training",
        secret="path",
    )
    count: int | None = setting(
        None, "Notes to write (default: as many words as the training notes).", ge=1
    )
    temperature: float = setting(
        1.0, "Sampling temperature; below 1 favours likely words.", gt=0, le=10
    )
    longest: int = setting(
        4_000, "Maximum tokens per note; longer notes are truncated.", ge=1, le=1_000_000
    )
    batch: int = setting(
        64,
        "Notes written in parallel; affects speed and memory only.",
        secret="value",
        ge=1,
        le=100_000,
    )
    tags: bool = setting(False, "Write tags around invented identifiers: <NAME>...</NAME>.")
    exact: bool | None = setting(
        None, "Write in double precision for any batch size (default: not pretrained)."
    )
    threads: int = setting(
        1,
        "PyTorch threads for training; results are reproducible with one.",
        secret="value",
        ge=1,
    )
    span: int = setting(50, "Consecutive words that count as a copy.", ge=5)
    epsilon: float | None = setting(
        None,
        "Patient-level differential privacy with this epsilon (lm.model unigram, ngram).",
        affects="training",
    )
    delta: float | None = setting(
        None,
        "Delta of the guarantee (default: 1/(n ln n) for n patients).",
        affects="training",
    )
    public: Path | None = setting(
        None,
        "Public text for epsilon: its words are the vocabulary, and train the n-grams.",
        affects="training",
        secret="path",
    )

    def doubles(self, model: str) -> bool:
        """Return whether a kind of model writes in double precision."""
        return model != PRETRAINED if self.exact is None else self.exact


class WriterSettings(TrainingSettings):
    """Settings of the language model of a release."""

    model: str = setting(
        "ngram",
        "ngram (shared word sequences), unigram, lstm (paper C's), pretrained.",
        members=LANGUAGE_MODELS,
    )


class IdentifierSwitch(Settings):
    """Whether identifiers are replaced."""

    phi: bool = setting(True, "Replace identifiers first.", affects="treatment")


class ReleaseSettings(IdentifierSwitch):
    """All settings of `clinveil release`; recorded in the manifest.

    Settings that only some kinds have are in classes of their own: see `Producer.settings`.
    """

    CONFIGS: ClassVar[str] = "clinveil.releases.configs"
    FLAGS: ClassVar[Mapping[str, str]] = {
        "Input": "notes.text notes.id notes.patient label identifiers.patients identifiers.staff"
        " from_sql uri",
        "What leaves": "out kind keep reuse",
        "To whom": "audience limits recipient purpose review_on",
        "Identifiers": "identifiers.mode identifiers.phi_profile identifiers.date_order"
        " identifiers.language identifiers.shift identifiers.reviewed",
        "Protection": "channel.min_patients vectors vectors.more_text lm.model synthetic.epsilon"
        " synthetic.public again",
        "Running": "config set executor.on workers seed force quiet",
    }
    # Empty until it is chosen: notes are not shared by default.
    kind: str = setting(
        "",
        "Kind of release, required.",
        affects="treatment",
        flag="as",
        aliases=("--kind",),
        members=PRODUCERS,
    )
    channel: ReleaseChannelSettings = group(ReleaseChannelSettings)
    vectors: VectorSettings = group(VectorSettings)
    identifiers: PhiSettings = group(PhiSettings)
    lm: WriterSettings = group(WriterSettings)
    synthetic: WritingSettings = group(WritingSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    executor: ExecutorSettings = group(ExecutorSettings)
    seed: int | None = KEY_SEED
    quiet: bool = QUIET
    force: bool = FORCE
    measure_words: int = setting(
        MEASURE_WORDS,
        "Measure on a sample of patients with about this many words (0: all notes).",
        ge=0,
    )
    test_share: float = setting(
        0.15, "Share of patients held out of all models, to test utility on.", gt=0, le=0.5
    )
    model: tuple[str, ...] = setting(
        ("tfidf-lr",),
        "Classifiers of the utility figures; repeatable.",
        flag="classifier",
        members=CLASSIFIERS,
    )
    again: bool = setting(
        False, "Release notes again that were released under another key.", affects="call"
    )
    ledger: Path | None = setting(
        None,
        "Ledger folder of released notes (default: CLINVEIL_LEDGER, or your data folder).",
        affects="call",
        secret="path",
    )
    signing_key: Path | None = setting(
        None,
        "Ed25519 private key (PEM) that signs the manifest (default: from the key).",
        affects="call",
        secret="path",
    )
    audience: Audience = setting(
        "agreement",
        "Whom the limits are for: recipients under an agreement, or the public.",
        affects="call",
        flag="for",
    )
    limits: Path | None = setting(
        None,
        "TOML file of the officer's own limits (init-config limits prints the defaults).",
        affects="call",
        secret="path",
    )
    recipient: str = setting(
        "", "Who receives the release, for page one of the report.", affects="call"
    )
    purpose: str = setting("", "What for, likewise.", affects="call")
    review_on: str = setting(
        "",
        "Date on which the decision is reviewed, likewise (YYYY-MM-DD).",
        affects="call",
    )

    @field_validator("review_on")
    @classmethod
    def _date(cls, value: str) -> str:
        wrong = "must be a date such as 2027-01-31"
        try:
            written = date.fromisoformat(value).isoformat() if value else ""
        except ValueError:
            raise ValueError(wrong) from None
        if written != value:
            raise ValueError(wrong)
        return value

    @model_validator(mode="after")
    def _pretrained(self) -> Self:
        """Choose the pretrained model if a public model is given and no other one is chosen."""
        if self.synthetic.init is not None and "model" not in self.lm.model_fields_set:
            vars(self)["lm"] = self.lm.model_copy(update={"model": PRETRAINED})
        return self

    @classmethod
    def refuse_given(cls, given: Mapping[str, Any], where: Mapping[str, str]) -> None:
        """Raise UsageError for a setting of another kind of release."""
        kind = str(given.get("kind", ""))
        if kind not in PRODUCERS:  # checked when it is known, see `with_kind`
            return
        for name in given:
            kinds = kinds_with(cls.declared()[name].owners)
            if kind not in kinds:
                raise other_kind(name, kinds, kind, where.get(name, ""))

    @classmethod
    def remark(cls, name: str) -> str:
        """Return the kinds of release that a setting applies to; "" if to all."""
        kinds = kinds_with(cls.declared()[name].owners)
        return "" if kinds == PRODUCERS.names() else f"Only for kind {' or '.join(kinds)}."

    def with_kind(self, kind: str) -> Self:
        """Return the settings for a kind. Raises UsageError for given settings of other kinds."""
        self.refuse_given({**self.given_values(), "kind": kind}, {})
        return self.changed({"kind": kind})

    def of_kind(self) -> list[Setting]:
        """Return the settings that this kind of release has."""
        return [one for one in self.declared().values() if self.kind in kinds_with(one.owners)]

    def resolved(self, patients: int) -> ReleaseSettings:
        """Return the settings with `min_patients = auto` replaced for this many patients."""
        if self.channel.min_patients != "auto":
            return self
        return self.but(channel={"min_patients": PRODUCERS.get(self.kind).floor(patients)})

    @field_validator("model")
    @classmethod
    def _one_or_several(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if not values:
            raise ValueError("one or several of " + ", ".join(CLASSIFIERS.names()))
        return values
