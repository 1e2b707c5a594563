"""Recall and more on notes with gold spans: what a finder found in them, or what is left in notes that were written.

Everything is counted by patient, so that intervals are by patient too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from clinveil.core.finding import Detail, Finding
from clinveil.core.spans import Span
from clinveil.core.types import Ints
from clinveil.lexicons.names import name_form
from clinveil.stats.findings import clustered_share, unmeasured
from clinveil.utility.deidentification.score import NoteScore, score

SOURCE = "i2b2 2014 de-identification (Stubbs et al. 2015): entity and token recall; leaks by note and patient are ours"
METRICS = {
    "whole": "every letter and digit",
    "exact": "the same ends",
    "partly": "at least one letter or digit",
    "named": "every letter and digit, with its label",
}
PIECES = {"tokens": "all_tokens", "characters": "all_characters"}
_WORDS = re.compile(r"[^\W_]+")
SHORTEST = 3  # letters and digits: a shorter age or initial stands in any note


class GoldNote(NamedTuple):
    """A note, whose it is, where its identifiers stand, and where something was found. Its repr shows nothing."""

    note_id: str
    patient_id: str
    text: str
    gold: Sequence[Span]
    found: Sequence[Span]

    def __repr__(self) -> str:
        return "GoldNote()"


@dataclass
class Tally:
    """Sums by patient.

    Attributes:
        complete: whether the gold spans are all identifiers of these notes; only then is there a precision.
        counts: (patient, what) -> [hits, things].
        leaky: (patient, note is leaky) for each note with an identifier.
    """

    complete: bool = True
    counts: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict), repr=False)
    labels: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    notes: int = 0

    def add(self, note: GoldNote) -> NoteScore:
        """Count a note; its score."""
        done = score(note.text, note.gold, note.found)
        self.notes += 1
        for label, hits in done.gold:
            self.labels[label] += 1
            for metric in METRICS:
                self._count(f"recall {metric}", note, getattr(hits, metric))
            for piece, things in PIECES.items():
                self._count(f"recall {piece}", note, getattr(hits, piece), getattr(hits, things))
            self._count(f"label {label}", note, hits.whole)
        if done.gold:
            self._count("leaky", note, done.leaky)
        if self.complete:
            self._found(note, done)
        return done

    def _found(self, note: GoldNote, done: NoteScore) -> None:
        for one in done.found:
            self._count("precision exact", note, one.exact)
            self._count("precision right", note, one.right)
            self._count(f"found {one.label}", note, one.right)
        self._count("words", note, done.touched, done.words)
        self._count("clinical words", note, done.clinical_touched, done.clinical)

    def _count(self, what: str, note: GoldNote, hits: int, things: int = 1) -> None:
        sums = self.counts[what].setdefault(note.patient_id, [0, 0])
        sums[0] += hits
        sums[1] += things

    def of(self, what: str) -> Ints:
        """Hits and things of each patient, (n_patients, 2)."""
        return np.array(list(self.counts.get(what, {}).values()), dtype=np.int64).reshape(-1, 2)


def gold_findings(tally: Tally, over: str = "patients") -> list[Finding]:
    """All findings of a tally. over: whose the notes are ("notes" where nothing tells patients apart)."""
    found = [_share(tally, "phi.recall", f"recall {metric}", over, metric=said) for metric, said in METRICS.items()]
    found += [_share(tally, "phi.recall", f"recall {piece}", over, metric=piece, unit=piece) for piece in PIECES]
    labels = sorted(tally.labels, key=lambda label: (-tally.labels[label], label))
    found += [_share(tally, "phi.recall", f"label {label}", over, label=label) for label in labels]
    found += _leaks(tally, over)
    return found + (_of_found(tally, over) if tally.complete else [_incomplete()])


def _leaks(tally: Tally, over: str) -> Iterator[Finding]:
    yield _share(tally, "phi.leaky_notes", "leaky", over, unit="notes", better="lower")
    by_patient = tally.of("leaky")
    if over == "patients" and len(by_patient):
        leaking = np.stack([by_patient[:, 0] > 0, np.ones(len(by_patient))], axis=1).astype(np.int64)
        yield clustered_share("phi.leaky_patients", leaking, over=over, unit=over, source=SOURCE)


def _of_found(tally: Tally, over: str) -> list[Finding]:
    said = {"exact": "the same ends as an identifier", "right": "a letter or digit of an identifier"}
    found = [_share(tally, "phi.precision", f"precision {m}", over, metric=words) for m, words in said.items()]
    labels = sorted(what.partition(" ")[2] for what in tally.counts if what.startswith("found "))
    found += [_share(tally, "phi.precision", f"found {label}", over, label=label) for label in labels]
    for what, series in (("words", "all words"), ("clinical words", "clinical words")):
        found.append(_share(tally, "phi.touched", what, over, unit="words", better="lower", series=series))
    return found


def _share(
    tally: Tally, measure: str, what: str, over: str, *, unit: str = "identifiers", better: Any = "higher", **names: str
) -> Finding:
    counts = tally.of(what)
    detail: Detail = {"notes": tally.notes, **names}
    if not counts[:, 1].sum():
        return unmeasured(measure, "there is nothing of the kind in these notes", detail=detail)
    return clustered_share(measure, counts, over=over, better=better, unit=unit, source=SOURCE, detail=detail)


def _incomplete() -> Finding:
    return unmeasured("phi.precision", "the gold spans were said to be incomplete, so nothing found is wrong for sure")


@dataclass
class Survival:
    """Which identifiers of the source still stand in the notes that were written, by patient and label.

    An identifier stands where its words follow each other in the written note of the same id, whatever their case and
    accents; one of fewer than three letters and digits is not looked for. A word of a name stands by itself.
    Chance: the same for the written note of another patient.
    """

    counts: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict), repr=False)
    notes: int = 0

    def add(self, note: GoldNote, written: str, other: str | None) -> None:
        """Count a note. other: a written note of another patient."""
        self.notes += 1
        for words, prefix in ((_forms(written), ""), (_forms(other or ""), "chance ")):
            if prefix and other is None:
                continue
            there = ((span.label, _forms(note.text[span.start : span.end])) for span in note.gold)
            left = [(label, form in words) for label, form in there if len(form.replace(" ", "")) >= SHORTEST]
            for label, stands in left:
                self._count(f"{prefix}{label}", note.patient_id, stands)
                self._count(f"{prefix}all", note.patient_id, stands)
            for token in _name_words(note):
                self._count(f"{prefix}words of names", note.patient_id, f" {token} " in words)
            if left and not prefix:
                self._count("notes", note.patient_id, any(stands for _, stands in left))

    def _count(self, what: str, patient: str, hit: bool) -> None:
        sums = self.counts[what].setdefault(patient, [0, 0])
        sums[0] += hit
        sums[1] += 1

    def findings(self, over: str = "patients") -> Iterator[Finding]:
        """One for all, for notes, for words of names and for each label, the most frequent first."""
        sizes = {what: sum(things for _, things in of.values()) for what, of in self.counts.items()}
        labels = sorted((what for what in sizes if what.isupper()), key=lambda label: (-sizes[label], label))
        for what in ("all", "notes", "words of names", *labels):
            if what in self.counts:
                yield self._finding(what, self.counts[what], over)

    def _finding(self, what: str, of: Mapping[str, list[int]], over: str) -> Finding:
        guessed = np.array(list(self.counts.get(f"chance {what}", {}).values())).reshape(-1, 2).sum(axis=0)
        unit = {"notes": "notes", "words of names": "words"}.get(what, "identifiers")
        names = {"label": what} if what.isupper() else {"series": "all identifiers" if what == "all" else what}
        detail: Detail = {"notes": self.notes, **names}
        return clustered_share(
            "phi.survives",
            np.array(list(of.values()), dtype=np.int64),
            over=over,
            unit=unit,
            source=SOURCE,
            detail=detail,
            chance=float(guessed[0] / guessed[1]) if guessed[1] else None,
            chance_is="the same identifiers in a written note of another patient" if guessed[1] else "",
        )


@lru_cache(maxsize=4)
def _forms(text: str) -> str:
    """The words of a text as forms between blanks."""
    return " " + " ".join(filter(None, map(_form, _WORDS.findall(text)))) + " "


def _form(word: str) -> str:
    return word.lower() if not word.isalpha() else name_form(word)


def _name_words(note: GoldNote) -> set[str]:
    """The words of a note's names that are more than an initial."""
    names = (_forms(note.text[span.start : span.end]).split() for span in note.gold if span.label == "NAME")
    return {word for name in names for word in name if len(word) >= SHORTEST}


Read = Callable[[GoldNote, NoteScore], None]


def tally_notes(notes: Iterable[GoldNote], *, complete: bool = True, read: Read | None = None) -> Tally:
    """Count notes. read: is shown each with its score, for a private list of errors."""
    tally = Tally(complete)
    for note in notes:
        done = tally.add(note)
        if read is not None:
            read(note, done)
    return tally
