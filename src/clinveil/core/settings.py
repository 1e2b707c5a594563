"""The settings of every command: one Pydantic model is the config file, the flags and the record of the run.

Each group below is the part that one room needs; a command's settings inherit the groups that it uses. A field's
description is its `--help` text; `short` its one-letter flag. TOML files hold the same names, flat.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from clinveil.core.errors import UsageError

S = TypeVar("S", bound="Settings")


class NeighbourRange(BaseModel):
    """How many neighbours a word is drawn from: a fixed N (low = high) or N drawn from low..high (paper A: 3-14)."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)
    low: int = Field(ge=1, le=1000)
    high: int = Field(ge=1, le=1000)

    @classmethod
    def parse(cls, value: Any) -> Any:
        """`5` or `3-14`."""
        if isinstance(value, str | int):
            match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", str(value))
            if not match:
                raise ValueError("write N as 5 or 3-14")
            low = int(match[1])
            high = int(match[2] or low)
            if high < low:
                raise ValueError("the range's end lies before its start")
            return {"low": low, "high": high}
        return value

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


N = Annotated[NeighbourRange, BeforeValidator(NeighbourRange.parse)]


def flag(default: Any, help: str, *, short: str = "", **constraints: Any) -> Any:
    """A field that is also a command-line flag; `short` is its one-letter form."""
    return Field(default, description=help, json_schema_extra={"short": short} if short else None, **constraints)


