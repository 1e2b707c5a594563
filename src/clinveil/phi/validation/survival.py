"""What survives detection: generated identifiers (canaries) in the notes, and the names of known patients.

Canaries are inserted into the site's own notes in two settings:
- `found`: at locations of detected identifiers. The identifier is replaced and its context stays. This measures how
  much detection depends on the identifier itself (an unusual name, another date format). Locations where the engine
  detects nothing are never used, so the survival is an underestimate, except where the engine was wrong to detect.
- `role`: where notes mention a person or a day without an identifier: "the patient", "her daughter", "yesterday". These
  locations are selected by wording and not by the engine; the identifier has no supporting context. Real notes mostly
  name people with more context, so the survival is an overestimate.
A note is rewritten consistently: all occurrences of a word of a name become the same new word.

The names of known patients are a sample with known truth. With the engine run without the feed, their survival
estimates what the engine misses for unknown patients. Names are compared word by word, ignoring case and accents, by
code that is independent of the known-patient detector.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.core.spans import Span, splice
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Note
from clinveil.lexicons.names import all_given_names, name_form, surnames
from clinveil.phi.detection.detectors.names import PARTICLES
from clinveil.phi.detection.finder import Finder
from clinveil.phi.treatment.passes import check_known_patients
from clinveil.phi.validation.invented import SHAPES, invented, invented_name, name_pools
from clinveil.stats.findings import clustered_share, proportion

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

MEASURE, SOURCE = "validate.canaries", "canaries: generated identifiers in the notes' own context"
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
    FOUND: "locations where the engine detects nothing are not tested: the true survival is higher",
    ROLE: "names have no supporting context: names next to a title or in a field survive less often",
}


class Canary(NamedTuple):
    """An inserted canary: its range in the rewritten note, label, kind and setting."""

    start: int
    end: int
    label: str
    kind: str
    setting: str


def planted(text: str, spans: Sequence[Span], kind: str, rng: Generator) -> tuple[str, list[Canary]]:
    """Replace the detected identifiers of a note by others; labels without generator stay unchanged."""
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
    """Insert a name for at most two role mentions and a date for at most two relative days."""
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
    """Yield the edits for the words of a detected name; titles, particles and initials stay."""
    for match in _WORD.finditer(text, span.start, span.end):
        word = re.sub("'[sS]$", "", match[0])
        form = name_form(word)
        if form in _SKIPPED:
            continue
        if form not in named:
            family = surnames().get(form, 0.0) >= all_given_names().get(form, 0.0)
            named[form] = invented_name(kind, family=family, rng=rng, exclude=form)
        new = named[form]
        cased = new.upper() if word.isupper() else new.lower() if word.islower() else new
        yield match.start(), match.start() + len(word), cased, "NAME", kind


def _edited(text: str, edits: Iterable[Edit], setting: str) -> tuple[str, list[Canary]]:
    pieces: list[str] = []
    canaries: list[Canary] = []
    position = length = 0
    for start, end, new, label, kind in edits:
        if start < position:
            continue
        pieces += (text[position:start], new)
        length += start - position
        lead = len(new) - len(new.lstrip()) + (3 if new.startswith("on ") and label == "DATE" else 0)
        canaries.append(Canary(length + lead, length + len(new), label, kind, setting))
        length, position = length + len(new), end
    return "".join([*pieces, text[position:]]), canaries


def survived(text: str, canary: Canary, spans: Sequence[Span]) -> bool:
    """Return whether a letter or digit of a canary is outside all spans."""
    uncovered = set(range(canary.start, canary.end))
    for span in spans:
        if span.start < canary.end and span.end > canary.start:
            uncovered -= set(range(span.start, span.end))
    return any(text[i].isalnum() for i in uncovered)


class Tally:
    """Counts of inserted and surviving canaries per setting, label, kind and patient."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], dict[str, list[int]]] = defaultdict(
            lambda: defaultdict(lambda: [0, 0])
        )

    def add(self, patient: str, canary: Canary, *, left: bool) -> None:
        """Count one canary, for its kind and for its label."""
        for kind in ("all", canary.kind):
            entry = self._counts[canary.setting, canary.label, kind][patient]
            entry[0] += left
            entry[1] += 1

    def findings(self) -> list[Finding]:
        """Return one finding per label and kind."""
        order = sorted(self._counts, key=lambda key: (key[0], key[1], key[2] != "all", key[2]))
        return [self._finding(*key, self._counts[key]) for key in order]

    def _finding(self, setting: str, label: str, kind: str, by_patient: Mapping[str, list[int]]) -> Finding:
        detail = {
            "setting": setting,
            "label": label,
            "series": kind,
            "patients": len(by_patient),
            "warning": BIAS[setting],
        }
        counts = np.array(list(by_patient.values()), dtype=np.int64)
        return clustered_share(MEASURE, counts, over="patients", unit="canaries", detail=detail, source=SOURCE)


