"""All tasks of the study, in the order in which they need one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clinveil.attacks.models.leaveout.audit import train_audits
from clinveil.attacks.models.leaveout.data import pick_units, prepare
from clinveil.attacks.models.leaveout.plan import Audit, audit_of
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.corpus.medtext import SplitSizes
from clinveil.scale.local import Map
from clinveil.scale.tasks import Store, Work, perform, perform_all
from clinveil.study.clinicalnlp_2019.audits import Canaries, Looked, UnigramScore
from clinveil.study.clinicalnlp_2019.corpora import REAL, UNIGRAM, Written
from clinveil.study.clinicalnlp_2019.parts import Parts, Source, part_of, vocabulary_of_parts
from clinveil.study.clinicalnlp_2019.settings import StudySettings
from clinveil.study.clinicalnlp_2019.utility import Casing, Embedding, Inference, Predicted, Similar, digests

Say = Callable[[str], None]
PLANTED = "with planted names"


@dataclass
class Study:
    """The study's tasks; filled as it goes.

    Attributes:
        audits: by dropout, `exact`; compat: the same by paper C's code; planted: of the least dropout, with names.
        unigram: of the same patients as `audits`, by counting.
        works: everything that returned findings.
    """

    settings: StudySettings
    store: Store
    over: Map
    say: Say
    parts: Parts
    audits: dict[float, Audit] = field(default_factory=dict)
    compat: dict[float, Audit] = field(default_factory=dict)
    planted: Audit | None = None
    unigram: Audit | None = None
    corpora: list[Written] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)

    def run(self) -> None:
        """Do all that is not done."""
        perform(self.store, self.parts)
        self._plan_audits()
        every = [*self.audits.values(), *self.compat.values(), *([self.planted] if self.planted else [])]
        how = self.settings
        train_audits(self.store, every, self.over, self.say, workers=how.workers, most_hours=how.max_hours)
        if self.unigram is not None:
            perform_all(self.store, self.unigram.models, self.over, lambda line: None)
        self._plan_corpora()
        self._stage("corpora", self.corpora)
        embeddings = [Embedding(corpus, how.scale.dim, how.seed) for corpus in self.corpora]
        first = [*self._audits_beside(), *embeddings]
        self._stage("utility and audits", first)
        last = self._with_vectors(embeddings)
        self._stage("word vectors", last)
        self.works = [*(work for work in first if not isinstance(work, Embedding)), *last]

    def _stage(self, name: str, works: Sequence[Work]) -> None:
        perform_all(self.store, works, self.over, lambda line: self.say(f"{name} {line}"))

    def _plan_audits(self) -> None:
        how = self.settings
        for dropout in how.dropout:
            self.audits[dropout] = self._audit(how.leave_out(dropout, "exact"))
            if how.compat:
                self.compat[dropout] = self._audit(how.leave_out(dropout, "compat"))
        self.planted = self._audit(how.leave_out(how.dropout[0], "exact", names=True), PLANTED)
        counted = how.leave_out(how.dropout[0], "exact").but(model="unigram")
        self.unigram = audit_of(self.audits[how.dropout[0]].data, counted, seed=how.seed, name=UNIGRAM)

    def _audit(self, settings: LeaveOutSettings, name: str = "") -> Audit:
        notes = part_of(self.store, self.parts, "train")
        # Without names in it the vocabulary is that of all parts, as in paper C.
        words = None if settings.plant_names else vocabulary_of_parts(self.store, self.parts)
        valid = part_of(self.store, self.parts, "valid")
        rng = np.random.default_rng([self.settings.seed, 2])
        units = pick_units(notes, settings.units, rng, by_note=settings.unit == "note")
        data = prepare(notes, units, settings, rng, vocabulary=words, validation=valid)
        folder = data.save(self.store.root)
        exact, main = (settings.mode == mode and not name for mode in ("exact", self.settings.main))
        tokens = data.encoded.ids.size
        audit = audit_of(folder, settings, seed=self.settings.seed, words=tokens * exact, name=name, keep=main)
        if exact:
            return audit
        full = replace(audit.full, write=tokens) if main else audit.full
        return replace(audit, full=full, again=None, reseeded=(), other_seeds=())

    def _plan_corpora(self) -> None:
        audits = self.compat if self.settings.main == "compat" else self.audits
        own = [Written(label_of(dropout), self.parts, audit.full) for dropout, audit in audits.items()]
        self.corpora = [Written(REAL, self.parts), *own, Written(UNIGRAM, self.parts)]

    def _audits_beside(self) -> list[Work]:
        how = self.settings
        works: list[Work] = [Casing(corpus, how.size, how.seed) for corpus in self.corpora]
        works += [Canaries(self.parts, label_of(dropout), dropout, how) for dropout in how.dropout]
        works += [Looked(corpus, corpus.member, how.seed) for corpus in self.corpora]
        works += [Predicted(corpus, corpus.member) for corpus in self.corpora]
        return [*works, UnigramScore(self.parts)]

    def _with_vectors(self, embeddings: Sequence[Embedding]) -> list[Work]:
        how, works = self.settings, list[Work]()
        if how.pairs:
            hashed = digests(how.pairs)
            works += [Similar(one, how.pairs, hashed, how.min_pair_count) for one in embeddings]
        if how.nli is not None:
            works += [Inference(one, how.nli, digests((how.nli,))[0], how.size) for one in embeddings]
        return works


def label_of(dropout: float) -> str:
    """`lstm, dropout 0.5`."""
    return f"lstm, dropout {dropout:g}" if dropout else "lstm, dropout 0.0"


def parts_of(settings: StudySettings, source: Source) -> Parts:
    """The first task."""
    sizes = SplitSizes(valid=settings.valid, test=settings.test, words=settings.words)
    return Parts(source, sizes, settings.split == "note", settings.min_count, settings.seed)
