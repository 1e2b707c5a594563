"""`clinveil synthesize`: Train a language model on notes and write synthetic ones, searched for copies first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Out, Vault
from clinveil.cli.progress import say
from clinveil.core.files import default_vault, refuse_places
from clinveil.core.neural import need_torch
from clinveil.corpus.open import open_corpus
from clinveil.lm.notes import read_notes
from clinveil.release.synthesis.run import Synthesis
from clinveil.release.synthesis.settings import SynthesisSettings
from clinveil.release.synthesis.write import MAKER

From = Annotated[Path | None, typer.Option("--from", help="Write with this model (OUT.vault/model of an earlier run).")]


@command("synthesize", SynthesisSettings, findings=True)
def synthesize(
    run: Run[SynthesisSettings],
    notes: Annotated[Path, typer.Argument(help="Real notes to train on; with --from, those that the model saw.")],
    out: Out,
    source: From = None,
    vault: Vault = None,
) -> None:
    """Train a language model on notes and write synthetic ones; copies, rare words and names are looked for first.

    A killed run goes on where it stopped. The model stays in the vault: it remembers the notes.
    """
    how, safe = run.settings, vault or default_vault(out)
    places = {"NOTES": notes, "--from": source, "--patients": how.patients}
    refuse_places(out, MAKER, force=how.force, vault=safe, read=places)
    if how.lm.neural and source is None:
        need_torch()
    read = read_notes(open_corpus(notes, how.notes), prepared=how.prepared)
    synthesis = Synthesis(how, read, out, safe, source, run.say)
    found = synthesis.run()
    run.show(found, f"synthetic notes in {out.name}", seed=how.seed or 0)
    if synthesis.mark:
        say(synthesis.mark)