def canary_survival(notes: Iterable[Note], finder: Finder, rng: Generator) -> list[Finding]:
    """Estimate the share of canaries that survive, per setting, label and kind, with intervals clustered by patient.

    Args:
        notes: each is processed three times.
        finder: a finder without known patients, because the canaries are not their names.
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


SHORTEST = 3  # minimum letters of a part of a name
KNOWN_SOURCE = "known patients' own names, compared word by word"
CHANCE_IS = "another patient's name in the same notes"


def _own_words(patient: Patient) -> frozenset[str]:
    """Return the forms of the parts of a patient's name that are long enough."""
    parts = (part for token in patient.name for part in words(token))
    return frozenset(form for part in parts if len(form := name_form(part)) >= SHORTEST)


class Survival:
    """Count each known patient's own name in the notes and in the text left by the engine."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._own = {patient_id: _own_words(patient) for patient_id, patient in patients.items()}
        self._counts: dict[str, Counter[str]] = {}

    def add(self, note: Note, found: Sequence[Span]) -> None:
        """Count names in one note, and in the note without its detected spans."""
        if note.patient_id not in self._own:
            return
        counts = self._counts.setdefault(note.patient_id, Counter())
        own = self._own[note.patient_id]
        other = self._own[self._other[note.patient_id]] - own
        left = Counter(name_form(word) for word in words(splice(note.text, found, [" "] * len(found))))
        counts["before"] += sum(name_form(word) in own for word in words(note.text))
        counts["left"] += sum(left[form] for form in own)
        counts["other"] += sum(left[form] for form in other)

    def findings(self, feed: str) -> list[Finding]:
        """Return the share of patients with a surviving own name, and the share of surviving mentions.

        Args:
            feed: "without the feed" or "with the feed".

        Raises:
            InputError: no patient of the feed has a note.

        Warns with InputWarning if some patients have none.
        """
        check_known_patients(self._own.keys(), self._counts.keys())
        named = [counts for counts in self._counts.values() if counts["before"]]
        detail: dict[str, str | int] = {
            "setting": feed,
            "in_feed": len(self._own),
            "in_notes": len(self._counts),
            "named": len(named),
        }
        return [*_of_patients(named, detail), *_of_mentions(named, detail)]


def _of_patients(named: Sequence[Counter[str]], detail: Mapping[str, str | int]) -> Iterable[Finding]:
    if not named:
        why = "no known patient's own name occurs in these notes"
        return [Finding("validate.known_patients", None, 0, "lower", detail={**detail, "why": why})]
    count, chance = sum(c["left"] > 0 for c in named), sum(c["other"] > 0 for c in named) / len(named)
    about = {"chance": chance, "chance_is": CHANCE_IS, "source": KNOWN_SOURCE, "detail": detail}
    return [proportion("validate.known_patients", count, len(named), over="patients", **about)]


def _of_mentions(named: Sequence[Counter[str]], detail: Mapping[str, str | int]) -> Iterable[Finding]:
    if not named:
        return []
    counts = np.array([[c["left"], c["before"]] for c in named], dtype=np.int64)
    chance = min(1.0, sum(c["other"] for c in named) / int(counts[:, 1].sum()))
    about = {"chance": chance, "chance_is": CHANCE_IS, "source": KNOWN_SOURCE, "detail": detail, "unit": "mentions"}
    return [clustered_share("validate.known_mentions", counts, over="patients", **about)]
