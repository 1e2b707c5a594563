"""Which notes of a run are reviewed, and in which order: the worst first, or as they stand in the file.

The worst note is that with most to doubt: words that may be names and were not found, and spans of low scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import default_vault, read_json
from clinveil.core.keys import Key
from clinveil.core.remote import place
from clinveil.core.runfolder import KEY
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Corpus, Note, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import read_patients
from clinveil.phi.deidentifier import Deidentifier
from clinveil.phi.note import NoteView, Word
from clinveil.phi.records import SPANS
from clinveil.phi.run import RECORD
from clinveil.phi.settings import DeidentifySettings

Order = Literal["worst", "given"]
AGAIN = "run clinveil deidentify again, with --spans"
_SHORT = 4  # letters; a shorter word in capitals is mostly an abbreviation


@dataclass(frozen=True)
class Entry:
    """A note of the queue.

    Attributes:
        spans: what the run found. suspects: places of words that may be names and that it did not find.
        number: its row among the notes of the run, from 0.
    """

    note: Note
    spans: tuple[Span, ...] = field(repr=False)
    suspects: tuple[tuple[int, int], ...] = field(repr=False)
    number: int

    @property
    def doubt(self) -> float:
        """How much there is to doubt: suspects, and 1 less the score of each span."""
        return len(self.suspects) + sum(1 - span.score for span in self.spans)


@dataclass(frozen=True)
class PastRun:
    """A run of `clinveil deidentify` with `--spans`, as its vault tells of it."""

    vault: Path
    notes: Path
    settings: DeidentifySettings

    @property
    def corpus(self) -> Corpus:
        """The notes that it read."""
        return open_corpus(self.notes, self.settings.notes)

    @property
    def key(self) -> Key:
        """The key that it treated them with."""
        if self.settings.seed is not None:
            return Key.from_seed(self.settings.seed)
        return Key.load(self.vault / KEY)

    def deidentifier(self) -> Deidentifier:
        """What treats spans as the run did."""
        how = self.settings.identifiers
        return Deidentifier.of(how, self.key, patients=read_patients(how.patients) if how.patients else None)

    def entries(self) -> Iterator[Entry]:
        """All its notes with what was found in them, in order. Raises InputError where the notes are others now."""
        groups = groupby(_lines(self.vault / SPANS), key=lambda found: found[0])
        waiting = next(groups, None)
        for number, note in enumerate(rows(self.corpus)):
            spans: tuple[Span, ...] = ()
            if waiting is not None and waiting[0] == note.note_id:
                spans = tuple(_checked(note.text, waiting[1]))
                waiting = next(groups, None)
            yield Entry(note, spans, tuple(suspects(note.text, spans)), number)
        if waiting is not None:
            raise _others()


def past_run(out: Path, *, vault: Path | None = None, notes: Path | None = None) -> PastRun:
    """The run that made OUT. `notes`: where the notes lie now, if they were moved.

    Raises:
        UsageError: no run is there, or it kept no spans. InputError: its record is damaged.
    """
    own = vault or (out if (out / RECORD).is_file() else default_vault(out))
    said = read_json(own / RECORD)
    if not isinstance(said, dict) or not (own / SPANS).is_file():
        what = "is no run of clinveil deidentify that kept its spans"
        raise UsageError(what, where=out.name, hint="clinveil deidentify NOTES -o OUT --spans")
    try:
        settings, folder = DeidentifySettings.model_validate(said["settings"]), Path(said["folder"])
        read = notes or place(said["notes"])
    except (KeyError, TypeError, ValueError):
        raise InputError("its record is damaged, or of another version", where=own.name, hint=AGAIN) from None
    if not settings.spans or settings.miss_rate is not None:
        raise UsageError("the last run there kept no spans of the detectors", where=out.name, hint=AGAIN)
    if not read.exists():
        raise InputError("the notes are where they were no more", where=read.name, hint="--notes NOTES")
    return PastRun(own, read, _from(folder, settings))


def _from(folder: Path, settings: DeidentifySettings) -> DeidentifySettings:
    """The settings with the places of their files as they were seen from the run's folder."""
    how = dict(settings.identifiers)
    return settings.but(**{name: folder / value for name, value in how.items() if isinstance(value, Path)})


def queue(entries: Iterable[Entry], most: int, order: Order) -> list[Entry]:
    """The notes to review, `most` at most; only they are held in memory."""
    if order == "given":
        return list(islice(entries, most))
    return nlargest(most, entries, key=lambda entry: (entry.doubt, -entry.number))


def suspects(text: str, spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Where words stand that may be names and that no span covers: written with a capital, and in no list of words."""
    view, covered = NoteView(text), sorted((span.start, span.end) for span in spans)
    at = 0
    for word in view.words:
        if not _suspect(word):
            continue
        start, end = view.aligned.source_offsets(word.start, word.end)
        while at < len(covered) and covered[at][1] <= start:
            at += 1
        if at == len(covered) or covered[at][0] >= end:
            yield start, end


def _suspect(word: Word) -> bool:
    if not word.capital or word.ordinary or len(word.text) < 2:
        return False
    return word.listed or not word.shouted or len(word.text) > _SHORT


def _lines(path: Path) -> Iterator[tuple[str, Span, str]]:
    """Note, span and its text, of each line of a run's spans."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                said = json.loads(line)
                more = said["detector"], said["score"], said.get("why", "")
                yield said["note_id"], Span(said["start"], said["end"], said["label"], *more), said["text"]
            except (ValueError, KeyError, TypeError, InputError):
                raise InputError(f"line {number} is no span", where=path.name, hint=AGAIN) from None


def _checked(text: str, found: Iterable[tuple[str, Span, str]]) -> Iterator[Span]:
    for _, span, seen in found:
        if text[span.start : span.end] != seen:
            raise _others()
        yield span


def _others() -> InputError:
    what = "the notes are not those of the run: what it found does not stand in them"
    return InputError(what, hint=f"name the notes that were read (--notes), or {AGAIN}")
