"""What becomes of each kind of identifier in each mode. Total: every label of `spans.LABELS` has a treatment."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from clinveil.core.errors import UsageError
from clinveil.core.spans import LABELS

Mode = Literal["remove", "replace", "tag"]


class Treatment(Enum):
    """What stands in the place of an identifier."""

    NOTHING = "nothing"
    TAG = "tag"
    SURROGATE = "surrogate"


# There is no surrogate for what only hints at a picture or a finger: it is tagged.
_TAGGED = frozenset({"BIOMETRIC", "PHOTO"})


def treatment(label: str, mode: Mode) -> Treatment:
    """The treatment of a label in a mode. Raises UsageError for a label or mode that is not known: nothing is kept."""
    if label not in LABELS:
        raise UsageError(f"unknown PHI label {label!r}")
    if mode == "remove":
        return Treatment.NOTHING
    if mode == "tag":
        return Treatment.TAG
    if mode == "replace":
        return Treatment.TAG if label in _TAGGED else Treatment.SURROGATE
    raise UsageError(f"unknown mode {mode!r}", remedy="remove, replace or tag")


def tag(label: str) -> str:
    """The typed tag of a label: `[NAME]`."""
    return f"[{label}]"
