"""`clinveil attack names`: which name tokens of released vectors belong to one person."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False)


@app.command("names")
def names() -> None:
    """Pair the name tokens of word vectors into full names, by nearness (paper B, experiment 1)."""
