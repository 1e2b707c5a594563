"""Known patients' own names in what the engine leaves of their notes.

The feed of known patients is a sample of names whose truth is known. Where the engine is not given it, what survives of
them shows what the engine leaves of people whom no feed knows. They are looked for word by word, in any case and with
or without accents, by a search that shares no code with the detector of known patients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.core.spans import Span, splice
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Note
from clinveil.lexicons.names import name_form
from clinveil.phi.passes import check_known_patients
from clinveil.stats.findings import clustered_share, proportion

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

SHORTEST = 3  # letters of a part of a name that is looked for
SOURCE = "known patients' own names, looked for word by word"
CHANCE_IS = "another patient's name, looked for in the same notes"


def own_words(patient: Patient) -> frozenset[str]:
    """The forms of the parts of a patient's name that are long enough to look for."""
    parts = (part for token in patient.name for part in words(token))
    return frozenset(form for part in parts if len(form := name_form(part)) >= SHORTEST)


class Survival:
    """Counts, of each known patient, mentions of the own name in the notes and in what is left of them."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._own = {one: own_words(patient) for one, patient in patients.items()}
        self._counts: dict[str, Counter[str]] = {}

    def add(self, note: Note, found: Sequence[Span]) -> None:
        """Look through one note, and through what is left where all that was found is gone."""
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
        """The share of patients of whose name something is left, and of the mentions.

        Args:
            feed: what the engine knew, "without the feed" or "with the feed".

        Raises:
            InputError: no patient of the feed has a note. Warns with InputWarning where some have none.
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
        why = "no known patient's own name stands in these notes"
        return [Finding("validate.known_patients", None, 0, "lower", detail={**detail, "why": why})]
    count, chance = sum(c["left"] > 0 for c in named), sum(c["other"] > 0 for c in named) / len(named)
    about = {"chance": chance, "chance_is": CHANCE_IS, "source": SOURCE, "detail": detail}
    return [proportion("validate.known_patients", count, len(named), over="patients", **about)]


def _of_mentions(named: Sequence[Counter[str]], detail: Mapping[str, str | int]) -> Iterable[Finding]:
    if not named:
        return []
    counts = np.array([[c["left"], c["before"]] for c in named], dtype=np.int64)
    chance = min(1.0, sum(c["other"] for c in named) / int(counts[:, 1].sum()))
    about = {"chance": chance, "chance_is": CHANCE_IS, "source": SOURCE, "detail": detail, "unit": "mentions"}
    return [clustered_share("validate.known_mentions", counts, over="patients", **about)]
