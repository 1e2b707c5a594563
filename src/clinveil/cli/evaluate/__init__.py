"""`clinveil evaluate`: the group of utility tests; one file a test, imported when it is called."""

from __future__ import annotations

import typer

from clinveil.cli.lazy import lazy_group

EVALUATIONS = {
    "similarity": "Word vectors against people's judgements of word pairs, by the protocol of paper A or of paper C.",
    "classification": "Document classification on the original and on the protected notes, paired (paper A).",
    "nli": "Natural language inference with frozen word vectors, beside random vectors (paper C).",
    "perplexity": "How well a language model, or one trained on synthetic notes, predicts real ones (paper C).",
    "casing": "Letter-case restoration with a character model of the notes (paper C).",
}

app = typer.Typer(
    cls=lazy_group(EVALUATIONS, "clinveil.cli.evaluate.{}".format),
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    help="Measure what protected notes, or vectors trained on them, are still good for.",
)


@app.callback()
def _evaluate() -> None:
    pass
