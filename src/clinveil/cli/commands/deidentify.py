"""`clinveil deidentify`: Detect identifiers in notes and remove, replace or tag them."""

from __future__ import annotations

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, Out, Vault
from clinveil.cli.progress import say
from clinveil.core import TEST_SEED
from clinveil.phi import DeidentifySettings, deidentify_notes
from clinveil.report import Limits


@command(
    "deidentify",
    DeidentifySettings,
    flags="keep keep_ids identifiers.shift identifiers.patients identifiers.staff"
    " identifiers.phi_profile spans crosswalk identifiers.reviewed executor.on workers seed force"
    " quiet",
)
def deidentify(
    run: Run[DeidentifySettings], notes: NotesOrQuery, out: Out, vault: Vault = None
) -> None:
    """Detect identifiers in notes and remove, replace or tag them; missed ones remain, so the
    output is secret.
    """
    how = run.settings
    if how.seed is not None:
        say(TEST_SEED)
    counts = deidentify_notes(notes, out, how, vault=vault, say=run.say)
    for line in counts.lines():
        run.say(line)
    for line in filter(None, (counts.coverage(), counts.residues.line())):
        say(line)
    if kept := {label: count for label, count in counts.kept.items() if count}:
        say(f"KEPT unchanged: {', '.join(f'{count} {label}' for label, count in kept.items())}")
    say("SECRET: identifiers that the detectors missed remain in these notes")
    limit = Limits.read().rules("agreement")["residues"].most or 0.0
    if counts.residues.notes_with_residues > (most := counts.residues.allowed(limit)):
        opened = f"open them with: clinveil review {out.name}"
        allowed = f"at most {most} notes may have residues ({limit:g} of the notes)"
        say(f"LIMIT: {allowed}; {opened}")
        raise typer.Exit(4)
