"""Canaries: invented identifiers in the site's own notes, and how many of them the engine leaves.

Two sorts of places.
- `found`: the places of identifiers that the engine found. The identifier goes, the words around it stay. This says how
  far the engine depends on what stands in the place (an unusual name, another form of a date). Places in which it finds
  nothing are never planted, so what it leaves there is not seen: survival here is too low, not too high, but for what
  it took for an identifier wrongly, where a canary rightly survives.
- `role`: places where the notes speak of a person or a day without an identifier: "the patient", "her daughter",
  "yesterday". They are chosen by their words and not by the engine, so that they show places where nothing gives a
  name away but itself. A real note names people mostly with more around them: survival here is too high.

A note is rewritten as a whole: each word of a name becomes one new word throughout, as one note has one person.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.lexicons.names import all_given_names, name_form, surnames
from clinveil.phi.detectors.names import PARTICLES
from clinveil.phi.finder import Finder
from clinveil.phi.validation.invented import SHAPES, invented, invented_name, name_pools
from clinveil.stats.findings import clustered_share

MEASURE = "validate.canaries"
FOUND, ROLE = "found", "role"
_WORD = re.compile(r"[^\W\d_]{2,}(?:'[^\W\d_]+)*")
_PERSON = re.compile(
    r"\b(?P<the>[Tt]he (?:patient|pt)|[Pp]atient|[Pp]t)(?= (?:is|was|has|had|reports?|denies|states?|presents|presented"
    r"|will|underwent|tolerated|did|comes|came|continues|notes)\b)"
    r"|\b[Hh](?:is|er) (?P<kin>wife|husband|daughter|son|mother|father|sister|brother|friend)\b(?=[ ,.])"
)
_DAY = re.compile(r"\b(?:today|yesterday|this morning|last week)\b")
_SKIPPED = frozenset(["dr", "mr", "mrs", "ms", "miss", "md", "rn", "do", "phd", "jr", "sr", "prof"]) | PARTICLES
BIAS = {
    FOUND: "places in which the engine never finds anything are not seen: the true survival is higher",
    ROLE: "nothing but the name itself tells: names that stand beside a title or in a field survive more seldom",
}


class Canary(NamedTuple):
    """One that was planted: where in the rewritten note, of what kind, and in what sort of place."""

    start: int
    end: int
    label: str
    kind: str
    where: str


def planted(text: str, spans: Sequence[Span], kind: str, rng: Generator) -> tuple[str, list[Canary]]:
    """A note with all that was found replaced by other identifiers; those of labels that are not invented stay."""
    named: dict[str, str] = {}
    edits: list[Edit] = []
    for span in spans:
        if span.label == "NAME":
            edits += _renamed(text, span, kind, named, rng)
        elif span.label in SHAPES and not (span.label == "AGE" and not text[span.start : span.end].isdigit()):
            new, form = invented(span.label, text[span.start : span.end], rng)
            edits.append((span.start, span.end, new, span.label, form))
    return _edited(text, edits, FOUND)


def planted_for_roles(text: str, kind: str, rng: Generator) -> tuple[str, list[Canary]]:
    """A note that names people and gives days where it spoke of roles and of today: of each at most two."""
    edits: list[Edit] = []
    for match in list(_PERSON.finditer(text))[:2]:
        full = f"{invented_name(kind, family=False, rng=rng)} {invented_name(kind, family=True, rng=rng)}"
        start = match.end() if match["kin"] else match.start()
        edits.append((start, match.end(), f" {full}" if match["kin"] else full, "NAME", kind))
    for match in list(_DAY.finditer(text))[:2]:
        new, form = invented("DATE", match[0], rng)
        edits.append((match.start(), match.end(), f"on {new}", "DATE", form))
    return _edited(text, sorted(edits), ROLE)


Edit = tuple[int, int, str, str, str]


def _renamed(text: str, span: Span, kind: str, named: dict[str, str], rng: Generator) -> Iterator[Edit]:
    """The words of a found name; titles, particles and initials stay."""
    for match in _WORD.finditer(text, span.start, span.end):
        word = re.sub("'[sS]$", "", match[0])
        form = name_form(word)
        if form in _SKIPPED:
            continue
        if form not in named:
            family = surnames().get(form, 0.0) >= all_given_names().get(form, 0.0)
            named[form] = invented_name(kind, family=family, rng=rng, besides=form)
        new = named[form]
        cased = new.upper() if word.isupper() else new.lower() if word.islower() else new
        yield match.start(), match.start() + len(word), cased, "NAME", kind


def _edited(text: str, edits: Iterable[Edit], where: str) -> tuple[str, list[Canary]]:
    pieces: list[str] = []
    canaries: list[Canary] = []
    at = length = 0
    for start, end, new, label, kind in edits:
        if start < at:
            continue
        pieces += (text[at:start], new)
        length += start - at
        lead = len(new) - len(new.lstrip()) + (3 if new.startswith("on ") and label == "DATE" else 0)
        canaries.append(Canary(length + lead, length + len(new), label, kind, where))
        length, at = length + len(new), end
    return "".join([*pieces, text[at:]]), canaries


def survived(text: str, canary: Canary, spans: Sequence[Span]) -> bool:
    """Whether a letter or digit of a canary lies in no span."""
    open_ = set(range(canary.start, canary.end))
    for span in spans:
        if span.start < canary.end and span.end > canary.start:
            open_ -= set(range(span.start, span.end))
    return any(text[at].isalnum() for at in open_)


class Tally:
    """Planted and surviving canaries by patient, of each label, kind and sort of place."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], dict[str, list[int]]] = defaultdict(
            lambda: defaultdict(lambda: [0, 0])
        )

    def add(self, patient: str, canary: Canary, *, left: bool) -> None:
        """Count one, for its kind and for all of its label."""
        for kind in ("all", canary.kind):
            entry = self._counts[canary.where, canary.label, kind][patient]
            entry[0] += left
            entry[1] += 1

    def findings(self) -> list[Finding]:
        """One a label and kind."""
        order = sorted(self._counts, key=lambda key: (key[0], key[1], key[2] != "all", key[2]))
        return [self._finding(*key, self._counts[key]) for key in order]

    def _finding(self, where: str, label: str, kind: str, by_patient: Mapping[str, list[int]]) -> Finding:
        detail = {"setting": where, "label": label, "series": kind, "patients": len(by_patient), "warning": BIAS[where]}
        counts = np.array(list(by_patient.values()), dtype=np.int64)
        return clustered_share(MEASURE, counts, over="patients", unit="canaries", detail=detail, source=SOURCE)


SOURCE = "canaries: invented identifiers in the notes' own places"


def canary_survival(notes: Iterable[Note], finder: Finder, rng: Generator) -> list[Finding]:
    """The share of canaries that the engine leaves, by sort of place, label and kind, with intervals by patient.

    Args:
        notes: each is read three times. finder: without the known patients, who are not those of the canaries.
    """
    tally, kinds = Tally(), list(name_pools())
    for note in notes:
        kind = kinds[int(rng.integers(len(kinds)))]
        for text, canaries in (
            planted(note.text, finder.find(note.text, note.patient_id, note.note_id), kind, rng),
            planted_for_roles(note.text, kind, rng),
        ):
            spans = finder.find(text, note.patient_id, note.note_id) if canaries else []
            for canary in canaries:
                tally.add(note.patient_id, canary, left=survived(text, canary, spans))
    return tally.findings()
