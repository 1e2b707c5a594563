"""What `clinveil release` can be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator, model_validator

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
from clinveil.phi.settings import PhiSettings
from clinveil.utility.classifiers import classifiers
from clinveil.vectors.settings import VectorSettings

# Bundles of settings by name; a file's settings and flags win over them.
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"memo": "occurrence"},
    "strict": {"n": "9-30", "min_patients": 10, "unknown": "drop"},
}


class ReleaseChannelSettings(ChannelSettings):
    """The channel of a release: neighbours, and by default one draw of a word for each patient."""

    memo: Literal["occurrence", "note", "patient"] = flag(
        "patient", "Repeat the secret draw of a word within this scope (occurrence: the paper's fresh draws)."
    )

    @field_validator("mechanism")
    @classmethod
    def _paper_a_only(cls, value: str) -> str:
        if value != "neighbours":
            raise ValueError(
                "a release is made with neighbours; clinveil obfuscate has the noise mechanisms, to compare"
            )
        return value


class ReleaseSettings(Settings):
    """Everything that `clinveil release` can be told; the manifest records it."""

    channel: ReleaseChannelSettings = group(ReleaseChannelSettings)
    vectors: VectorSettings = group(VectorSettings)
    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    profile: Literal["default", "paper", "strict"] = flag(
        "default", "Named settings: paper draws anew each time; strict means more neighbours and a higher floor."
    )
    model: tuple[str, ...] = choice(classifiers, ("lr",), "Classifiers of the utility figures; repeatable.")
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
