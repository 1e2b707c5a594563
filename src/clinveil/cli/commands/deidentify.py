"""`clinveil deidentify`: Find PHI in notes and remove, replace or tag it."""

from __future__ import annotations

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out, Vault
from clinveil.cli.progress import say
from clinveil.core.keys import TEST_SEED
from clinveil.phi.run import deidentify_notes
from clinveil.phi.settings import DeidentifySettings


@command("deidentify", DeidentifySettings)
def deidentify(run: Run[DeidentifySettings], notes: Notes, out: Out, vault: Vault = None) -> None:
    """Find PHI in notes and remove, replace or tag it; what is missed stays, so the output is secret."""
    if run.settings.seed is not None:
        say(TEST_SEED)
    counts = deidentify_notes(notes, out, run.settings, vault=vault, say=run.say)
    for line in counts.lines():
        run.say(line)
    if kept := {label: count for label, count in counts.kept.items() if count}:
        say(f"KEPT as they are: {', '.join(f'{count} {label}' for label, count in kept.items())}")
    say("SECRET: what the detectors missed still stands in these notes")
