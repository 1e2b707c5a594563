"""`clinveil evaluate nli`: natural language inference with frozen word vectors (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, Settings, flag, group
from clinveil.utility.nli import NliSettings

app = typer.Typer(add_completion=False)
VectorFile = Annotated[Path, typer.Argument(help="Vectors: a folder of clinveil embed, .vec, .txt or .bin.")]
Train = Annotated[
    Path,
    typer.Option("--train", help="Labelled sentence pairs: MedNLI JSONL, SICK, RQE, or sentence1,sentence2,label."),
]
Dev = Annotated[Path | None, typer.Option("--dev", help="Pairs that say when to stop; split off --train without it.")]
Test = Annotated[Path | None, typer.Option("--test", help="Pairs that count; split off --train without it.")]


class EvaluateNliSettings(Settings):
    """Everything that `clinveil evaluate nli` can be told."""

    model: NliSettings = group(NliSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    encoding: str = flag("utf-8", "Character encoding of the pairs.")


@settings_command(app, EvaluateNliSettings, name="nli")
def nli(
    settings: EvaluateNliSettings,
    vectors: VectorFile,
    train: Train,
    dev: Dev = None,
    test: Test = None,
    json: JsonOut = None,
) -> None:
    """Train the bag-of-words inference model on frozen vectors; accuracy beside random vectors and the majority."""
    import secrets

    import numpy as np

    from clinveil.cli.findings import say_findings
    from clinveil.core.neural import device_named
    from clinveil.utility.nli import measure
    from clinveil.utility.nli.pairs import nli_parts, read_sentence_pairs
    from clinveil.vectors.files import load_vectors

    device_named(settings.model.device)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    rng = np.random.default_rng(seed)
    pairs = [read_sentence_pairs(path, encoding=settings.encoding) if path else None for path in (train, dev, test)]
    assert pairs[0] is not None
    parts = nli_parts(pairs[0], pairs[1], pairs[2], rng)
    findings = measure.nli(load_vectors(vectors), parts, rng, settings.model)
    title = f"{vectors.name}, features {settings.model.features}, {settings.model.seeds} seeds (seed {seed})"
    say_findings("evaluate nli", findings, seed=seed, json_out=json, title=title)
