"""Parrot attack: a tagger that learns from the release itself finds the names that the de-identifier missed.

The release shows where the de-identifier found names: there it put surrogates, and the de-identifier, which is public,
finds most of them again. From one half of the patients a tagger learns what such places look like; what it takes for a
name in the other half, and the de-identifier does not find again, is suspected to be real. Then the halves change
places. Published parrots exposed 211 of 310 leaks (Carrell et al. 2020, J. Am. Med. Inform. Assoc. 27:1374).

Nothing tells a leak that the de-identifier would find again, such as one that was left on purpose: the parrot sees what
is missed for what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.text._leaks import Name, Read, planted, released, scored, seen_as_names
from clinveil.attacks.text._parrot_tagger import Scores, Sentence, learnt
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.words import words_beside

SOURCE = "parrot attack, Carrell et al. 2020"


@attacks.register("parrot")
class Parrot(Attack):
    """Learn from the release where names stand; those that the de-identifier does not find again are suspected."""

    needs = frozenset({"released", "known"})
    words = words_beside(__file__)
    sampled_patients: int = flag(1_000, "Patients whose released notes are attacked.", ge=2)
    least: float = flag(0.5, "Parrot: the least probability at which its tagger takes a word for a name.", gt=0, lt=1)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Precision and recall at finding leaked names of known patients; planted leaks are the control."""
        truth = released(context, self.sampled_patients, rng)
        sides = halves(truth.notes, rng)
        taggers = [learnt(((words, names) for one in side for words, names in lines(one)), rng) for side in sides]
        flagged = self._suspected(sides, taggers)
        sure = planted(truth.notes, rng)
        patients = [{one.note.patient_id for one in side} for side in sides]
        again = [[one for one in sure.notes if one.note.patient_id in half] for half in patients]
        found = self._suspected(again, taggers) & sure.leaked
        control = len(found) / len(sure.leaked) if sure.leaked else None
        names = seen_as_names(truth.notes) | flagged
        return scored("attack.parrot", flagged, truth, names, control, source=SOURCE)

    def _suspected(self, sides: Sequence[Sequence[Read]], taggers: Sequence[Scores]) -> frozenset[Name]:
        """Names that the tagger of the other half finds, and the de-identifier nowhere in the patient's notes."""
        found: set[Name] = set()
        refound: set[Name] = set()
        for side, scores in zip(sides, reversed(taggers), strict=True):
            for one in side:
                chances = [p for words, _ in lines(one) for p in scores(words)]
                for word, form, again, p in zip(one.words, one.forms, one.again, chances, strict=True):
                    if again:
                        refound.add((one.note.patient_id, form))
                    elif p >= self.least and word.capital and not word.ordinary:
                        found.add((one.note.patient_id, form))
        return frozenset(found - refound)


def halves(notes: Sequence[Read], rng: Generator) -> list[list[Read]]:
    """The notes of one half of the patients, and of the other."""
    patients = sorted({one.note.patient_id for one in notes})
    first = {patients[i] for i in rng.permutation(len(patients))[: len(patients) // 2]}
    return [[one for one in notes if (one.note.patient_id in first) == side] for side in (True, False)]


def lines(one: Read) -> Iterator[tuple[Sentence, Sequence[bool]]]:
    """The words of each line of a note, and which of them the de-identifier takes for names."""
    start = 0
    for i in range(1, len(one.words) + 1):
        if i == len(one.words) or "\n" in one.plain[one.words[i - 1].end : one.words[i].start]:
            yield one.words[start:i], one.again[start:i]
            start = i
