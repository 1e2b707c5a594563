"""Some words of one note, in the form of each release: what a reader sees at a glance."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clinveil.core import NotesSettings, read_json, word_spans
from clinveil.corpus import Corpus, open_corpus, rows
from clinveil.releases import Outcome, source_notes

WORDS = 7
LINE = 10  # words of a line that is a sentence, not a heading


@dataclass(frozen=True)
class Place:
    """Where the words are: the id of the source note, and the number of the first word."""

    note_id: str = field(repr=False)
    first: int


def place_of(source: Corpus) -> Place | None:
    """Return the first sentence of the first note that has one; None without any."""
    for note in rows(source):
        first = _sentence(note.text)
        if first is not None:
            return Place(note.note_id, first)
    return None


def phrase(outcome: Outcome, place: Place | None) -> str:
    """Return the words at a place in a release; of another note where released notes have no
    source.
    """
    notes = released_notes(outcome)
    if place is None or notes is None:
        return ""
    released_id = _released_id(outcome.folder.vault, place.note_id)
    for note in rows(notes):
        first = place.first if note.note_id == released_id else None
        if released_id is None:
            first = _sentence(note.text)
        if first is not None:
            return _words(note.text, first)
    return ""


def released_notes(outcome: Outcome) -> Corpus | None:
    """Return the notes of a release, or those that were kept in the vault because of a test seed;
    None where a failed gate left none.
    """
    notes = read_json(outcome.folder.vault / "manifest.json")["notes"]
    roles = NotesSettings(text=notes["text"], id=notes["id"], preset="none")
    for folder in (outcome.folder.release, outcome.folder.refused):
        if (folder / notes["file"]).exists():
            return open_corpus(folder / notes["file"], roles)
    return None


def _released_id(vault: Path, source_id: str) -> str | None:
    """Return the released id of a source note; None without a crosswalk."""
    if not (vault / "crosswalk.parquet").exists():
        return None
    pairs = source_notes(vault).items()
    return next((released for released, source in pairs if source == source_id), "")


def _sentence(text: str) -> int | None:
    """Return the number of the first word of the first line that is long enough."""
    before = 0
    for line in text.splitlines():
        n_words = len(list(word_spans(line)))
        if n_words >= LINE:
            return before
        before += n_words
    return None


def _words(text: str, first: int) -> str:
    """Return words of a text from a word on, in one line."""
    spans = list(word_spans(text))
    first = max(0, min(first, len(spans) - WORDS))
    chosen = spans[first : first + WORDS]
    return " ".join(text[chosen[0][0] : chosen[-1][1]].split()) if chosen else ""
