"""`clinveil evaluate nli`: Measure natural language inference with frozen word vectors (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import VectorFile
from clinveil.core.neural import device_named
from clinveil.core.settings import QUIET, SEED, Settings, flag, group
from clinveil.utility.nli import NliSettings

Train = Annotated[
    Path,
    typer.Option("--train", help="Labelled sentence pairs: MedNLI, SICK, RQE, or sentence1,sentence2,label."),
]
Dev = Annotated[Path | None, typer.Option("--dev", help="Validation pairs (default: split off --train).")]
Test = Annotated[Path | None, typer.Option("--test", help="Test pairs (default: split off --train).")]


class EvaluateNliSettings(Settings):
    """Settings of `clinveil evaluate nli`."""

    model: NliSettings = group(NliSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    encoding: str = flag("utf-8", "Character encoding of the pairs.")


@command("evaluate nli", EvaluateNliSettings, flags="seed", findings=True)
def nli(run: Run[EvaluateNliSettings], vectors: VectorFile, train: Train, dev: Dev = None, test: Test = None) -> None:
    """Train a bag-of-words model on frozen vectors; compare accuracy with random vectors and the majority."""
    how, rng = run.settings.model, run.rng()
    device_named(how.device)  # before what imports PyTorch
    from clinveil.utility.nli import nli as measure
    from clinveil.utility.nli.pairs import nli_parts, read_sentence_pairs
    from clinveil.vectors.files import load_vectors

    encoding = run.settings.encoding
    pairs = read_sentence_pairs(train, encoding=encoding)
    others = (read_sentence_pairs(path, encoding=encoding) if path else None for path in (dev, test))
    parts = nli_parts(pairs, next(others), next(others), rng)
    findings = measure(load_vectors(vectors), parts, rng, how)
    run.show(findings, f"{vectors.name}, features {how.features}, {how.seeds} seeds (seed {run.seed})")
