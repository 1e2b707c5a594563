"""Known patients whose own name survives detection: a sample of identifiers with known truth.

With the engine run without the feed, their survival estimates what the engine misses for unknown patients. Names are
compared word by word, ignoring case and accents, by code that is independent of the known-patient detector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.core.spans import Span, splice
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Note
from clinveil.lexicons.names import name_form
from clinveil.phi.treatment.passes import check_known_patients
from clinveil.stats.findings import clustered_share, proportion

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

SHORTEST = 3  # minimum letters of a part of a name
KNOWN_SOURCE = "known patients' own names, compared word by word"
CHANCE_IS = "another patient's name in the same notes"


class Survival:
    """Count each known patient's own name in the notes and in the text left by the engine."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._own = {
            patient_id: {
                form for token in patient.name for part in words(token) if len(form := name_form(part)) >= SHORTEST
            }
            for patient_id, patient in patients.items()
        }
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
        detail: dict[str, Any] = {
            "setting": feed,
            "in_feed": len(self._own),
            "in_notes": len(self._counts),
            "named": len(named),
        }
        if not named:
            why = "no known patient's own name occurs in these notes"
            return [Finding("validate.known_patients", None, 0, "lower", detail={**detail, "why": why})]
        about: dict[str, Any] = {"chance_is": CHANCE_IS, "source": KNOWN_SOURCE, "detail": detail}
        count, by_chance = (sum(counts[name] > 0 for counts in named) for name in ("left", "other"))
        chance = by_chance / len(named)
        of_patients = proportion("validate.known_patients", count, len(named), over="patients", chance=chance, **about)
        mentions = np.array([[counts["left"], counts["before"]] for counts in named], dtype=np.int64)
        chance = min(1.0, sum(counts["other"] for counts in named) / int(mentions[:, 1].sum()))
        of_mentions = clustered_share(
            "validate.known_mentions", mentions, over="patients", chance=chance, unit="mentions", **about
        )
        return [of_patients, of_mentions]