class Settings(BaseModel):
    """What all settings share: unknown names are refused, values never show in errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True)


class RunSettings(Settings):
    """How a command runs; none of these changes what comes out, but for the seed."""

    workers: int = flag(2, "How many workers; the output is the same for any number.", ge=1, le=1024)
    seed: int | None = flag(
        None, "A public seed, for tests and studies: what it makes is not for release.", ge=0, le=2**63 - 1
    )
    quiet: bool = flag(False, "No progress on stderr.", short="-q")
    force: bool = flag(False, "Replace an existing OUT (the old one is kept aside until success).")


class NotesSettings(Settings):
    """How notes are read."""

    text: str | None = flag(None, "Column of the note text (guessed where the name is usual).", min_length=1)
    id: str | None = flag(None, "Column of the note id, unique (guessed).", min_length=1)
    patient: str | None = flag(
        None, "Column of the patient id (guessed; without one each note is its own patient).", min_length=1
    )
    label: tuple[str, ...] = flag((), "Column to keep and to measure utility on; repeatable.")
    keep: tuple[str, ...] = flag((), "Column to pass through unchanged; repeatable. All others are dropped.")
    preset: Literal["auto", "none", "mimic3", "mimic4", "omop"] = flag("auto", "Column preset of a known source.")
    encoding: str = flag("utf-8", "Character encoding of text files.")
    max_note_bytes: int = flag(
        10_000_000, "A note of more bytes is refused: a damaged file, or a bomb.", ge=1_000, le=2**31 - 1
    )


class PhiSettings(Settings):
    """What is done with the identifiers that the detectors find."""

    patients: Path | None = flag(None, "Known patients (patients.parquet): names, record numbers, phones, …")
    mode: Literal["remove", "replace", "tag"] = flag("replace", "Remove PHI, replace it by surrogates, or tag it.")


class VectorSettings(Settings):
    """How word vectors are trained (gensim's names and meanings)."""

    algorithm: Literal["cbow", "skipgram", "fasttext", "glove"] = flag("cbow", "Training algorithm.")
    glove_variant: Literal["pair", "single"] = flag("pair", "GloVe: word and context vectors, or one vector a word.")
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(5, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples for each positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(5, "Passes over the notes; of GloVe over its word pairs, 15 unless given.", ge=1, le=1000)

    @model_validator(mode="before")
    @classmethod
    def _glove_takes_more_passes(cls, values: Any) -> Any:
        return {"epochs": 15, **values} if isinstance(values, dict) and values.get("algorithm") == "glove" else values


class GloveSettings(Settings):
    """How GloVe vectors are trained (Pennington, Socher and Manning 2014, and the names of their program).

    `pair` is their model; `single` has one vector and bias a word (paper B, Figure 3), so it knows no word order.
    """

    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(10, "Context words on either side, within one note.", ge=1, le=1000)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(15, "Passes over the word pairs.", ge=1, le=1000)
    x_max: float = flag(100.0, "Pairs seen this often or more weigh 1.", gt=0, allow_inf_nan=False)
    alpha: float = flag(0.75, "Rarer pairs weigh (seen / x_max) to this power.", gt=0, allow_inf_nan=False)
    eta: float = flag(0.05, "AdaGrad's first learning rate.", gt=0, allow_inf_nan=False)
    variant: Literal["pair", "single"] = flag("pair", "Word and context vectors summed, or one vector a word.")
    symmetric: bool = flag(True, "Count context on both sides, or only words that follow.")
    memory_mb: int = flag(2048, "Memory for counting pairs; what does not fit goes to scratch files.", ge=1)

    @model_validator(mode="after")
    def _one_vector_knows_no_order(self) -> Self:
        if self.variant == "single" and not self.symmetric:
            raise ValueError("one vector a word cannot tell before from after: single needs symmetric counts")
        return self


class ChannelSettings(Settings):
    """How tokens are replaced (paper A, Algorithm 1, and what was added to it)."""

    mechanism: Literal["neighbours", "laplace", "gaussian"] = flag(
        "neighbours", "A near neighbour (paper A), or noise on the vector and the nearest word, maybe itself."
    )
    # Beyond these the noise is nothing, or all, on vectors of any scale in use; far beyond them float32 overflows.
    epsilon: float | None = flag(None, "laplace: nominal epsilon; the mean radius is dim/epsilon.", ge=1e-6, le=1e6)
    sigma: float | None = flag(None, "gaussian: standard deviation of the noise on each coordinate.", ge=1e-6, le=1e6)
    unchanged: float | None = flag(
        None, "Noise that leaves about this share of the words as they are, instead of its size.", ge=0.001, le=0.999
    )
    n: N = flag("3-14", "Neighbours to draw from: 5, or a range 3-14 drawn anew each time.", short="-n")
    n_per: Literal["occurrence", "type"] = flag("occurrence", "Draw N from its range per occurrence or per word type.")
    memo: Literal["occurrence", "note", "patient"] = flag(
        "occurrence", "Repeat the secret draw of a word within this scope (occurrence: never, as in the paper)."
    )
    layout: Literal["plain", "keep"] = flag("plain", "Words and single spaces, or keep ASCII punctuation and lines.")
    numbers: Literal["drop", "mask"] = flag("drop", "Drop numbers, or write one # a digit; they are never kept.")
    unknown: Literal["pool", "drop"] = flag("pool", "A word without a vector: a draw from common words, or dropped.")
    min_patients: int = flag(5, "A word seen in fewer patients is never an output.", ge=1)
    keep_words: Path | None = flag(None, "File of words to leave as they are, one a line; the report shows the cost.")
    allow_small: bool = flag(False, "Go on with fewer than 50 patients (paper A: not for small data sets).")

    @model_validator(mode="after")
    def _noise_has_one_size(self) -> Self:
        for mechanism, name in (("laplace", "epsilon"), ("gaussian", "sigma")):
            given = getattr(self, name) is not None
            if given and self.mechanism != mechanism:
                raise ValueError(f"--{name} is of --mechanism {mechanism}")
            if self.mechanism == mechanism and given == (self.unchanged is not None):
                raise ValueError(f"--mechanism {mechanism} needs --{name} or --unchanged, one of them")
        if self.mechanism == "neighbours" and self.unchanged is not None:
            raise ValueError("--unchanged is of the noise mechanisms; with neighbours no word comes out unchanged")
        return self

    @field_validator("n")
    @classmethod
    def _at_least_two(cls, value: NeighbourRange) -> NeighbourRange:
        if value.low < 2:
            raise ValueError("one neighbour would make the replacement a fixed code; use 2 or more")
        return value


class ClassifierSettings(Settings):
    """How classifiers are trained on labelled notes (paper A); `size` sets what is not given."""

    size: Literal["small", "paper"] = flag("small", "small trains on 2 cores in minutes; paper has the papers' sizes.")
    max_documents: int | None = flag(None, "Labelled notes at most, a random sample (small: 5000, paper: all).", ge=20)
    max_tokens: int | None = flag(None, "Networks read so many words of a note (small: 200, paper: 5000).", ge=5)
    epochs: int | None = flag(None, "Passes of a network (small: 20, early end; paper: 25).", ge=1, le=1000)
    features: Literal["tfidf", "hashed"] = flag("tfidf", "Linear models: TF-IDF, or hashed features in bounded memory.")
    static: bool = flag(False, "Networks leave the word vectors as they are given.")
    refit: bool = flag(False, "Networks: train anew on training and validation notes for the epochs found best.")
    min_class: int = flag(50, "Classes of fewer notes are left out.", ge=2)
    separator: str | None = flag(None, "What stands between several labels of one note; without it one label a note.")
    device: str = flag("cpu", "cpu, cuda or cuda:1, for networks.")

    @property
    def documents(self) -> int:
        """Labelled notes at most."""
        return self.max_documents or (5_000 if self.size == "small" else 10**9)

    @property
    def tokens(self) -> int:
        """Words of a note that networks read."""
        return self.max_tokens or (200 if self.size == "small" else 5_000)

    @property
    def passes(self) -> int:
        """Epochs at most."""
        return self.epochs or (20 if self.size == "small" else 25)


# Bundles of release settings by name; a file's settings and flags win over them.
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"memo": "occurrence"},
    "strict": {"n": "9-30", "min_patients": 10, "unknown": "drop"},
}


