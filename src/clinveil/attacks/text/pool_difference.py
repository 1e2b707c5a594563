"""Pool difference: names in the release that are in no list of the de-identifier are real ones.

Surrogates are drawn from lists that anybody can read. A name that stands in none of them was not drawn: it was missed.
No more is needed than the lists and a dictionary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.text._leaks import Name, Read, planted, pool, released, scored, seen_as_names
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.words import words_beside

SOURCE = "set difference between the names of the release and the pool of surrogates"


@attacks.register("pool-difference")
class PoolDifference(Attack):
    """Take names of the release that are in no list of the de-identifier for leaked ones."""

    needs = frozenset({"released", "known"})
    words = words_beside(__file__)
    sampled_patients: int = flag(1_000, "Patients whose released notes are attacked.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Precision and recall at finding leaked names of known patients; planted leaks are the control."""
        truth, lists = released(context, self.sampled_patients, rng), pool()
        sure = planted(truth.notes, rng)
        found = outside(sure.notes, lists) & sure.leaked
        control = len(found) / len(sure.leaked) if sure.leaked else None
        flagged, names = outside(truth.notes, lists), seen_as_names(truth.notes)
        return scored("attack.pool_difference", flagged, truth, names, control, source=SOURCE)


def outside(notes: Sequence[Read], lists: Collection[str]) -> frozenset[Name]:
    """What looks like a name and is in no list; of a hyphenated name no part is."""
    listed = {
        (one.note.patient_id, form)
        for one in notes
        for word, form in zip(one.words, one.forms, strict=True)
        if any(part.lower() in lists for part in word.text.split("-")) or form in lists
    }
    return seen_as_names(notes) - listed
