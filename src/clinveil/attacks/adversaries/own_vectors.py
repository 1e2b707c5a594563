"""Adversary that runs this software on other notes and uses the result in place of the release's channel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import frequency
from clinveil.attacks.adversaries._shadow import cached_shadow, shadow_matrix, shadow_table
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Recovery, adversaries
from clinveil.core.settings import NotesSettings, flag
from clinveil.core.tokens import words
from clinveil.core.types import Ints
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import open_corpus

DOUBT = "Weight of output frequencies relative to the shadow channel."


@adversaries.register("own-vectors")
class OwnVectors(Adversary):
    """Train shadow vectors on other notes, build a channel of the known mechanism, and recover words one by one.

    Source: threat model A9 (i); unigram Bayes with the shadow channel in place of the true one.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 500
    public: Path | None = flag(None, "Public texts to learn from instead of other notes of the same kind.")
    doubt: float = flag(0.5, DOUBT, ge=0, le=1)

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether other notes or public texts are available."""
        return self.public is not None or super().is_applicable(view)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words of only one vocabulary use the background frequencies."""
        if self.public is None:
            return shadow_table(view, cached_shadow(view, "others", rng), view.prior, self.doubt).recoveries(view)
        notes = _texts(self.public, view)
        prior = frequency(notes, len(view.channel.words))
        return shadow_table(view, shadow_matrix(view, notes, rng), prior, self.doubt).recoveries(view)


def _texts(path: Path, view: AdversaryView) -> Sequence[Ints]:
    """Return the notes of a file or folder as rows of the release's words. Raises InputError if it cannot be read."""
    ids, unknown = view.channel.ids, view.channel.unknown
    notes = (words(note.text) for note in rows(open_corpus(path, NotesSettings())))
    return [np.array([ids.get(word, unknown) for word in note], dtype=np.int64) for note in notes]
