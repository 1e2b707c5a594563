"""The audits beside the privacy score: copies, membership, canaries, the clinician's remarks, and a unigram's score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.attack import Context
from clinveil.attacks.models._from_text import model_of_text
from clinveil.attacks.models.canaries import Canaries as CanaryAttack
from clinveil.attacks.models.leaveout.closed_form import closed_form
from clinveil.attacks.models.leaveout.models import AuditModel
from clinveil.attacks.models.membership import infer_membership
from clinveil.attacks.text.copies import copies
from clinveil.lm.notes import PlainNotes
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.clinicalnlp_2019.corpora import REAL, Written
from clinveil.study.clinicalnlp_2019.parts import Parts, part_of, vocabulary_of_parts
from clinveil.study.clinicalnlp_2019.qualities import qualities
from clinveil.study.clinicalnlp_2019.settings import StudySettings
from clinveil.study.clinicalnlp_2019.utility import told


@dataclass(frozen=True)
class Looked:
    """Copy scan, membership from the text (and from the model), and section 4.2's counts of one corpus."""

    corpus: Written
    member: AuditModel | None
    seed: int

    @property
    def title(self) -> str:
        """For people."""
        return f"copies and membership of: {self.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Corpus and model."""
        member = name_of(self.member) if self.member else ""
        return {"corpus": name_of(self.corpus), "member": member, "seed": self.seed, "version": 4}

    def __call__(self, folder: Path, store: Store) -> Result:
        """All findings; the real notes are the positive control: a generator that copies."""
        parts, rng = self.corpus.parts, np.random.default_rng([self.seed, 9])
        train, valid, test = (_by_unit(part_of(store, parts, name), parts) for name in ("train", "valid", "test"))
        notes = self.corpus.load(store)
        found = copies(notes.as_corpus(), train.as_corpus(), test.as_corpus(), rng)
        text = model_of_text(notes, vocabulary_of_parts(store, parts))
        found += infer_membership(text, train, test, rng, reference=valid, detail={"from": "released notes"})
        if self.member is not None:
            from clinveil.lm.checkpoint import load_model

            model = load_model(store.folder(self.member) / "model")[0]
            blind = next(f for f in found if f.measure == "attack.membership_blind")
            by = {"from": "the model"}
            found += infer_membership(model, train, test, rng, reference=valid, detail=by, blind=blind)[1:]
        seen = test if self.corpus.label == REAL else notes
        found += qualities(seen.texts, train.texts, rng)
        return told(found, corpus=self.corpus.label)


def _by_unit(notes: PlainNotes, parts: Parts) -> PlainNotes:
    """Split by note, a patient may stand on both sides; each note then counts as a patient of its own."""
    return PlainNotes(notes.texts, notes.note_ids, notes.note_ids) if parts.by_note else notes


@dataclass(frozen=True)
class Canaries:
    """An audit copy with canaries, of one dropout."""

    parts: Parts
    label: str
    dropout: float
    settings: StudySettings

    @property
    def title(self) -> str:
        """For people."""
        return f"canaries: {self.label}"

    def identity(self) -> Mapping[str, Any]:
        """Notes and model."""
        own = {"parts": name_of(self.parts), "dropout": self.dropout, "size": self.settings.size}
        return own | {"seed": self.settings.seed, "version": 2}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Exposure and extraction."""
        how = self.settings.leave_out(self.dropout, "exact")
        attack = CanaryAttack(lm=how.lm, seed=self.settings.seed, each=self.settings.scale.canaries)
        context = Context(training=part_of(store, self.parts, "train"), workers=1)
        rng = np.random.default_rng([self.settings.seed, 0xCA])
        return told(attack(context, rng), corpus=self.label)


@dataclass(frozen=True)
class UnigramScore:
    """S-PDTP of the unigram, in closed form, for every note."""

    parts: Parts

    title = "S-PDTP of the unigram"

    def identity(self) -> Mapping[str, Any]:
        """The notes."""
        return {"parts": name_of(self.parts), "version": 3}

    def __call__(self, folder: Path, store: Store) -> Result:
        """The score over all patients."""
        rng = np.random.default_rng([self.parts.seed, 10])
        return told(closed_form(part_of(store, self.parts, "train"), rng), corpus="unigram")
