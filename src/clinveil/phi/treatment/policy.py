"""Policies: a treatment for every label of `spans.LABELS`.

The built-in policies are files in `profiles/`; a site's own file overrides one of them. A label
that such a file does not mention has the treatment of its base profile.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clinveil.core import LABELS, UsageError
from clinveil.phi.detection.word_list import WordList

_WORDS = ("find_words", "keep_words")
Mode = Literal["remove", "replace", "tag"]


class Treatment(Enum):
    """Replacement of an identifier.

    REMOVE: nothing. TAG: its label in brackets. MASK: three asterisks for any length. SURROGATE: an
    invented identifier. SHIFT: the date, moved by the patient's secret offset. GENERALISE: a
    coarser value (the year, 90+, three digits of a postal code, the state). KEEP: the identifier
    itself.
    """

    KEEP = "keep"
    REMOVE = "remove"
    TAG = "tag"
    MASK = "mask"
    SURROGATE = "surrogate"
    SHIFT = "shift"
    GENERALISE = "generalise"


MASK = "***"
_ALWAYS = (Treatment.KEEP, Treatment.REMOVE, Treatment.TAG, Treatment.MASK)
# There are no surrogates for references to photographs or fingerprints.
_OTHER_TREATMENTS: dict[str, tuple[Treatment, ...]] = {
    "DATE": (Treatment.SHIFT, Treatment.GENERALISE),
    "AGE": (Treatment.GENERALISE,),
    "ZIP": (Treatment.SURROGATE, Treatment.GENERALISE),
    "CITY": (Treatment.SURROGATE, Treatment.GENERALISE),
    "BIOMETRIC": (),
    "PHOTO": (),
}
_DESCRIPTIONS = {
    Treatment.KEEP: "KEPT unchanged by the policy",
    Treatment.REMOVE: "removed",
    Treatment.TAG: "tagged",
    Treatment.MASK: "masked",
    Treatment.SURROGATE: "replaced by a surrogate, or by a tag if none can be generated",
    Treatment.SHIFT: "shifted by a secret offset per patient, or replaced by a tag if that fails",
    Treatment.GENERALISE: "generalised, or replaced by a tag if that fails",
}


class TreatedSpan(NamedTuple):
    """Replacement of a span, and the treatment applied: that of the policy, or a tag if it
    failed.
    """

    text: str
    action: Treatment


def allowed(label: str) -> tuple[Treatment, ...]:
    """Return the treatments that a label can have."""
    return _ALWAYS + _OTHER_TREATMENTS.get(label, (Treatment.SURROGATE,))


def tag(label: str) -> str:
    """Return the tag of a label: `[NAME]`."""
    return f"[{label}]"


@dataclass(frozen=True)
class Policy:
    """Treatment of each label.

    Attributes:
        name: of the profile, the mode or the file.
        treatments: of every label of `spans.LABELS`.
        recall_first: whether detection prefers recall to precision (`finder.off_list`).
        find_words, keep_words: words that are always replaced, and words that are never replaced.
        files: those that the policy was read from.
    """

    name: str
    treatments: Mapping[str, Treatment]
    recall_first: bool = False
    find_words: WordList | None = None
    keep_words: WordList | None = None
    files: tuple[Path, ...] = ()

    @classmethod
    def of_mode(cls, mode: str) -> Policy:
        """Return the policy of a mode: remove all, tag all, or (`replace`) the profile research."""
        if mode == "replace":
            return cls.of_profile("research")
        if mode not in ("remove", "tag"):
            raise UsageError(f"unknown mode {mode!r}", hint="use remove, replace or tag")
        return cls(mode, dict.fromkeys(LABELS, Treatment(mode)))

    @classmethod
    def of_profile(cls, name: str) -> Policy:
        """Return one of `profiles()`. Raises UsageError for an unknown name."""
        if name not in profiles():
            raise UsageError(
                f"unknown PHI profile {name!r}", hint="one of " + ", ".join(profiles())
            )
        return _profile(name)

    @classmethod
    def read(cls, path: Path) -> Policy:
        """Read a site's policy file (docs/deidentification.md). Raises UsageError with file, key
        and allowed values.
        """
        try:
            fields = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise UsageError("file not found or not valid TOML", where=path.name) from None
        policy = _policy("a policy file", path.name, fields)  # the file name may identify the site
        return _with_words(policy, path, fields)

    def __getitem__(self, label: str) -> Treatment:
        """Return the treatment of a label. Raises UsageError for an unknown one, so that nothing is
        kept by mistake.
        """
        if label not in self.treatments:
            raise UsageError(f"unknown PHI label {label!r}")
        return self.treatments[label]

    @property
    def kept(self) -> frozenset[str]:
        """Labels that are kept unchanged."""
        return frozenset(
            label for label, treatment in self.treatments.items() if treatment is Treatment.KEEP
        )

    @property
    def warning(self) -> str:
        """Warning about kept labels; empty if there are none."""
        return (
            f"KEPT: the policy ({self.name}) keeps {', '.join(sorted(self.kept))} unchanged"
            if self.kept
            else ""
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the policy in hex, without its name."""
        return hashlib.sha256(json.dumps(self.record(), sort_keys=True).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """Return the policy without its name, ready for JSON."""
        labels = {label: treatment.value for label, treatment in self.treatments.items()}
        lists = (("find_words", self.find_words), ("keep_words", self.keep_words))
        words = {
            f"{name}_sha256": word_list.digest for name, word_list in lists if word_list is not None
        }
        return {"labels": labels, "recall_first": self.recall_first, **words}

    def describe(self, label: str) -> str:
        """Return a description of the treatment of a label."""
        return _DESCRIPTIONS[self[label]]


@cache
def profiles() -> tuple[str, ...]:
    """Return the names of the built-in profiles."""
    entries = files("clinveil.phi.treatment").joinpath("profiles").iterdir()
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in entries if file.name.endswith(".toml"))
    )


