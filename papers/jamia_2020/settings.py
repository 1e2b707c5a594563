"""Settings of paper A."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from clinveil.channel import NeighbourRange
from clinveil.core import NotesSettings, Settings, group

Algorithm = Literal["cbow", "skipgram", "fasttext"]
Model = Literal["lr", "svm", "cnn", "cnn-attention", "lstm", "lstm-attention"]
LINEAR: tuple[Model, ...] = ("lr", "svm")
ORDER = get_args(Model)  # of the rows of Table 4
Positive = Annotated[int, Field(ge=1)]


def _with_original(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of N after the original. Raises ValueError for an invalid one."""
    for value in values:
        if value != "0" and NeighbourRange.model_validate(NeighbourRange.parse(value)).low < 2:
            raise ValueError("N must be 0 (the original), 2 or more, or a range such as 3-14")
    return tuple(dict.fromkeys(("0", *values)))


class ObfuscationSettings(Settings):
    """Settings of the script; `settings.toml` has their values and describes them."""

    notes: NotesSettings = group(NotesSettings)
    seed: int = Field(ge=0, lt=2**63)
    workers: Positive
    max_documents: int = Field(ge=20)
    max_tokens: int = Field(ge=5)
    min_class: int = Field(ge=2)
    separator: str
    n: Annotated[tuple[str, ...], AfterValidator(_with_original)]
    algorithm: tuple[Literal["cbow", "skipgram"], ...] = Field(min_length=1)
    baselines: bool
    dim: int = Field(ge=2)
    window: Positive
    negative: Positive
    epochs: Positive
    repetitions: int = Field(ge=2)
    subwords: bool
    model: Annotated[
        tuple[Model, ...],
        Field(min_length=1),
        AfterValidator(lambda models: tuple(sorted(set(models), key=ORDER.index))),
    ]
    seeds: Positive
    network_epochs: Positive
    patience: int = Field(ge=0)
    transfers: bool
    device: str

    def for_page(self) -> dict[str, object]:
        """Return the settings that affect the results, without the columns of the notes."""
        return self.model_dump(exclude={"notes", "workers"})
