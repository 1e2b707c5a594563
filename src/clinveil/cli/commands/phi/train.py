"""`clinveil phi train`: Train a tagger of your own on notes with gold spans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.cli.progress import say
from clinveil.phi.tagger.site import TrainSettings, train_on_notes

Gold = Annotated[Path, typer.Option("--gold", help="Gold spans of the notes (spans.jsonl).", show_default=False)]


@command("phi train", TrainSettings)
def train(run: Run[TrainSettings], notes: Notes, gold: Gold, out: Out) -> None:
    """Train a tagger of your own on notes with gold spans, for `clinveil deidentify --tagger`."""
    made = train_on_notes(notes, gold, out, run.settings, seed=run.seed, say=run.say)
    card = made.card
    run.say(f"{card['notes']} notes, {card['marked']} marked places, {card['invented']} invented texts, {out.name}")
    run.say(f"kept apart: {card['tuned_notes']} notes, {card['tuned_found']} of {card['tuned_places']} places found")
    run.say(
        f"threshold {made.threshold:.4f}: of {card['tuned_words']} other words at most {card['most_false']:.2%} taken"
    )
    say("SECRET: a tagger's weights give away words and parts of names of the notes; keep it where the notes are kept")
