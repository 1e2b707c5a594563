"""What the frontier can be told: which half of the patients, which settings, and how much is attacked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from clinveil.core.settings import LABEL, choice, flag
from clinveil.study.engine import StudySettings as AnyStudySettings
from clinveil.study.engine import choices
from clinveil.study.frontier.grid import CONTROL
from clinveil.utility.classifiers import classifiers

Half = Literal["choose", "confirm"]
HALVES: tuple[Half, ...] = ("choose", "confirm")
ORDERED = "lstm"  # the classifier that reads words in their order


class StudySettings(AnyStudySettings):
    """Everything that `clinveil study frontier` can be told."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {
            "tiny": {"tokens": 1_500, "canaries": 10, "most": 60, "max_documents": 150, "min_class": 10, "passes": 1},
            "paper": {"tokens": 200_000, "canaries": 300, "most": 1_000, "max_documents": 10**9},
        }
    )
    label: tuple[str, ...] = LABEL
    half: Half = flag("choose", "Patients of which half: settings are chosen on one, and confirmed on the other.")
    setting: tuple[str, ...] = flag((), "Only these settings, beside the control; repeatable.")
    model: tuple[str, ...] = choice(classifiers, ("lr",), "Classifiers of the utility, lr among them; repeatable.")
    order_tasks: bool = flag(False, "Also what tasks that need order lose: an LSTM, word pairs by vectors retrained.")
    max_documents: int = flag(1_000, "Notes of a half at most; whole patients.", ge=20)
    min_class: int = flag(20, "Notes of a class of its own; smaller ones become one.", ge=2)
    tokens: int = flag(20_000, "Released words that are attacked.", ge=100)
    canaries: int = flag(100, "Patients into copies of whose notes a name is planted.", ge=0)
    most: int = flag(300, "Released notes that are linked.", ge=2)
    fragment: int = flag(10, "Words in a row that are known of a note.", ge=1)
    passes: int | None = flag(None, "Passes of all vector training (default: each as its vectors have it).", ge=1)
    match: str | None = flag(None, "Column of NOTES and --known that pairs them.", min_length=1)
    known_text: str | None = flag(None, "Column of the known text, where it is another (guessed).", min_length=1)
    any_size: bool = flag(False, "Take published word-pair lists also where rows are missing.")
    yes: bool = flag(False, "Start also what is planned to take longer than two hours.")

    @field_validator("model")
    @classmethod
    def _known(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return choices(("lr", *values), classifiers.names())

    @model_validator(mode="after")
    def _confirms_what_was_chosen(self) -> Self:
        if self.half == "confirm" and not set(self.setting) - {CONTROL}:
            raise ValueError("--half confirm takes the settings that were chosen: --setting NAME")
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """All classifiers that are trained."""
        return tuple(dict.fromkeys((*self.model, *((ORDERED,) if self.order_tasks else ()))))
