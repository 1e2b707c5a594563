"""Recall and precision on notes with gold spans, and identifiers that remain in released notes.

Counts are kept by patient, so that intervals are over patients.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clinveil.core import Better, Finding, Ints, Span, private_text
from clinveil.lexicons import name_form
from clinveil.stats import HitCounts, MeasureSpec
from clinveil.utility.deidentification.score import NoteScore, score

SOURCE = (
    "i2b2 2014 de-identification (Stubbs et al. 2015): entity and token recall; "
    "leaks by note and patient: this project"
)
METRICS = {
    "whole": "every letter and digit",
    "exact": "the same ends",
    "partly": "at least one letter or digit",
    "named": "every letter and digit, with its label",
}
PIECES = {"tokens": "all_tokens", "characters": "all_characters"}
_WORDS = re.compile(r"[^\W_]+")
AROUND = 40  # characters of context in the list of errors
SHORTEST = 3  # letters and digits; a shorter age or initial may occur in any note


class GoldNote(NamedTuple):
    """A note with gold spans and detected spans; its repr shows nothing of it."""

    note_id: str
    patient_id: str
    text: str
    gold: Sequence[Span]
    detected: Sequence[Span]

    def __repr__(self) -> str:
        return "GoldNote()"


@dataclass
class PatientSums:
    """Sums by patient.

    Attributes:
        counts: series -> patient -> [hits, total].
    """

    counts: dict[str, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(dict), repr=False
    )
    notes: int = 0

    def _count(self, series: str, note: GoldNote, hits: int, total: int = 1) -> None:
        sums = self.counts[series].setdefault(note.patient_id, [0, 0])
        sums[0] += hits
        sums[1] += total

    def of(self, series: str) -> Ints:
        """Return hits and totals of each patient, (n_patients, 2)."""
        return np.array(list(self.counts.get(series, {}).values()), dtype=np.int64).reshape(-1, 2)


@dataclass
class Tally(PatientSums):
    """Counts of detected identifiers.

    Attributes:
        complete: whether the gold spans contain all identifiers of the notes, which precision
            requires.
        labels: number of gold spans.
    """

    complete: bool = True
    labels: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, note: GoldNote) -> NoteScore:
        """Count a note; return its score."""
        done = score(note.text, note.gold, note.detected)
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
        for one in done.detected if self.complete else ():
            self._count("precision exact", note, one.exact)
            self._count("precision right", note, one.right)
            self._count(f"found {one.label}", note, one.right)
        if self.complete:
            self._count("words", note, done.touched, done.words)
            self._count("clinical words", note, done.clinical_touched, done.clinical)
        return done


def gold_findings(tally: Tally, clusters: str = "patients") -> list[Finding]:
    """Return all findings of a tally. clusters: "patients", or "notes" if patients are unknown."""
    recall = [
        _share(tally, "phi.recall", f"recall {metric}", clusters, label=text)
        for metric, text in METRICS.items()
    ]
    recall += [
        _share(tally, "phi.recall", f"recall {piece}", clusters, label=piece, unit=piece)
        for piece in PIECES
    ]
    labels = sorted(tally.labels, key=lambda label: (-tally.labels[label], label))
    recall += [
        _share(tally, "phi.recall", f"label {label}", clusters, label=label) for label in labels
    ]
    leaks = [_share(tally, "phi.leaky_notes", "leaky", clusters, unit="notes", better="lower")]
    by_patient = tally.of("leaky")
    if clusters == "patients" and len(by_patient):
        leaking = np.stack([by_patient[:, 0] > 0, np.ones(len(by_patient))], axis=1).astype(
            np.int64
        )
        spec = MeasureSpec(
            measure="phi.leaky_patients", over=clusters, unit=clusters, source=SOURCE
        )
        leaks.append(spec.share(HitCounts.of_clusters(leaking)))
    if not tally.complete:
        why = "the gold spans are incomplete, so false positives cannot be counted"
        return [*recall, *leaks, MeasureSpec(measure="phi.precision").missing(why)]
    return [*recall, *leaks, *_of_detected(tally, clusters)]


def _of_detected(tally: Tally, clusters: str) -> list[Finding]:
    metrics = {
        "exact": "the same ends as an identifier",
        "right": "a letter or digit of an identifier",
    }
    findings = [
        _share(tally, "phi.precision", f"precision {m}", clusters, label=text)
        for m, text in metrics.items()
    ]
    labels = sorted(name.partition(" ")[2] for name in tally.counts if name.startswith("found "))
    findings += [
        _share(tally, "phi.precision", f"found {label}", clusters, label=label) for label in labels
    ]
    for name, series in (("words", "all words"), ("clinical words", "clinical words")):
        findings.append(
            _share(
                tally, "phi.touched", name, clusters, unit="words", better="lower", series=series
            )
        )
    return findings


def _share(
    tally: Tally,
    measure: str,
    name: str,
    clusters: str,
    *,
    unit: str = "identifiers",
    better: Better = "higher",
    label: str = "",
    series: str = "",
) -> Finding:
    counts = tally.of(name)
    labels = (label,) if label else ()
    numbers = {"notes": tally.notes}
    if not counts[:, 1].sum():
        spec = MeasureSpec(measure=measure, series=series)
        why = "these notes have no item of this kind"
        return spec.missing(why, labels=labels, numbers=numbers)
    spec = MeasureSpec(
        measure=measure, series=series, over=clusters, unit=unit, better=better, source=SOURCE
    )
    return spec.share(HitCounts.of_clusters(counts), labels=labels, numbers=numbers)


@dataclass
class Survival(PatientSums):
    """Identifiers of the source that remain in released notes, by patient and label.

    An identifier remains if its words occur in sequence in the released note of the same id,
    ignoring case and accents. Identifiers of fewer than three letters and digits are not searched.
    Words of names are also searched separately.
    Chance: the same search in the released note of another patient.
    """

    def add(self, note: GoldNote, written: str, other: str | None) -> None:
        """Count a note. written: its released text. other: a released text of another patient."""
        self.notes += 1
        for words, prefix in ((_forms(written), ""), (_forms(other or ""), "chance ")):
            if prefix and other is None:
                continue
            identifiers = (
                (span.label, _forms(note.text[span.start : span.end])) for span in note.gold
            )
            remains = [
                (label, form in words)
                for label, form in identifiers
                if len(form.replace(" ", "")) >= SHORTEST
            ]
            for label, hit in remains:
                self._count(f"{prefix}{label}", note, hit)
                self._count(f"{prefix}all", note, hit)
            names = (
                _forms(note.text[span.start : span.end]).split()
                for span in note.gold
                if span.label == "NAME"
            )
            for token in {word for name in names for word in name if len(word) >= SHORTEST}:
                self._count(f"{prefix}words of names", note, f" {token} " in words)
            if remains and not prefix:
                self._count("notes", note, any(hit for _, hit in remains))

    def findings(self, clusters: str = "patients") -> Iterator[Finding]:
        """Yield findings for all identifiers, notes, words of names, and each label by
        frequency.
        """
        sizes = {
            name: sum(total for _, total in counts.values()) for name, counts in self.counts.items()
        }
        labels = sorted(
            (name for name in sizes if name.isupper()), key=lambda label: (-sizes[label], label)
        )
        for name in ("all", "notes", "words of names", *labels):
            if name in self.counts:
                yield self._finding(name, clusters)

    def _finding(self, name: str, clusters: str) -> Finding:
        chance = self.of(f"chance {name}").sum(axis=0)
        unit = {"notes": "notes", "words of names": "words"}.get(name, "identifiers")
        series = "all identifiers" if name == "all" else name
        spec = MeasureSpec(
            measure="phi.survives",
            series="" if name.isupper() else series,
            over=clusters,
            unit=unit,
            source=SOURCE,
            chance_is="the same identifiers in a released note of another patient",
        )
        by_chance = float(chance[0] / chance[1]) if chance[1] else None
        counts = HitCounts.of_clusters(self.of(name), chance=by_chance)
        labels = (name,) if name.isupper() else ()
        return spec.share(counts, labels=labels, numbers={"notes": self.notes})


@lru_cache(maxsize=4)
def _forms(text: str) -> str:
    """Return the normalized words of a text, separated and surrounded by spaces."""
    return (
        " "
        + " ".join(
            filter(
                None,
                (
                    name_form(word) if word.isalpha() else word.lower()
                    for word in _WORDS.findall(text)
                ),
            )
        )
        + " "
    )


class ErrorList:
    """Errors as lines of JSON: kind of error, note, offsets, label, text and context; the list is
    secret.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, note: GoldNote, done: NoteScore) -> None:
        """Add the errors of a note."""
        for error, span in _errors(note, done):
            around = (
                note.text[max(0, span.start - AROUND) : span.start],
                note.text[span.end : span.end + AROUND],
            )
            line: dict[str, Any] = {
                "error": error,
                "note_id": note.note_id,
                "start": span.start,
                "end": span.end,
            }
            line |= {"label": span.label, "text": note.text[span.start : span.end]}
            line |= {
                "before": around[0],
                "after": around[1],
                "detector": span.detector,
                "why": span.why,
            }
            self._lines.append(json.dumps(line, ensure_ascii=False))

    def write(self, path: Path) -> int:
        """Write an owner-only file; return the number of errors."""
        private_text(path, "".join(line + "\n" for line in self._lines))
        return len(self._lines)


def _errors(note: GoldNote, done: NoteScore) -> Iterator[tuple[str, Span]]:
    for span, (_, hits) in zip(note.gold, done.gold, strict=True):
        if not hits.whole:
            yield "found in part" if hits.partly else "missed", span
    for span, span_score in zip(note.detected, done.detected, strict=True):
        if not span_score.right:
            yield "no identifier", span


Read = Callable[[GoldNote, NoteScore], None]


def tally_notes(
    notes: Iterable[GoldNote], *, complete: bool = True, read: Read | None = None
) -> Tally:
    """Count notes. read: called with each note and its score, for a private list of errors."""
    tally = Tally(complete=complete)
    for note in notes:
        done = tally.add(note)
        if read is not None:
            read(note, done)
    return tally
