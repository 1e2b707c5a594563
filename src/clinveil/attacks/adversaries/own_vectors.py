"""An outsider who runs our tool on notes of his own, and takes what comes out for the release's channel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._shadow import kept_shadow, shadow_matrix, shadow_table
from clinveil.attacks.adversaries._tables import frequency
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Reading, adversaries
from clinveil.core.settings import NotesSettings, flag
from clinveil.core.tokens import words
from clinveil.core.types import Ints
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import open_corpus

DOUBT = "How much of a word's chances the shadow channel is not asked for."


@adversaries.register("own-vectors")
class OwnVectors(Adversary):
    """No channel: makes vectors and a channel of other notes by the known mechanism, and reads word by word.

    Source: threat model A9 (i); unigram Bayes with the shadow channel in place of the true one.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 500
    public: Path | None = flag(None, "Public texts to learn from, in place of other notes of the same kind.")
    doubt: float = flag(0.5, DOUBT, ge=0, le=1)

    def can(self, view: AdversaryView) -> bool:
        """Public texts stand in for notes of others."""
        return self.public is not None or super().can(view)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Words that only one of the vocabularies knows are read by the background alone."""
        if self.public is None:
            return shadow_table(view, kept_shadow(view, "others", rng), view.prior, self.doubt).readings(view)
        notes = _texts(self.public, view)
        prior = frequency(notes, len(view.channel.words))
        return shadow_table(view, shadow_matrix(view, notes, rng), prior, self.doubt).readings(view)


def _texts(path: Path, view: AdversaryView) -> Sequence[Ints]:
    """The notes of a file or folder as rows of the release's words. Raises InputError where it cannot be read."""
    ids, unknown = view.channel.ids, view.channel.unknown
    notes = (words(note.text) for note in rows(open_corpus(path, NotesSettings())))
    return [np.array([ids.get(word, unknown) for word in note], dtype=np.int64) for note in notes]