class ReleaseSettings(RunSettings, NotesSettings, PhiSettings, VectorSettings, ChannelSettings):
    """Everything that `clinveil release` can be told; the manifest records it."""

    memo: Literal["occurrence", "note", "patient"] = flag(
        "patient", "Repeat the secret draw of a word within this scope (occurrence: the paper's fresh draws)."
    )
    profile: Literal["default", "paper", "strict"] = flag(
        "default", "Named settings: paper draws anew each time; strict means more neighbours and a higher floor."
    )
    model: tuple[str, ...] = flag(("lr",), "Classifiers of the utility figures: lr, svm, cnn, lstm, …; repeatable.")
    phi: bool = flag(True, "Replace PHI first; --no-phi leaves that step out, and the report says so.")
    order: Literal["keyed", "source"] = flag("keyed", "Rows of the release: in a keyed random order, or the source's.")

    @field_validator("model")
    @classmethod
    def _known_models(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        known = ("lr", "svm", "cnn", "cnn-attention", "lstm", "lstm-attention")
        if not values or set(values) - set(known):
            raise ValueError("one or several of " + ", ".join(known))
        return values

    @field_validator("mechanism")
    @classmethod
    def _paper_a_only(cls, value: str) -> str:
        if value != "neighbours":
            raise ValueError(
                "a release is made with neighbours; clinveil obfuscate has the noise mechanisms, to compare"
            )
        return value


def _read_toml(model: type[Settings], config: Path, without: Collection[str]) -> dict[str, Any]:
    """A file's settings, each of the kind that the model wants. Raises UsageError, which names the key."""
    try:
        values = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UsageError("is not there or is no TOML file", where=config.name) from None
    for key, value in values.items():
        if key in without:
            raise UsageError(f"{key}: this command has no such setting", where=config.name, remedy="take it out")
        field = model.model_fields.get(key)
        if field is not None and not _fits(value, field.annotation):
            raise UsageError(f"{key}: a value of the wrong kind", where=config.name, remedy="see --help for it")
    return values


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value is of a field's kind: a truth value is no number, a fraction no count, a table nothing."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if kind is NeighbourRange:
        return type(value) in (int, str)
    if kind in (int, bool, NoneType):
        return type(value) is kind
    return type(value) in (int, float) if kind is float else isinstance(value, str)


def load_settings(
    model: type[S], flags: dict[str, Any], config: Path | None = None, without: Collection[str] = ()
) -> S:
    """Settings from a TOML file and from flags, which win. Raises UsageError with one line for the first mistake.

    Args:
        without: fields that the command does not offer; the file may not have them either.
    """
    values: dict[str, Any] = {} if config is None else _read_toml(model, config, without)
    values |= {name: value for name, value in flags.items() if value is not None}
    if "profile" in model.model_fields:
        values = PROFILES.get(str(values.get("profile")), {}) | values
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        if not first["loc"]:  # a rule over several settings names none
            raise UsageError(first["msg"].removeprefix("Value error, ")) from None
        name = str(first["loc"][0]).replace("_", "-")
        if first["type"] == "extra_forbidden":
            raise UsageError(f"there is no setting {name}", remedy="see --help for the names") from None
        raise UsageError(f"--{name}: {first['msg'].removeprefix('Value error, ')}") from None
