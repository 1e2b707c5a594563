"""S-PDTP on language models (paper C, section 3.2): who is left out, the models without them, and what that tells.

`exact`: one fixed plan of batches; a left-out unit weighs 0. Nothing else of the plan changes, but where the gradient
is clipped by its norm over the whole batch, a batch without the unit may be scaled differently for all who are in it.
`compat`: as paper C's code; the notes are taken out and the text is cut anew, so every batch changes. A unigram needs
no training: `closed_form`.
"""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.models.leaveout.audit import audit_notes
from clinveil.attacks.models.leaveout.pdtp import closed_form
from clinveil.attacks.models.leaveout.settings import FINDINGS, LeaveOutSettings, audit_folder, run_spec
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding, write_findings
from clinveil.core.settings import flag, group
from clinveil.core.words import words_beside
from clinveil.corpus.open import open_corpus
from clinveil.lm.notes import read_notes


@attacks.register("leaveout")
class LeaveOneOut(Attack):
    """Train with and without each of some patients, and compare; beside it what any other change does to the score."""

    needs = frozenset({"training"})
    words = words_beside(__path__[0])
    settings: LeaveOutSettings = group(LeaveOutSettings)
    out: Path | None = flag(None, "Folder of the models, secret; the same one goes on.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Of `PlainNotes`; all but the closed form writes models, a table a unit and the findings to `out`.

        Without a seed in the settings, that of the training is drawn here. Raises UsageError without `out`.
        """
        settings, notes = self.settings, context.training
        if settings.mode == "unigram":
            return closed_form(notes, rng, by_note=settings.unit == "note")
        if self.out is None:
            raise UsageError("the models need a folder", hint="-o DIR; the same one goes on where a run stopped")
        seed = int(rng.integers(2**31)) if settings.seed is None else settings.seed
        public = read_notes(open_corpus(settings.pretrain)) if settings.pretrain else None
        with audit_folder(self.out, run_spec(notes, settings, seed, public), force=settings.force) as store:
            found = audit_notes(notes, settings, seed, store, self.out, context.say, public=public)
            write_findings(self.out / FINDINGS, "attack leaveout", found, seed=seed)
        context.say(f"SECRET: all of {self.out.name}; {self.out.name}/units-*.csv has a row a unit")
        return found