@cache
def _profile(name: str) -> Policy:
    file = files("clinveil.phi.treatment").joinpath("profiles", f"{name}.toml")
    return _policy(name, file.name, tomllib.loads(file.read_text(encoding="utf-8")), builtin=True)


def _policy(name: str, where: str, fields: Mapping[str, Any], *, builtin: bool = False) -> Policy:
    _check_names(where, "unknown key", fields, ("base", "labels", "recall_first", *_WORDS))
    base = fields.get("base", "safe-harbor")
    if not builtin and base not in profiles():
        raise UsageError(
            "base: unknown profile", where=where, hint="one of " + ", ".join(profiles())
        )
    labels = fields.get("labels", {})
    if not isinstance(labels, dict):
        raise UsageError(
            "labels: not a table",
            where=where,
            hint='write [labels], then lines such as NAME = "tag"',
        )
    _check_names(where, "labels: unknown label", labels, LABELS)
    parent = Policy(name, {}) if builtin else _profile(base)
    treatments = dict(parent.treatments)
    for label, value in labels.items():
        names = [treatment.value for treatment in allowed(label)]
        if value not in names:
            message = f"labels.{label}: not a treatment of this label"
            raise UsageError(message, where=where, hint="one of " + ", ".join(names))
        treatments[label] = Treatment(value)
    recall_first = fields.get("recall_first", parent.recall_first)
    if not isinstance(recall_first, bool):
        raise UsageError("recall_first: not true or false", where=where)
    return Policy(name, treatments, recall_first)


def _with_words(policy: Policy, path: Path, fields: Mapping[str, Any]) -> Policy:
    """Return a policy with its lists of words; their paths are relative to the policy file."""
    paths = dict[str, Path]()
    for name in _WORDS:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise UsageError(
                f"{name}: not the path of a file",
                where=path.name,
                hint=f'write {name} = "words.txt"',
            )
        if value is not None:
            paths[name] = path.parent / value
    lists = {
        name: WordList.read(list_path, labels=name == "find_words")
        for name, list_path in paths.items()
    }
    find_words = lists.get("find_words")
    if find_words is not None and (kept := sorted(find_words.labels & policy.kept)):
        hint = f"choose another treatment of {kept[0]}, or another label in the list"
        raise UsageError(f"find_words: the policy keeps {kept[0]}", where=path.name, hint=hint)
    files = (path, *paths.values())
    return replace(policy, find_words=find_words, keep_words=lists.get("keep_words"), files=files)


def _check_names(where: str, message: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{message} {name!r}", where=where, hint="one of " + ", ".join(known))
