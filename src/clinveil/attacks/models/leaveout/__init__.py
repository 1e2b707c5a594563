"""S-PDTP of language models (paper C, section 3.2): models with and without single units, and their differences.

`exact`: one fixed plan of batches, in which a left-out unit has weight 0. Nothing else of the plan changes; but as
gradients are clipped by their norm over the batch, a batch without the unit may be scaled differently for the others.
`compat`: as paper C's code; the notes are removed and the text is cut again, so every batch changes. A unigram model
needs no training: `closed_form`.
"""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.models.leaveout.compare import audit_notes
from clinveil.attacks.models.leaveout.pdtp import closed_form
from clinveil.attacks.models.leaveout.settings import FINDINGS, LeaveOutSettings, audit_folder, run_spec
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding, write_findings
from clinveil.core.settings import flag, group


@attacks.register("leaveout")
class LeaveOneOut(Attack):
    """Train models with and without each of some patients and compare their probabilities (S-PDTP, paper C)."""

    needs = frozenset({"training"})
    settings: LeaveOutSettings = group(LeaveOutSettings)
    out: Path | None = flag(None, "Secret folder for the models; the same folder resumes a run.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the audit on `PlainNotes`; except in closed form, writes models, tables of units and findings to `out`.

        Without a seed in the settings, the training seed is drawn here. Raises UsageError without `out`.
        """
        settings, notes = self.settings, context.training
        if settings.mode == "unigram":
            return closed_form(notes, rng, by_note=settings.unit == "note")
        if self.out is None:
            raise UsageError(
                "an output folder for the models is required",
                hint="pass -o DIR; the same folder resumes an interrupted run",
            )
        seed = int(rng.integers(2**31)) if settings.seed is None else settings.seed
        with audit_folder(self.out, run_spec(notes, settings, seed), force=settings.force) as store:
            found = audit_notes(notes, settings, seed, store, self.out, context.say)
            write_findings(self.out / FINDINGS, "attack leaveout", found, seed=seed)
        context.say(f"SECRET: everything in {self.out.name}; {self.out.name}/units-*.csv has one row per unit")
        return found
