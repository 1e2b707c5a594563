"""`Adapter`: a library of others as one detector among ours, `--also KIND` or `--also KIND:PATH`.

To add one, write a file of `adapters/` that registers an `Adapter`; other distributions name theirs in the entry point
group `clinveil.adapters`. Nothing is ever downloaded: a model is a folder on this disk.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from clinveil.core.errors import InputError, InputWarning, UsageError
from clinveil.core.registry import Registry
from clinveil.core.spans import LABELS, Span
from clinveil.phi.note import NoteView

ALIASES = {"hf": "huggingface"}
_PREFIX = re.compile(r"^[BIESLU]-")
_TITLE = re.compile(r"(?:Dr|Drs|Mr|Mrs|Ms|Mx|Prof)\b\.?\s+", re.IGNORECASE)
# Models of general text call `daily` and `two weeks ago` dates too.
_DATE = re.compile(
    r"\d{1,4}[/.-]\d|\b(?:19|20)\d\d\b|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)


class Read(NamedTuple):
    """A place in the text that was given, in code points, under the library's own label."""

    start: int
    end: int
    label: str
    score: float


class Reader(Protocol):
    """A library that is loaded and ready."""

    @property
    def labels(self) -> Iterable[str]:
        """All labels that it can give, as it calls them."""
        ...

    def read(self, text: str) -> Iterable[Read]:
        """What it finds in a text."""
        ...


@dataclass(frozen=True)
class Adapter:
    """How one library is loaded and understood.

    Attributes:
        load: makes it ready from a folder or, where it needs none, from None. Raises MissingExtra without the library,
            InputError for a folder that does not fit.
        labels: its labels -> ours, or None for what is no identifier. Labels that are not in it are said and left out.
        needs_path: whether it is nothing without a folder.
    """

    load: Callable[[Path | None], Reader]
    labels: Mapping[str, str | None]
    needs_path: bool = True


adapters: Registry[Adapter] = Registry("adapter", "clinveil.phi.adapters")


class Adapted:
    """A detector that asks an adapter's reader. A copy in another process loads the reader anew."""

    def __init__(self, spec: str) -> None:
        kind, _, where = spec.partition(":")
        self.spec, self.name = spec, ALIASES.get(kind, kind)
        self._adapter = adapters.get(self.name)
        if self._adapter.needs_path and not where:
            raise UsageError(f"--also {kind} needs a folder", hint=f"--also {kind}:/path/to/it")
        if where and not Path(where).is_dir():
            hint = "models come from a folder on this disk; none is downloaded"
            raise InputError("there is no such folder", where=f"--also {kind}", hint=hint)
        self._reader = self._adapter.load(Path(where) if where else None)
        known = {label: self._ours(label) for label in self._reader.labels}
        self.unknown = sorted(label for label in known if not self._knows(label))
        self.labels = frozenset(label for label in known.values() if label)

    def __reduce__(self) -> tuple[Any, ...]:
        return adapted, (self.spec,)

    @property
    def examples(self) -> tuple[str, ...]:
        """None: what it finds is its model's business."""
        return ()

    def find(self, note: NoteView) -> Iterator[Span]:
        """What the reader finds under labels that have one of ours."""
        for read in self._reader.read(note.plain) if note.plain.strip() else ():
            label = self._ours(read.label)
            start, end = _trimmed(note.plain, read.start, read.end, label)
            if label and start < end and (label != "DATE" or _DATE.search(note.plain, start, end)):
                yield note.span(
                    start, end, label, self.name, min(1.0, max(0.01, read.score)), _PREFIX.sub("", read.label)
                )

    def _ours(self, label: str) -> str | None:
        return self._adapter.labels.get(_plain(label), self._by_name(label))

    def _knows(self, label: str) -> bool:
        return _plain(label) in self._adapter.labels or self._by_name(label) is not None or _plain(label) == "O"

    def _by_name(self, label: str) -> str | None:
        """A site's own model may use our labels themselves."""
        return _plain(label) if _plain(label) in LABELS else None


def _plain(label: str) -> str:
    return _PREFIX.sub("", label).upper()


def _trimmed(text: str, start: int, end: int, label: str | None) -> tuple[int, int]:
    """The place without white space and marks of an earlier removal at its ends, and a name without its title."""
    while start < end and (text[start].isspace() or text[start] == "\0"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] == "\0"):
        end -= 1
    title = _TITLE.match(text, start, end) if label == "NAME" else None
    return (title.end() if title else start), end


@lru_cache(maxsize=8)
def adapted(spec: str) -> Adapted:
    """The detector of `KIND` or `KIND:PATH`, loaded once a process.

    Raises UsageError for an unknown kind, InputError and MissingExtra as the adapter does.
    """
    return Adapted(spec)


def those_of(specs: Iterable[str]) -> list[Adapted]:
    """The detectors of some specs; labels of theirs that are not understood are said (`InputWarning`)."""
    found = [adapted(spec) for spec in dict.fromkeys(specs)]
    for one in found:
        if one.unknown:
            said = f"--also {one.name}: its labels {', '.join(one.unknown)} are none of ours and are left out"
            warnings.warn(said, InputWarning, stacklevel=3)
    return found
