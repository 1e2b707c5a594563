"""`clinveil prepare`: the group of preparations; one file a data set, imported when it is called."""

from __future__ import annotations

import typer

from clinveil.cli.lazy import lazy_group

PREPARATIONS = {
    "icd9": "Give notes the ICD-9 labels of their admission, from MIMIC's table of diagnoses.",
    "medtext": "Make MedText, a corpus for language models: a sentence a line, split by patient.",
}

app = typer.Typer(
    cls=lazy_group(PREPARATIONS, "clinveil.cli.prepare.{}".format),
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    help="Make the data sets of the papers from notes that you have.",
)


@app.callback()
def _prepare() -> None:
    pass
